//! By which means each of the other processes is reached.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::fabric::Fabric;
use crate::memory::reach::Trouble;
use crate::memory::remote::Process;
use crate::shm::liveness::Liveness;

/// How to get at the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mean {
    /// The system moves bytes of this process.
    Direct(Process),
    /// The process itself moves them.
    Service,
    /// It is dead.
    None,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Duration,
    mean: Mean,
}

/// What was found out of each process, by its place.
#[derive(Debug)]
pub struct Means {
    seen: Vec<Mutex<Option<Seen>>>,
    by_service: bool,
}

impl Means {
    /// For how long a process is taken to be reached so. Where it is not any more, the next call that is made by its
    /// number fails.
    const FRESH: Duration = Duration::from_millis(250);

    /// For so many processes.
    pub fn new(processes: u32, by_service: bool) -> Self {
        Self { seen: (0..processes).map(|_| Mutex::new(None)).collect(), by_service }
    }

    /// How to reach a process now.
    pub fn of(&self, fabric: &'static Fabric, place: u16) -> Mean {
        let Some(mut seen) = self.seen(place) else { return Mean::None };
        let now = now();
        match *seen {
            Some(last) if now < last.at + Self::FRESH => return last.mean,
            _ => {}
        }
        let mean = match fabric.liveness(place) {
            Liveness::Dead => Mean::None,
            Liveness::Alive { pid: Some(pid) } if !self.by_service => {
                fabric.meet(place, pid).map_or(Mean::Service, Mean::Direct)
            }
            Liveness::Alive { .. } => Mean::Service,
        };
        *seen = (mean != Mean::None).then_some(Seen { at: now, mean });
        drop(seen);
        if mean == Mean::None {
            fabric.suspect();
        }
        mean
    }

    /// What to do about an answer of the system's that is an error: nothing, but ask how to go on.
    ///
    /// # Errors
    /// It can't go on.
    pub fn learn(
        &self,
        fabric: &'static Fabric,
        place: u16,
        process: Process,
        errno: Errno,
    ) -> Result<(), Trouble> {
        match errno {
            Errno::FAULT => Err(Trouble::Fault),
            Errno::SRCH => self.is_gone(fabric, place, process),
            _ => {
                self.is_refused(place);
                Ok(())
            }
        }
    }

    /// It is not there by this number, or not any more. If it is all the same, its first thread has ended.
    fn is_gone(
        &self,
        fabric: &'static Fabric,
        place: u16,
        process: Process,
    ) -> Result<(), Trouble> {
        self.forget(place);
        match self.of(fabric, place) {
            Mean::None => return Err(Trouble::NoAnswer),
            Mean::Direct(now) if now == process => self.is_refused(place),
            _ => {}
        }
        Ok(())
    }

    fn forget(&self, place: u16) {
        if let Some(mut seen) = self.seen(place) {
            *seen = None;
        }
    }

    /// The system does not move bytes of the process, for the time being.
    fn is_refused(&self, place: u16) {
        if let Some(mut seen) = self.seen(place) {
            *seen = Some(Seen { at: now(), mean: Mean::Service });
        }
    }

    fn seen(&self, place: u16) -> Option<MutexGuard<'_, Option<Seen>>> {
        let seen = self.seen.get(usize::from(place))?;
        Some(seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The time, as of some milliseconds ago: a good clock takes longer than it may here.
fn now() -> Duration {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests;
