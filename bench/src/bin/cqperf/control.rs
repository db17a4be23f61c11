//! What an end at work shares with the rest of its process: the clock, and the progress.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::interrupt::Stop;
use crate::link::{Link, LinkError};

/// Of one end, and of who watches it.
pub struct Control<'a> {
    stop: &'a Stop,
    link: &'a Link,
    epoch: Instant,
    started: AtomicU64,
    progress: Progress,
}

/// On cache lines of its own: the end writes it all the time, and others read what is beside it.
#[derive(Default)]
#[repr(align(128))]
struct Progress(AtomicU64);

impl<'a> Control<'a> {
    /// For an end of a job that starts now.
    pub fn new(stop: &'a Stop, link: &'a Link) -> Self {
        /// One clock for both ends, if both are in this process.
        static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);
        let started = AtomicU64::new(0);
        Self { stop, link, epoch: *EPOCH, started, progress: Progress::default() }
    }

    /// Nanoseconds since this process began its first job.
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

    /// Waits for the other end to be ready too, or for a reason to leave.
    pub fn meet(&self) -> Result<(), LinkError> {
        self.link.meet(self.stop)?;
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
}
