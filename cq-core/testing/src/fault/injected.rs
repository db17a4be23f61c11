//! The faults that were injected, for a test to print and to check.

use core::fmt;

/// How many faults of each kind an injector has injected, and the seed that repeats them.
///
/// ```
/// use cq_core::transport::{CqKey, EventError, Events};
/// use cq_testing::fake::Script;
/// use cq_testing::fault::{FaultInjector, Faults, When};
///
/// let key = CqKey { index: 0, generation: 1 };
/// let (script, faults) = (Script::<4>::new(key), Faults::seeded(7).spurious(When::nth(1), key));
/// let mut channel = FaultInjector::<_, 0>::new(&script, &faults);
/// assert_eq!(channel.take_event()?, Some(key)); // the script has no event
/// let injected = channel.injected();
/// assert_eq!((injected.spurious, injected.to_string().as_str()), (1, "seed 7, 1 spurious"));
/// # Ok::<(), EventError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Injected {
    /// The plan's seed.
    pub seed: u64,
    /// Completions that were returned as failures.
    pub failed: u64,
    /// Completions that were returned as flushed after a failure.
    pub flushed: u64,
    /// Completions that were held back.
    pub delayed: u64,
    /// Completions that overtook others.
    pub reordered: u64,
    /// Completions that an overrun dropped.
    pub dropped: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Spurious events, completion and asynchronous.
    pub spurious: u64,
    /// Events that were returned twice.
    pub duplicated: u64,
}

impl fmt::Display for Injected {
    /// The seed, and each count that is not 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}", self.seed)?;
        let counts = [
            (self.failed, "failed"),
            (self.flushed, "flushed"),
            (self.delayed, "delayed"),
            (self.reordered, "reordered"),
            (self.dropped, "dropped"),
            (self.refused, "refused"),
            (self.spurious, "spurious"),
            (self.duplicated, "duplicated"),
        ];
        for (count, name) in counts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {name}")?;
        }
        Ok(())
    }
}
