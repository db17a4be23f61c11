//! What was injected: for a test that fails to print, and for one to see that something was.

use std::fmt;

/// How many faults of each kind a process was dealt, and with which seed it would be again:
/// [`Context::injected`](crate::Context::injected).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Injected {
    /// What the dice began with.
    pub seed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that were carried out late.
    pub delayed: u64,
    /// Requests that found no receive.
    pub starved: u64,
    /// Peers that stopped.
    pub stopped: u64,
    /// Completion queues that overran.
    pub overrun: u64,
    /// Requests that raised events for nothing.
    pub spurious: u64,
}

impl fmt::Display for Injected {
    /// The seed, and what there was any of.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}", self.seed)?;
        let counts = [
            (self.failed, "failed"),
            (self.delayed, "delayed"),
            (self.starved, "starved"),
            (self.stopped, "stopped"),
            (self.overrun, "overrun"),
            (self.spurious, "spurious"),
        ];
        for (count, name) in counts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {name}")?;
        }
        Ok(())
    }
}
