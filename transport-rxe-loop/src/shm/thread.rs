//! The service thread of a process: started when it is first needed, and woken by any process.
//!
//! Who has something for it writes that down, then counts the word of the process, and wakes it. The thread reads that
//! word before it looks, and sleeps only while it is the same: nothing comes unseen in between. What it does, the device
//! [says](ServiceThread::serves).

use std::fmt;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::thread::futex;
use rustix::time::Timespec;

use super::signals;
use crate::sync::{self, AtomicU32};

type Serve = dyn Fn() + Send + Sync;

/// The service thread, or that there is none yet.
pub struct ServiceThread {
    serve: OnceLock<&'static Serve>,
    started: Mutex<bool>,
    /// 1 once somebody has asked for a look at the other processes.
    watch: AtomicU32,
}

impl ServiceThread {
    /// None yet.
    pub const fn new() -> Self {
        Self { serve: OnceLock::new(), started: Mutex::new(false), watch: AtomicU32::new(0) }
    }

    /// Says what the thread does, which never returns. Before anybody can need it.
    pub fn serves(&self, serve: impl Fn() + Send + Sync + 'static) {
        self.serve.get_or_init(|| Box::leak(Box::new(serve)));
    }

    /// Sees to it that there is the thread.
    ///
    /// # Errors
    /// The system refuses one.
    pub fn start(&self) -> io::Result<()> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&serve) = self.serve.get().filter(|_| !*started) {
            signals::spawn_deaf("rxe-loop", serve)?;
            *started = true;
        }
        Ok(())
    }

    /// Whether there is the thread.
    #[cfg(test)]
    pub fn is_started(&self) -> bool {
        *self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a look at the other processes.
    pub fn ask_to_watch(&self) {
        sync::release(&self.watch, 1);
    }

    /// Whether somebody has asked for a look at the other processes since this was called last.
    pub fn is_asked_to_watch(&self) -> bool {
        sync::swap_if(&self.watch, 1, 0).is_ok()
    }
}

impl fmt::Debug for ServiceThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceThread").finish_non_exhaustive()
    }
}

/// Wakes the service thread that sleeps on this word.
pub fn wake(calls: &AtomicU32) {
    sync::count(calls);
    // Nobody may be asleep, and whoever is can't be told that this failed.
    let _ = futex::wake(calls, futex::Flags::empty(), 1);
}

/// Sleeps while the word is what was seen, until `limit` at most; `None` is without an end.
pub fn sleep(calls: &AtomicU32, seen: u32, limit: Option<Duration>) {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let _ = futex::wait(calls, futex::Flags::empty(), seen, limit.as_ref());
}
