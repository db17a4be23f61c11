//! The access path to the memory of each other process.

use crate::protocol::lock::AttachmentId;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::memory::Memory;
use crate::memory::remote::Process;
use crate::memory::transfer::Trouble;
use crate::shm::liveness::Liveness;
use crate::sync;

/// How the memory of a process is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPath {
    /// This process copies, by system calls.
    Direct(Process),
    /// The other process copies.
    Service,
    /// The process is dead.
    None,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Duration,
    path: AccessPath,
}

/// The access path to each process, by attachment index, with the time of its check.
#[derive(Debug)]
pub struct AccessPaths {
    seen: Vec<Mutex<Option<Seen>>>,
    by_service: bool,
}

impl AccessPaths {
    /// How long a path is used without another check. If it is no longer right, the next call by that pid fails.
    const FRESH: Duration = Duration::from_millis(250);

    /// For so many processes.
    pub fn new(processes: u32, by_service: bool) -> Self {
        Self { seen: (0..processes).map(|_| Mutex::new(None)).collect(), by_service }
    }

    /// The access path to a process now.
    pub fn of(&self, memory: &'static Memory, attachment: AttachmentId) -> AccessPath {
        let Some(mut seen) = self.seen(attachment) else { return AccessPath::None };
        let now = now();
        match *seen {
            Some(last) if now < last.at + Self::FRESH => return last.path,
            _ => {}
        }
        let path = match memory.shm.liveness(attachment) {
            Liveness::Dead => AccessPath::None,
            Liveness::Alive { pid: Some(pid) } if !self.by_service => {
                Process::of(memory, attachment, pid).map_or(AccessPath::Service, AccessPath::Direct)
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

    /// Handles an error of the system. If it returns `Ok`, the caller asks for the path again.
    ///
    /// # Errors
    /// The copy can't succeed.
    pub fn learn(
        &self,
        memory: &'static Memory,
        attachment: AttachmentId,
        process: Process,
        errno: Errno,
    ) -> Result<(), Trouble> {
        match errno {
            Errno::FAULT => Err(Trouble::Fault),
            Errno::SRCH => self.is_gone(memory, attachment, process),
            _ => {
                self.is_refused(attachment);
                Ok(())
            }
        }
    }

    /// Handles a pid that is not found. If the process lives all the same, its first thread has ended.
    fn is_gone(
        &self,
        memory: &'static Memory,
        attachment: AttachmentId,
        process: Process,
    ) -> Result<(), Trouble> {
        self.forget(attachment);
        match self.of(memory, attachment) {
            AccessPath::None => return Err(Trouble::NoAnswer),
            AccessPath::Direct(now) if now == process => self.is_refused(attachment),
            _ => {}
        }
        Ok(())
    }

    fn forget(&self, attachment: AttachmentId) {
        if let Some(mut seen) = self.seen(attachment) {
            *seen = None;
        }
    }

    /// Uses the service of a process for a while: the system refuses.
    fn is_refused(&self, attachment: AttachmentId) {
        if let Some(mut seen) = self.seen(attachment) {
            *seen = Some(Seen { at: now(), path: AccessPath::Service });
        }
    }

    fn seen(&self, attachment: AttachmentId) -> Option<MutexGuard<'_, Option<Seen>>> {
        let seen = self.seen.get(attachment.index())?;
        Some(sync::lock(seen))
    }
}

/// The time, from a coarse clock that lags by some milliseconds: a precise one costs too much here.
fn now() -> Duration {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests;
