//! What was injected: for a test that fails to print, and for one to see that something was.

use core::fmt;

/// How many faults of each kind an injector has injected, and with which seed it would again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Injected {
    /// What the dice began with.
    pub seed: u64,
    /// Completions that came as failures.
    pub failed: u64,
    /// Completions that came as flushed, behind those.
    pub flushed: u64,
    /// Completions that were held back.
    pub delayed: u64,
    /// Completions that overtook others.
    pub reordered: u64,
    /// Completions that an overrun dropped.
    pub dropped: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Events for nothing, of either kind.
    pub spurious: u64,
    /// Events that came twice.
    pub duplicated: u64,
}

impl fmt::Display for Injected {
    /// The seed, and what there was any of.
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
