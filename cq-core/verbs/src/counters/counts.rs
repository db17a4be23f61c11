//! What was counted, as a value: printed, compared, serialized.

use core::fmt;

use cq_core::wc::WcStatus;

/// How many kinds of completions are told apart: one for each status, and one for all numbers without a name.
pub(super) const KINDS: usize = WcStatus::KNOWN.len() + 1;
const UNKNOWN: usize = KINDS - 1;

// A status's number is its index.
const _: () = {
    let mut index = 0;
    while index < UNKNOWN {
        assert!(WcStatus::KNOWN[index].0 as usize == index);
        index += 1;
    }
};

/// The index of a status.
pub(super) fn kind(status: WcStatus) -> usize {
    UNKNOWN.min(status.0 as usize)
}

/// What a queue's [`Counters`](super::Counters) were. Displayed as a table, with the statuses that have come.
///
/// ```
/// use cq_verbs::counters::Counts;
///
/// /// The share of polls that found completions, from one snapshot to the next.
/// fn load(before: &Counts, now: &Counts) -> f64 {
///     let found = |counts: &Counts| counts.polls - counts.empty_polls;
///     (found(now) - found(before)) as f64 / (now.polls - before.polls) as f64
/// }
/// let mut now = Counts::default();
/// (now.polls, now.empty_polls) = (8, 6);
/// assert_eq!(load(&Counts::default(), &now), 0.25);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Counts {
    /// Polls into a buffer that is not empty.
    pub polls: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Polls that returned an error: the queue itself had failed.
    pub failed_polls: u64,
    /// Completions, by status.
    pub completions: Completions,
    /// Arms that succeeded.
    pub arms: u64,
    /// Events that were taken.
    pub events: u64,
    /// Events after which the queue was found empty, though no completion had been polled since it was armed
    /// ([N5](cq_core::contract#n5)). An event that is taken after its completion was polled is not spurious.
    pub spurious_events: u64,
    /// 1 if the queue has overrun ([O3](cq_core::contract#o3)); more if several queues were counted, one after the other.
    pub overruns: u64,
    /// The most completions that the queue is known to have held. After each poll, that is what the poll returned or, if
    /// it filled its buffer, what was left in the queue, whichever is more: the queue held at least as many, and at most
    /// the length of the buffer more. A software queue and the loopback know what is left
    /// ([`holds_more_than`](cq_core::transport::PollCq::holds_more_than)); libibverbs does not, and then the mark is at
    /// most the length of the buffer. Between two polls the queue may have held more; see a producer's
    /// [`high_water`](cq_core::queue::Producer::measure_high_water).
    pub high_water: u64,
}

/// Numbers of completions, by status.
///
/// ```
/// use cq_core::wc::WcStatus;
/// use cq_verbs::counters::Completions;
///
/// /// How many requests have failed, without those that were flushed because another one had.
/// fn failed(completions: &Completions) -> u64 {
///     let of = |status| completions.count(status);
///     completions.total() - of(WcStatus::SUCCESS) - of(WcStatus::WR_FLUSH_ERR)
/// }
/// assert_eq!(failed(&Completions::default()), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Completions(pub(super) [u64; KINDS]);

impl Completions {
    /// How many had this status; of a status without a name, how many had any such.
    #[must_use]
    pub fn count(&self, status: WcStatus) -> u64 {
        self.0[kind(status)]
    }

    /// How many had a status without a name ([C3](cq_core::contract#c3)).
    #[must_use]
    pub const fn unknown(&self) -> u64 {
        self.0[UNKNOWN]
    }

    /// How many there were.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |total, count| total.wrapping_add(*count))
    }

    /// The numbers by status, in ascending order, 0 included; `None` is any status without a name.
    pub fn iter(&self) -> impl Iterator<Item = (Option<WcStatus>, u64)> {
        self.0.iter().enumerate().map(|(kind, count)| (WcStatus::KNOWN.get(kind).copied(), *count))
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<LABEL$}{}", "polls", Grouped(self.polls))?;
        part(f, "empty", self.empty_polls)?;
        if self.failed_polls > 0 {
            part(f, "failed", self.failed_polls)?;
        }
        row(f, "completions", self.completions.total())?;
        for (status, count) in self.completions.iter().filter(|(_, count)| *count > 0) {
            match status {
                Some(status) => part(f, status, count)?,
                None => part(f, "unknown", count)?,
            }
        }
        row(f, "arms", self.arms)?;
        row(f, "events", self.events)?;
        part(f, "spurious", self.spurious_events)?;
        row(f, "overruns", self.overruns)?;
        row(f, "high-water mark", self.high_water)
    }
}

/// The width of the first column: the longest text of a status, indented.
const LABEL: usize = 36;

/// A line below the first.
fn row(f: &mut fmt::Formatter<'_>, label: &str, count: u64) -> fmt::Result {
    write!(f, "\n{label:<LABEL$}{}", Grouped(count))
}

/// A line for a part of what is above, indented.
fn part(f: &mut fmt::Formatter<'_>, label: impl fmt::Display, count: u64) -> fmt::Result {
    write!(f, "\n  {label:<width$}{}", Grouped(count), width = LABEL - 2)
}

/// A number in groups of three digits, aligned to the right.
struct Grouped(u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// As long as the largest number.
        const MOST: usize = "18,446,744,073,709,551,615".len();
        let (mut text, mut start, mut rest) = ([b','; MOST], MOST, self.0);
        loop {
            start -= 1;
            text[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
            // The comma is there.
            start -= usize::from((MOST - start) % 4 == 3);
        }
        let text = str::from_utf8(&text[start..]).map_err(|_| fmt::Error)?;
        write!(f, "{text:>14}")
    }
}
