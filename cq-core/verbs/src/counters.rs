//! Counters of a completion queue: polls, completions by status, arms, events, the overrun, the deepest that it was.
//!
//! A queue counts if it is wrapped; one that is not wrapped contains nothing of this. [`Counters::split`] returns the
//! recorder, which counts as an [observer](cq_core::observe) of the queue, and the counters, which any thread reads while
//! the queue is polled.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::observe::Observed;
//! use cq_core::queue::SoftCq;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_verbs::counters::Counters;
//!
//! let (mut storage, mut counters) = (SoftCq::<4>::new(), Counters::new());
//! let (mut device, consumer) = storage.split();
//! let (recorder, counters) = counters.split();
//! let mut cq = CompletionQueue::new(Observed::new(consumer, recorder));
//!
//! device.push(&Wc::new(1, WcStatus::SUCCESS, 5))?;
//! device.push(&Wc::new(2, WcStatus::RETRY_EXC_ERR, 5))?;
//! device.push(&Wc::new(3, WcStatus::WR_FLUSH_ERR, 5))?;
//! let mut buffer = [Wc::default(); 16];
//! while !cq.poll(&mut buffer)?.is_empty() {}
//!
//! let counts = counters.snapshot();
//! assert_eq!((counts.polls, counts.empty_polls, counts.high_water), (2, 1, 3));
//! assert_eq!(counts.completions.count(WcStatus::RETRY_EXC_ERR), 1);
//! assert_eq!(counts.to_string(), "\
//! polls                                            2
//!   empty                                          1
//! completions                                      3
//!   success                                        1
//!   Work Request Flushed Error                     1
//!   transport retry counter exceeded               1
//! arms                                             0
//! events                                           0
//!   spurious                                       0
//! overruns                                         0
//! high-water mark                                  3");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Queues whose counters live as long as somebody reads them use `Counters::shared` (feature `alloc`), also for a device:
//!
//! ```
//! use std::sync::Arc;
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::observe::Observed;
//! use cq_verbs::counters::{Counters, Recorder};
//! use cq_verbs::device::{Device, DevicePd};
//! use cq_verbs::setup::CreateError;
//!
//! type Counted<Cq> = CompletionQueue<Observed<Cq, Recorder<Arc<Counters>>>>;
//!
//! /// A queue pair with a queue that counts. Prints the counts every minute.
//! fn create<D: Device>(device: &D, pd: &D::Pd) -> Result<(Counted<D::Cq>, D::Qp), CreateError> {
//!     let (recorder, counters) = Counters::shared();
//!     let cq = CompletionQueue::new(Observed::new(device.cq(64).create()?, recorder));
//!     let qp = pd.qp(cq.get_ref()).create()?;
//!     std::thread::spawn(move || loop {
//!         std::thread::sleep(std::time::Duration::from_secs(60));
//!         println!("{}", counters.snapshot());
//!     });
//!     Ok((cq, qp))
//! }
//! ```
//!
//! # What is counted where
//! Polls and arms are counted as they return. Events are counted where the thread that takes them reports them to the queue, by
//! [`Arm::took_events`](cq_core::transport::Arm::took_events), before it polls or arms the queue again:
//! [`wait`](cq_core::cq::CompletionQueue::wait), `next_batch`, `CompletionStream`, `QueueSet` and `WaitSet` do. A program that takes events
//! itself, for [`poll_or_arm`](cq_core::cq::CompletionQueue::poll_or_arm), calls it:
//!
//! ```
//! use cq_core::cq::{CompletionQueue, WaitError};
//! use cq_core::transport::{Arm, Events, Notify};
//! use cq_core::wc::Wc;
//! use cq_verbs::polling::ArmWc;
//!
//! /// The channel's descriptor is readable.
//! fn ready<T: ArmWc>(cq: &mut CompletionQueue<T>, channel: &mut impl Events) -> Result<(), WaitError> {
//!     while channel.take_event()?.is_some() {
//!         cq.get_mut().took_events(1);
//!     }
//!     let mut buffer = [Wc::default(); 32];
//!     while !cq.poll_or_arm(&mut buffer, Notify::Next)?.is_empty() {}
//!     Ok(())
//! }
//! ```
//!
//! # Cost
//! A poll that finds nothing adds to one count, one that finds completions to two, and it reads the status of each.
//! Only the thread that polls writes them, so there is no read-modify-write: an increment is a load and a store.
//!
//! | a poll that finds | takes more instructions | more time |
//! |---|---|---|
//! | nothing | 11 | 0.3 ns |
//! | one completion | 39 | 0.9 ns |
//! | 16 | 68 | 2.4 ns |
//! | 32 | 98 | 3.7 ns |
//! | 32, one of which failed | 519 | |
//!
//! on an Intel Xeon at 3.7 GHz, by `cargo run --release -p bench --bin counter_cost` and
//! `cargo bench -p bench --bench counters`. A queue that is not wrapped takes the instructions that it took before there were
//! counters.

mod counts;
#[cfg(feature = "serde")]
mod serialized;

#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
use alloc::sync::Arc;
use core::ops::Deref;

use cq_core::observe::Observer;
use cq_core::transport::{ArmError, Armed, PollCq, PollError};
use cq_core::wc::{Wc, WcStatus};
use cq_core::{array_of, const_unless_loom};

use self::counts::KINDS;
pub use self::counts::{Completions, Counts};
use crate::sync::{self, AtomicWord, Word};

/// The counters of a queue. Any thread reads them, by [`snapshot`](Self::snapshot), while a [`Recorder`] counts.
///
/// A second recorder of the same counters does not compile:
/// ```compile_fail,E0499
/// use cq_verbs::counters::Counters;
///
/// let mut counters = Counters::new();
/// let (recorder, _) = counters.split();
/// let second = counters.split();
/// drop(recorder);
/// ```
///
/// See [the module](self) for an example.
///
/// Counters that several own outlive their queue (feature `alloc`):
/// ```
/// use cq_core::cq::CompletionQueue;
/// use cq_core::observe::Observed;
/// use cq_core::queue::HeapCq;
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_verbs::counters::Counters;
///
/// let (mut device, consumer) = HeapCq::new(16)?.split();
/// let (recorder, counters) = Counters::shared();
/// let mut cq = CompletionQueue::new(Observed::new(consumer, recorder));
/// device.push(&Wc::new(1, WcStatus::SUCCESS, 5))?;
/// assert_eq!(cq.poll(&mut [Wc::default(); 4])?.len(), 1);
/// drop(cq);
/// assert_eq!(counters.snapshot().completions.total(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
// On cache lines of its own, since the thread that polls writes it often.
#[cfg_attr(target_pointer_width = "64", repr(C, align(128)))]
#[cfg_attr(not(target_pointer_width = "64"), repr(C))]
pub struct Counters {
    empty_polls: AtomicWord,
    /// Polls that found completions.
    batches: AtomicWord,
    high_water: AtomicWord,
    arms: AtomicWord,
    events: AtomicWord,
    spurious_events: AtomicWord,
    failed_polls: AtomicWord,
    /// By status; the last one counts all numbers without a name. Successes, the first, share a line with what is above.
    completions: [AtomicWord; KINDS],
    overruns: AtomicWord,
}

impl Counters {
    const_unless_loom! {
        /// Counters at zero.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                empty_polls: AtomicWord::new(0),
                batches: AtomicWord::new(0),
                high_water: AtomicWord::new(0),
                arms: AtomicWord::new(0),
                events: AtomicWord::new(0),
                spurious_events: AtomicWord::new(0),
                failed_polls: AtomicWord::new(0),
                completions: array_of![AtomicWord::new(0); KINDS],
                overruns: AtomicWord::new(0),
            }
        }
    }

    /// Returns the recorder of a queue, and the counters to read. Counting continues where earlier recorders stopped.
    #[must_use]
    pub const fn split(&mut self) -> (Recorder<&Self>, &Self) {
        let counters = &*self;
        (Recorder::new(counters), counters)
    }

    /// Returns the recorder of a queue, and its counters, which live until both are dropped. Feature `alloc`.
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
    #[must_use]
    pub fn shared() -> (Recorder<Arc<Self>>, Arc<Self>) {
        let counters = Arc::new(Self::new());
        (Recorder::new(Arc::clone(&counters)), counters)
    }

    /// Reads the counters.
    ///
    /// # Staleness
    /// Each count was right at some moment during the call, not all of them at the same one. Without 64-bit atomics they
    /// are counted modulo 2³².
    #[must_use]
    pub fn snapshot(&self) -> Counts {
        let [empty_polls, failed_polls] = [&self.empty_polls, &self.failed_polls].map(read);
        Counts {
            polls: read(&self.batches).wrapping_add(empty_polls).wrapping_add(failed_polls),
            empty_polls,
            failed_polls,
            completions: Completions(self.completions.each_ref().map(read)),
            arms: read(&self.arms),
            events: read(&self.events),
            spurious_events: read(&self.spurious_events),
            overruns: read(&self.overruns),
            high_water: read(&self.high_water),
        }
    }
}

/// The observer that counts. It is the only one that writes its [`Counters`], which `C` refers to.
#[derive(Debug)]
pub struct Recorder<C> {
    counters: C,
    /// Whether a completion was polled since the queue was armed. If so, it explains an event.
    has_found: bool,
    /// Events that were taken since then, until the queue is looked at, if no completion explains them.
    unexplained: u32,
    has_overrun: bool,
}

impl<C> Recorder<C> {
    const fn new(counters: C) -> Self {
        Self { counters, has_found: false, unexplained: 0, has_overrun: false }
    }
}

impl<C: Deref<Target = Counters>> Recorder<C> {
    /// Returns the counters, to be read by the thread that polls.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    #[inline(always)]
    fn count(&mut self, queue: &(impl PollCq + ?Sized), asked: usize, batch: &[Wc]) {
        if !batch.is_empty() {
            self.found(queue, asked, batch);
        } else if asked > 0 {
            add(&self.counters.empty_polls, 1);
            self.found_none();
        }
    }

    /// Not inlined, so that a poll of an empty queue is.
    #[inline(never)]
    fn found(&mut self, queue: &(impl PollCq + ?Sized), asked: usize, batch: &[Wc]) {
        (self.has_found, self.unexplained) = (true, 0);
        let counters = &*self.counters;
        add(&counters.batches, 1);
        let (count, most) = (batch.len() as Word, sync::load(&counters.high_water));
        // A buffer that is not full was long enough for all that the queue held.
        let is_deeper =
            count > most || batch.len() == asked && queue.holds_more_than(most as usize);
        if !is_deeper && all_succeeded(batch) {
            add(&counters.completions[WcStatus::SUCCESS.0 as usize], count);
        } else {
            count_each(counters, queue, batch);
        }
    }

    /// The queue was found empty.
    #[inline(always)]
    fn found_none(&mut self) {
        if self.unexplained > 0 {
            add(&self.counters.spurious_events, self.unexplained.into());
            self.unexplained = 0;
        }
    }
}

impl<C: Deref<Target = Counters>> Observer for Recorder<C> {
    fn polled(&mut self, queue: &dyn PollCq<Entry = Wc>, asked: usize, batch: &[Wc]) {
        self.count(queue, asked, batch);
    }

    #[inline(always)]
    fn polled_by(&mut self, queue: &impl PollCq<Entry = Wc>, asked: usize, batch: &[Wc]) {
        self.count(queue, asked, batch);
    }

    #[cold]
    #[inline(never)]
    fn failed(&mut self, error: PollError) {
        add(&self.counters.failed_polls, 1);
        if matches!(error, PollError::Overrun { .. }) && !self.has_overrun {
            self.has_overrun = true;
            add(&self.counters.overruns, 1);
        }
    }

    fn armed(&mut self, armed: Result<Armed, ArmError>) {
        let Ok(armed) = armed else { return };
        add(&self.counters.arms, 1);
        if armed == Armed::Armed {
            self.found_none();
        }
        self.has_found = false;
    }

    fn took_events(&mut self, count: u32) {
        add(&self.counters.events, count.into());
        if !self.has_found {
            self.unexplained = self.unexplained.saturating_add(count);
        }
    }
}

/// Counts completions by status, and raises the high-water mark to what the queue held.
#[cold]
#[inline(never)]
fn count_each(counters: &Counters, queue: &(impl PollCq + ?Sized), batch: &[Wc]) {
    for wc in batch {
        add(&counters.completions[counts::kind(wc.status())], 1);
    }
    let mut most = sync::load(&counters.high_water).max(batch.len() as Word);
    while queue.holds_more_than(most as usize) {
        most += 1;
    }
    sync::store(&counters.high_water, most);
}

/// Adds to a count that only this thread writes.
#[inline(always)]
fn add(count: &AtomicWord, more: Word) {
    sync::store(count, sync::load(count).wrapping_add(more));
}

fn read(count: &AtomicWord) -> u64 {
    sync::load(count) as u64
}

/// Whether no completion of the batch has failed. With one branch for several of them.
#[inline(always)]
fn all_succeeded(batch: &[Wc]) -> bool {
    const SEVERAL: usize = 8;
    let (first, rest) = batch.split_at(batch.len() % SEVERAL);
    let any_failure =
        |some: &[Wc]| some.iter().fold(WcStatus::SUCCESS.0, |any, wc| any | wc.status().0);
    first.iter().all(|wc| wc.status() == WcStatus::SUCCESS)
        && rest.chunks_exact(SEVERAL).all(|some| any_failure(some) == WcStatus::SUCCESS.0)
}

#[cfg(feature = "defmt")]
impl defmt::Format for Completions {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "[ ");
        for (status, count) in self.iter().filter(|(_, count)| *count > 0) {
            match status {
                Some(status) => defmt::write!(f, "{}: {=u64} ", status, count),
                None => defmt::write!(f, "unknown: {=u64} ", count),
            }
        }
        defmt::write!(f, "]");
    }
}
