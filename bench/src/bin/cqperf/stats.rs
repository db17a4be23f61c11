//! What is counted and measured.

use std::ops::Add;

use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, PollCq, PollError};
use cq_core::wc::Wc;
use cq_verbs::polling::{ArmWc, PollWc};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// How often completion queues were polled, and what for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Polls.
    pub polls: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Completions found.
    pub completions: u64,
}

impl Add for Tally {
    type Output = Self;

    /// Saturates, since one of the two may be what another process says.
    fn add(self, other: Self) -> Self {
        Self {
            polls: self.polls.saturating_add(other.polls),
            empty_polls: self.empty_polls.saturating_add(other.empty_polls),
            completions: self.completions.saturating_add(other.completions),
        }
    }
}

/// Counts the polls of any transport.
pub struct Counted<T> {
    /// The transport.
    pub transport: T,
    /// The counts so far.
    pub tally: Tally,
}

impl<T: PollWc> PollCq for Counted<T> {
    type Entry = Wc;

    #[inline]
    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let count = self.transport.poll_into(out)?;
        self.tally.polls += 1;
        self.tally.empty_polls += u64::from(count == 0);
        self.tally.completions += count as u64;
        Ok(count)
    }
}

impl<T: ArmWc> Arm for Counted<T> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.transport.arm(on)
    }

    fn key(&self) -> CqKey {
        self.transport.key()
    }
}

/// Latencies in nanoseconds, up to a minute; what took longer counts as a minute.
pub struct Latencies(Histogram<u64>);

impl Latencies {
    const LONGEST: u64 = 60_000_000_000;

    /// None yet. All memory that recording needs is allocated here. Three digits of what is recorded are kept.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, Self::LONGEST, 3);
        Self(histogram.expect("these bounds are those of a histogram"))
    }

    /// Adds one.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds);
    }

    /// What is reported of them; `None` if there is none.
    pub fn summary(&self) -> Option<Latency> {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|at| self.0.value_at_quantile(at));
        (!self.0.is_empty()).then(|| Latency { p50, p99, p999, max: self.0.max() })
    }
}

/// What is reported of latencies, in nanoseconds: how long half, 99 of 100, 999 of 1,000, and all took at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    pub p50: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_what_was_recorded() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.summary(), None);
        (1..=1_000).for_each(|nanoseconds| latencies.record(nanoseconds));
        let expected = Latency { p50: 500, p99: 990, p999: 999, max: 1_000 };
        assert_eq!(latencies.summary(), Some(expected));
        // What is out of bounds is recorded as the bound.
        latencies.record(u64::MAX);
        let longest = latencies.summary().unwrap().max;
        assert!((Latencies::LONGEST..Latencies::LONGEST / 100 * 101).contains(&longest));
    }

    #[test]
    fn polls_are_counted_empty_ones_too() {
        struct Script(Vec<usize>);
        impl PollCq for Script {
            type Entry = Wc;

            fn poll_into(&mut self, _: &mut [Wc]) -> Result<usize, PollError> {
                self.0.pop().ok_or(PollError::Device(5))
            }
        }
        let transport = Script(vec![0, 3, 0, 1]);
        let mut counted = Counted { transport, tally: Tally::default() };
        while counted.poll_into(&mut []).is_ok() {}
        assert_eq!(counted.tally, Tally { polls: 4, empty_polls: 2, completions: 4 });
    }
}
