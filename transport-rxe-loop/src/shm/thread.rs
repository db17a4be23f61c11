//! The service thread of a process: started when it is first needed, and woken by any process.
//!
//! A process that has work for the thread records it first, then increments the thread's word, and wakes it. The
//! thread reads the word before it checks for work, and waits only while the word is unchanged, so no wake-up is
//! lost. The device sets [what it does](ServiceThread::serves).

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;

use super::signals;
use super::system::SystemError;
use super::table::opaque;
use crate::sync::{self, AtomicU32};
use crate::trace;

type Serve = dyn Fn() + Send + Sync;

/// The service thread, started or not.
#[derive(Default)]
pub struct ServiceThread {
    serve: OnceLock<&'static Serve>,
    started: Mutex<bool>,
    /// 1 if a check of the other processes was requested.
    watch: AtomicU32,
}

impl ServiceThread {
    /// Sets what the thread does; `serve` never returns. To be called before the thread can be needed.
    pub fn serves(&self, serve: impl Fn() + Send + Sync + 'static) {
        self.serve.get_or_init(|| Box::leak(Box::new(serve)));
    }

    /// Starts the thread, unless it is started.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(&self) -> Result<(), SystemError> {
        let mut started = sync::lock(&self.started);
        if let Some(&serve) = self.serve.get().filter(|_| !*started) {
            match signals::spawn_without_signals("rxe-loop", serve) {
                Ok(()) => *started = true,
                Err(error) => {
                    drop(started);
                    let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
                    let error = SystemError::of("clone", "the service thread", errno);
                    trace::event!(WARN, error = %error, "service thread refused by the system");
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Whether the thread is started.
    #[cfg(test)]
    pub fn is_started(&self) -> bool {
        *sync::lock(&self.started)
    }

    /// Requests a check of the other processes.
    pub fn ask_to_watch(&self) {
        sync::release(&self.watch, 1);
    }

    /// Whether a check of the other processes was requested since the last call.
    pub fn is_asked_to_watch(&self) -> bool {
        sync::cas(&self.watch, 1, 0).is_ok()
    }
}

opaque!(ServiceThread);

/// Wakes the service thread that waits on this word.
pub fn wake(calls: &AtomicU32) {
    sync::count(calls);
    // The thread may not be waiting; a failure could not be reported.
    let _ = futex::wake(calls, futex::Flags::empty(), 1);
}

/// Waits while the word is `seen`, for at most `limit`; `None` is no limit.
pub fn sleep(calls: &AtomicU32, seen: u32, limit: Option<Duration>) {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let _ = futex::wait(calls, futex::Flags::empty(), seen, limit.as_ref());
}
