//! The two cores that the two ends of a measurement run on.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Two cores that the process may use, as CPU numbers.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    first: Option<usize>,
    /// None, where two threads have to share a CPU.
    second: Option<usize>,
}

impl Cores {
    /// Chooses among what the calling thread may use: the first CPU, and the next one that is not the same
    /// core by another name, if there is one.
    ///
    /// A kernel that does not say what may be used counts as one that allows a single, unnamed core.
    #[must_use]
    pub fn allowed() -> Self {
        let allowed = sched_getaffinity(None).unwrap_or_default();
        let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let first = cpus.next();
        let rest: Vec<usize> = cpus.collect();
        let core = first.and_then(threads);
        let apart = rest.iter().find(|&&cpu| threads(cpu) != core);
        Self { first, second: apart.or(rest.first()).copied() }
    }

    /// Whether two threads have to share a CPU.
    #[must_use]
    pub const fn shared(&self) -> bool {
        self.second.is_none()
    }

    /// Puts the calling thread on the first core, 0, or the second, or the only one. A refusal is no failure: the thread
    /// then runs wherever the kernel puts it.
    pub fn settle(&self, nth: usize) {
        if let Some(cpu) = if nth == 0 { self.first } else { self.second.or(self.first) } {
            let mut only = CpuSet::new();
            only.set(cpu);
            let _ = sched_setaffinity(None, &only);
        }
    }
}

/// The hardware threads of the core that a CPU belongs to, as the kernel lists them.
fn threads(cpu: usize) -> Option<String> {
    fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
        .ok()
}
