//! The two cores that the benches run on.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The first two cores that the process may use.
#[derive(Clone, Copy)]
pub struct Cores {
    home: usize,
    away: Option<usize>,
}

impl Cores {
    /// Chooses the cores and puts the calling thread on the first.
    pub fn settle() -> io::Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let home = cpus.next().ok_or(io::ErrorKind::NotFound)?;
        let cores = Self { home, away: cpus.next() };
        pin(home)?;
        Ok(cores)
    }

    /// Why a measurement that takes this many cores can't be made, if so.
    pub fn why_not(&self, cores: usize) -> Option<&'static str> {
        (cores > 1 && self.away.is_none()).then_some("this process may use one core only")
    }

    /// Puts the calling thread on the other core; leaves it where it is if there is none.
    pub fn go_away(&self) {
        pin(self.away.unwrap_or(self.home)).expect("the core was allowed when the bench began");
    }
}

fn pin(cpu: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}
