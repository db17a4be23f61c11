//! An [observer](crate::observe) that writes what fails on a queue to [`log`]. Feature `log`.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::logging::Logger;
//! use cq_core::observe::Observed;
//! use cq_core::queue::SoftCq;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let mut storage = SoftCq::<4>::new();
//! let (mut device, consumer) = storage.split();
//! let mut cq = CompletionQueue::new(Observed::new(consumer, Logger::new("replies")));
//! device.push(&Wc::new(7, WcStatus::RETRY_EXC_ERR, 17))?;
//! cq.poll(&mut [Wc::default(); 4])?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With `env_logger`, this prints:
//!
//! ```text
//! [WARN  cq_core::logging] replies: request 7 of queue pair 17 failed: transport retry counter exceeded (status 12, vendor error 0x0)
//! ```
//!
//! | record | level |
//! |---|---|
//! | a failed completion | warn |
//! | a flushed one: the request did not fail itself | debug |
//! | polling the queue fails, the first time with each kind of error | error |
//! | the queue is closed, the first time | debug |
//!
//! Nothing else of this crate writes to a log: all other errors are returned to the caller, who knows what they mean for
//! the program. The crate `log` drops records of levels that are disabled before they are formatted.

use core::fmt;
use core::mem::{Discriminant, discriminant};

use crate::observe::Observer;
use crate::transport::{PollCq, PollError};
use crate::wc::{Wc, WcStatus, all_succeeded};

/// The observer that writes to the log.
#[derive(Clone, Debug)]
pub struct Logger<N> {
    name: N,
    /// The error that the last failed poll returned.
    reported: Option<Discriminant<PollError>>,
}

impl<N: fmt::Display> Logger<N> {
    /// The observer of a queue, which records name so.
    pub const fn new(name: N) -> Self {
        Self { name, reported: None }
    }

    #[cold]
    #[inline(never)]
    fn log_failures(&self, batch: &[Wc]) {
        for failed in batch.iter().filter_map(|wc| wc.result().err()) {
            let level = match failed.status() {
                WcStatus::WR_FLUSH_ERR => log::Level::Debug,
                _ => log::Level::Warn,
            };
            let (name, wr_id, qp_num) = (&self.name, failed.wr_id(), failed.qp_num());
            log::log!(level, "{name}: request {wr_id} of queue pair {qp_num} failed: {failed}");
        }
    }
}

impl<N: fmt::Display> Observer for Logger<N> {
    #[inline(always)]
    fn polled(&mut self, _: &impl PollCq, _: usize, batch: &[Wc]) {
        if !all_succeeded(batch) {
            self.log_failures(batch);
        }
    }

    #[cold]
    #[inline(never)]
    fn failed(&mut self, error: PollError) {
        if self.reported.replace(discriminant(&error)) == Some(discriminant(&error)) {
            return;
        }
        let level = match error {
            PollError::Closed => log::Level::Debug,
            _ => log::Level::Error,
        };
        log::log!(level, "{}: {error}", self.name);
    }
}
