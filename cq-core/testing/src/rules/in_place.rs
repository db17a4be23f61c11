//! The rule of entries that are taken in place.

use cq_core::queue::{Consumer, OnChannel};
use cq_core::transport::{PollCq, PollError, Signal};

use super::software::Sides;
use super::{
    Check, Consume, Fixture, Kind, Numbered, Produce, RuleError, Software, buffer, checks, holds,
    poll, software,
};

/// A consumer whose entries can be taken in place. [`Consumer`] is one.
pub trait InPlace: Consume {
    /// Takes up to `most` entries, calls `each` with each one, and ends as `taken` says. Returns their number.
    ///
    /// # Errors
    /// The queue has ended.
    fn take(
        &mut self,
        most: usize,
        taken: Taken,
        each: impl FnMut(&Self::Entry),
    ) -> Result<usize, PollError>;
}

/// How a batch ends that was taken in place.
///
/// ```
/// use cq_core::channel::flag::Flag;
/// use cq_core::queue::SoftCq;
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_testing::rules::{InPlace, Taken};
///
/// let (mut flag, mut storage) = (Flag::new(), SoftCq::<4>::new());
/// let (raiser, _events) = flag.split();
/// let (mut producer, mut consumer) = storage.split_with(raiser);
/// producer.push_batch(&[1, 2].map(|wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 5)))?;
/// assert_eq!(consumer.take(4, Taken::First(1), |_| {})?, 2); // both are lent, one is taken
/// assert_eq!(consumer.take(4, Taken::All, |wc| assert_eq!(wc.wr_id(), 2))?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is dropped.
    All,
    /// It is told that no more than so many were taken.
    First(usize),
    /// It is leaked.
    Leaked,
}

impl<E: Numbered, S: Signal> InPlace for Consumer<'_, E, OnChannel<S>> {
    fn take(
        &mut self,
        most: usize,
        taken: Taken,
        each: impl FnMut(&E),
    ) -> Result<usize, PollError> {
        let mut batch = self.poll_in_place(most)?;
        let count = batch.len();
        batch.iter().for_each(each);
        match taken {
            Taken::All => drop(batch),
            Taken::First(count) => batch.truncate(count),
            Taken::Leaked => core::mem::forget(batch),
        }
        Ok(count)
    }
}

/// The checks of a [software queue](software) whose entries can be taken in place: [S7](cq_core::contract#s7) too.
pub fn in_place<S: Software<Consumer: InPlace>>() -> impl Iterator<Item = Check> {
    software::<S>().chain(checks![s07_in_place::<S>])
}

/// Entries that are taken in place are those that a poll would return next. As many slots are released as were taken.
fn s07_in_place<S: Software<Consumer: InPlace>>() -> Result<(), RuleError> {
    let mut sides = Sides::<S>::new();
    let (capacity, mut pushed, mut polled) = (S::CAPACITY as u64, 0, 0);
    for round in 0..6 * S::CAPACITY {
        while pushed - polled < capacity {
            let stored = sides.producer.push(&S::Entry::pushed(Kind::Receive, pushed));
            holds(stored.is_ok(), "S7", "a slot was not released with the batch that was dropped")?;
            pushed += 1;
        }
        let first = 1 + round % S::CAPACITY;
        for (taken, released) in [
            (Taken::Leaked, 0),
            (Taken::First(0), 0),
            (Taken::First(first), first as u64),
            (Taken::All, pushed - polled - first as u64),
        ] {
            let (mut next, mut is_next) = (polled, true);
            let count = sides.consumer.take(64, taken, |entry| {
                // Spare bits, which hold a generation, may differ.
                is_next &= entry.number() == S::Entry::polled(Kind::Receive, next).number();
                next += 1;
            });
            let how = "what was taken in place is not what a poll returns next";
            holds(is_next && next == pushed, "S7", how)?;
            holds(count == Ok((pushed - polled) as usize), "S7", how)?;
            polled += released;
        }
        let how = "what was taken in place came again";
        holds(poll(&mut sides.consumer, &mut buffer::<_, 2>())? == 0, "S7", how)?;
    }
    leaked_slots_are_kept::<S>()
}

/// A batch that is leaked releases nothing: the queue is as full as before.
fn leaked_slots_are_kept<S: Software<Consumer: InPlace>>() -> Result<(), RuleError> {
    let (mut sides, mut count) = (Sides::<S>::new(), 0);
    while count < 64 && sides.producer.push(&S::Entry::pushed(Kind::Receive, count)).is_ok() {
        count += 1;
    }
    let taken = sides.consumer.take(64, Taken::Leaked, |_| {});
    let is_full = sides.producer.push(&S::Entry::pushed(Kind::Receive, count)).is_err();
    holds(taken == Ok(count as usize) && is_full, "S7", "a batch that was leaked released slots")?;
    let mut out = buffer::<_, 64>();
    let polled = sides.consumer.poll_into(&mut out);
    let is_first = out[0] == S::Entry::polled(Kind::Receive, 0);
    holds(polled == Ok(count as usize) && is_first, "S7", "a batch that was leaked took entries")
}
