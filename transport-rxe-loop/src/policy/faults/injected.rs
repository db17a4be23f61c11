//! Counts of injected faults, for a failing test to print and for a test to assert on.

use std::fmt;

/// How many faults of each kind were injected in a process, and the seed that reproduces them:
/// [`Context::injected`](crate::Context::injected).
///
/// ```
/// use transport_rxe_loop::{Faults, OpenOptions, WcStatus, When};
///
/// let faults = Faults::seeded(7).fail(When::chance(0.01), WcStatus::RETRY_EXC_ERR);
/// let fabric = format!("injected-{}", std::process::id());
/// let context = OpenOptions::new().fabric(&fabric).faults(faults).open("loop0")?;
/// let injected = context.injected().ok_or("no faults were requested")?;
/// assert_eq!((injected.seed, injected.failed), (7, 0)); // nothing was posted yet
/// assert_eq!(injected.to_string(), "seed 7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Injected {
    /// The seed of the dice.
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
    /// Requests that raised spurious events.
    pub spurious: u64,
}

impl fmt::Display for Injected {
    /// The seed, and all counts that are not 0.
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
