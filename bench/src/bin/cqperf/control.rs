//! What the ends of a job share that run in one process: the clock, the progress, and when to leave.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use cq_core::cq::WaitError;
use cq_core::transport::{PollError, PostError};
use cq_core::wc::Failed;

use crate::interrupt::Stop;
use crate::link::LinkError;
use crate::payload::Wrong;

/// Shared by the ends of one job that run in this process.
pub struct Control<'a> {
    stop: &'a Stop,
    meeting: &'a dyn Meeting,
    epoch: Instant,
    failure: OnceLock<EndFailure>,
    started: AtomicU64,
    progress: Progress,
}

/// On cache lines of its own: one end writes it all the time, and the other reads what is beside it.
#[derive(Default)]
#[repr(align(128))]
struct Progress(AtomicU64);

/// Where the two ends of a job wait for each other.
pub trait Meeting: Sync {
    /// Waits until the other end is here too, or there is a reason to leave.
    fn meet(&self, stop: &Stop) -> Result<(), Failure>;
}

/// Where two threads meet: counts who is here.
#[derive(Default)]
pub struct Threads(AtomicU32);

impl Meeting for Threads {
    fn meet(&self, stop: &Stop) -> Result<(), Failure> {
        const ENDS: u32 = 2;
        self.0.fetch_add(1, Ordering::Relaxed);
        while self.0.load(Ordering::Relaxed) < ENDS && !stop.asked() {
            thread::yield_now();
        }
        Ok(())
    }
}

impl<'a> Control<'a> {
    /// For a job that starts now, and whose ends meet there.
    pub fn new(stop: &'a Stop, meeting: &'a dyn Meeting) -> Self {
        Self {
            stop,
            meeting,
            epoch: Instant::now(),
            failure: OnceLock::new(),
            started: AtomicU64::new(0),
            progress: Progress::default(),
        }
    }

    /// Nanoseconds since the job began: one clock for both ends, if both are in this process.
    #[inline]
    pub fn now(&self) -> u64 {
        // Overflows after 584 years.
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Whether to leave what is not done undone.
    #[inline]
    pub fn leave(&self) -> bool {
        self.stop.asked()
    }

    /// Waits for the other end to be ready too.
    pub fn meet(&self) -> Result<(), Failure> {
        self.meeting.meet(self.stop)?;
        self.started.store(self.now(), Ordering::Relaxed);
        Ok(())
    }

    /// Nanoseconds since the ends met.
    pub fn elapsed(&self) -> u64 {
        self.now() - self.started.load(Ordering::Relaxed)
    }

    /// Says how many iterations are done.
    #[inline]
    pub fn advance(&self, done: u64) {
        self.progress.0.store(done, Ordering::Relaxed);
    }

    /// How many iterations are done.
    pub fn done(&self) -> u64 {
        self.progress.0.load(Ordering::Relaxed)
    }

    /// Runs the work of one end. If it fails, or panics, the other one leaves too.
    pub fn oversee(&self, end: &'static str, work: impl FnOnce() -> Result<(), Failure>) {
        let _guard = LeaveOnPanic(self.stop);
        if let Err(why) = work() {
            // The first failure is the cause; what the other end says then follows from it.
            let _ = self.failure.set(EndFailure { end, why });
            self.stop.leave();
        }
    }

    /// What went wrong first, if something did.
    pub fn into_failure(self) -> Option<EndFailure> {
        self.failure.into_inner()
    }
}

struct LeaveOnPanic<'a>(&'a Stop);

impl Drop for LeaveOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.leave();
        }
    }
}

/// Which end failed, and why.
#[derive(Debug, thiserror::Error)]
#[error("the {end} failed")]
pub struct EndFailure {
    /// Which end, as the job calls it.
    pub end: &'static str,
    /// Why.
    #[source]
    pub why: Failure,
}

/// Why one end failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A message is not what was sent.
    #[error(transparent)]
    Payload(#[from] Wrong),
    /// A message has another length.
    #[error("message {number} has {found} bytes instead of {expected}")]
    Length {
        /// Which message.
        number: u64,
        /// What its completion says.
        found: u32,
        /// What was sent.
        expected: u32,
    },
    /// Completions do not come in the order of their requests.
    #[error("request {found} completed where request {expected} was next")]
    Order {
        /// What the completion says.
        found: u64,
        /// What was next.
        expected: u64,
    },
    /// A counter is not where it should be.
    #[error("the counter was at {found} instead of {expected}")]
    Count {
        /// What an atomic found, or left in the end.
        found: u64,
        /// How many there were before.
        expected: u64,
    },
    /// A request failed.
    #[error("request {number} failed", number = .0.wr_id())]
    Completion(#[from] Failed),
    /// A request was refused.
    #[error("cannot post")]
    Post(#[from] PostError),
    /// The completion queue failed.
    #[error(transparent)]
    Poll(#[from] PollError),
    /// Waiting failed.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// A completion is missing.
    #[error("no completion came for {seconds} s")]
    Stalled {
        /// How long it was waited for.
        seconds: u64,
    },
    /// The process of the other end can't be reached.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The process of the other end said so.
    #[error("{0}")]
    Told(String),
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use cq_core::causes::Causes;

    use super::*;

    #[test]
    fn the_first_failure_is_the_one_that_is_told() {
        let (stop, meeting) = (Stop::default(), Threads::default());
        let control = Control::new(&stop, &meeting);
        control.oversee("client", || Err(Failure::Stalled { seconds: 1 }));
        control.oversee("server", || Err(Failure::Order { found: 1, expected: 0 }));
        let failure = control.into_failure().unwrap();
        let told = Causes(&failure).to_string();
        assert_eq!(told, "the client failed: no completion came for 1 s");
    }

    #[test]
    fn an_end_that_panics_makes_the_other_one_leave() {
        let (stop, meeting) = (Stop::default(), Threads::default());
        let control = Control::new(&stop, &meeting);
        let end = AssertUnwindSafe(|| control.oversee("client", || panic!("as it should")));
        assert!(catch_unwind(end).is_err());
        assert!(control.leave());
    }

    #[test]
    fn an_end_that_is_done_does_not() {
        let (stop, meeting) = (Stop::default(), Threads::default());
        let control = Control::new(&stop, &meeting);
        control.oversee("client", || Ok(()));
        assert!(!control.leave());
    }
}
