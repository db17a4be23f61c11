//! By which means each of the other processes is reached.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::memory::Memory;
use crate::memory::remote::Process;
use crate::memory::transfer::Trouble;
use crate::shm::liveness::Liveness;

/// How to get at the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPath {
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
    path: AccessPath,
}

/// What was found out of each process, by its place.
#[derive(Debug)]
pub struct AccessPaths {
    seen: Vec<Mutex<Option<Seen>>>,
    by_service: bool,
}

impl AccessPaths {
    /// For how long a process is taken to be reached so. Where it is not any more, the next call that is made by its
    /// number fails.
    const FRESH: Duration = Duration::from_millis(250);

    /// For so many processes.
    pub fn new(processes: u32, by_service: bool) -> Self {
        Self { seen: (0..processes).map(|_| Mutex::new(None)).collect(), by_service }
    }

    /// How to reach a process now.
    pub fn of(&self, memory: &'static Memory, place: u16) -> AccessPath {
        let Some(mut seen) = self.seen(place) else { return AccessPath::None };
        let now = now();
        match *seen {
            Some(last) if now < last.at + Self::FRESH => return last.path,
            _ => {}
        }
        let path = match memory.shm.liveness(place) {
            Liveness::Dead => AccessPath::None,
            Liveness::Alive { pid: Some(pid) } if !self.by_service => {
                Process::of(memory, place, pid).map_or(AccessPath::Service, AccessPath::Direct)
            }
            Liveness::Alive { .. } => AccessPath::Service,
        };
        *seen = (path != AccessPath::None).then_some(Seen { at: now, path });
        drop(seen);
        if path == AccessPath::None {
            memory.suspect();
        }
        path
    }

    /// What to do about an answer of the system's that is an error: nothing, but ask how to go on.
    ///
    /// # Errors
    /// It can't go on.
    pub fn learn(
        &self,
        memory: &'static Memory,
        place: u16,
        process: Process,
        errno: Errno,
    ) -> Result<(), Trouble> {
        match errno {
            Errno::FAULT => Err(Trouble::Fault),
            Errno::SRCH => self.is_gone(memory, place, process),
            _ => {
                self.is_refused(place);
                Ok(())
            }
        }
    }

    /// It is not there by this number, or not any more. If it is all the same, its first thread has ended.
    fn is_gone(
        &self,
        memory: &'static Memory,
        place: u16,
        process: Process,
    ) -> Result<(), Trouble> {
        self.forget(place);
        match self.of(memory, place) {
            AccessPath::None => return Err(Trouble::NoAnswer),
            AccessPath::Direct(now) if now == process => self.is_refused(place),
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
            *seen = Some(Seen { at: now(), path: AccessPath::Service });
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
