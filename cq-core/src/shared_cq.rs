//! A completion queue that several threads poll, behind one lock ([P8](crate::contract#p8)). Available on targets with
//! compare-and-swap.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::shared_cq::SharedCq;
//! use cq_core::queue::SoftCq;
//! use cq_core::transport::{PollCq, PollError};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! /// One of the threads: takes batches until the queue is empty. Returns the number of completions it took.
//! fn serve(shared: &SharedCq<impl PollCq<Entry = Wc>>) -> Result<usize, PollError> {
//!     let (mut buffer, mut served) = ([Wc::default(); 16], 0);
//!     loop {
//!         let batch = shared.lock().poll(&mut buffer)?; // the lock is released here
//!         if batch.is_empty() {
//!             return Ok(served);
//!         }
//!         served += batch.len(); // process the batch without the lock
//!     }
//! }
//!
//! let mut storage = SoftCq::<64>::new();
//! let (mut device, consumer) = storage.split();
//! for wr_id in 0..40 {
//!     device.push(&Wc::new(wr_id, WcStatus::SUCCESS, 1))?;
//! }
//! let shared = SharedCq::new(CompletionQueue::new(consumer));
//! let served: [Result<usize, PollError>; 2] = std::thread::scope(|scope| {
//!     [(); 2].map(|()| scope.spawn(|| serve(&shared))).map(|thread| thread.join().unwrap())
//! });
//! assert_eq!(served[0]? + served[1]?, 40);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//! Each completion goes to exactly one thread ([P8](crate::contract#p8)). Threads take batches in the queue's order
//! ([P1](crate::contract#p1)), but the processing of batches interleaves arbitrarily. If the order of one queue pair
//! matters ([C10](crate::contract#c10)), process its completions under the lock or in one thread. An empty poll means
//! that the queue was empty at that moment ([P2](crate::contract#p2)); other threads may still be processing earlier
//! completions.
//!
//! # Cost
//! Each poll adds a compare-and-swap and a store. An uncontended empty poll was measured at 8 ns instead of 0.6 ns;
//! with a `std::sync::Mutex`, at 14 ns. The queue's cache lines also move to the core that polls. Use large batches. A
//! separate queue for each thread avoids these costs; prefer it on hardware with many queues.
//!
//! The lock is a spin lock. A waiting thread occupies its core, for a whole time slice if the holder is preempted. The
//! lock suits threads that each have their own core and hold it only during a poll. Use a `std::sync::Mutex` instead if
//! threads outnumber cores, if priorities differ, or if completions are processed under the lock: a mutex sleeps, and
//! reports a panic by poisoning. An interrupt handler must use only [`try_lock`](SharedCq::try_lock), because it may
//! have interrupted the holder. The lock is not fair: a thread that polls continuously may hold it most of the time.
//!
//! A thread that panics while it holds the lock releases it during unwinding. There is no poisoning: the queue keeps
//! working, and completions that the thread had polled are lost ([P2](crate::contract#p2)). A leaked guard leaves the
//! lock held forever.
//!
//! # Waiting
//! Do not sleep with the lock held: `shared.lock().wait(…)` blocks all other threads until an event arrives.
//! [`SharedCq::wait`] holds the lock only to poll and to arm, and sleeps without it:
//!
//! ```
//! # use std::time::Duration;
//! # use cq_core::cq::WaitError;
//! # use cq_core::shared_cq::SharedCq;
//! # use cq_core::transport::{Arm, Block, Deadline};
//! # use cq_core::wc::Wc;
//! /// Serves completions until none has arrived for a second. The other threads only poll.
//! fn sleeper<C>(shared: &SharedCq<impl Arm<Entry = Wc>>, channel: &mut C) -> Result<usize, WaitError>
//! where
//!     C: Block<Instant: Deadline>,
//! {
//!     let (mut buffer, mut served) = ([Wc::default(); 16], 0);
//!     loop {
//!         let deadline = Deadline::after(Duration::from_secs(1));
//!         match shared.wait(&mut buffer, channel, deadline)?.len() {
//!             0 => return Ok(served),
//!             count => served += count,
//!         }
//!     }
//! }
//! ```
//!
//! A custom event loop does the same: it calls `poll_or_arm` under the lock, sleeps without it, and repeats.
//!
//! An arm raises one event, which wakes one sleeping thread ([N1](crate::contract#n1)). Let one thread sleep, and let
//! it wake the others when there is work. If several threads sleep, each thread that took completions must continue
//! until it finds the queue empty, which arms it again. This holds even if the thread did not sleep, because it may
//! have taken the event that would have woken another thread. If it stops earlier, the others stay asleep while
//! completions remain in the queue. The end of the queue also raises one event: the thread that gets the error raises
//! another one for the next.
//!
//! A thread that does not sleep can end the sleep of another for good, where the transport is a
//! [software queue](crate::queue): failing it makes each wait return what is stored and then
//! [`PollError::Failed`](crate::transport::PollError::Failed) ([S4](crate::contract#s4)).
//! `shared.lock().get_mut().mark_failed()` returns the [wake-up](crate::queue::FailWakeup), which is raised without the
//! lock: `fail` would raise it under the lock, and a task that is polled at once would deadlock on it.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

use crate::cq::{CompletionQueue, WaitError, wait_with};
use crate::sync::{self, AtomicU32, Tracked, const_unless_loom};
use crate::transport::{Arm, Block, Deadline};

/// A completion queue behind a spin lock.
///
/// ```
/// use cq_core::cq::CompletionQueue;
/// use cq_core::queue::SoftCq;
/// use cq_core::shared_cq::SharedCq;
/// use cq_core::wc::{Wc, WcStatus};
///
/// let mut storage = SoftCq::<16>::new();
/// let (mut producer, consumer) = storage.split();
/// let shared = SharedCq::new(CompletionQueue::new(consumer));
/// producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
///
/// let guard = shared.lock();
/// assert!(shared.try_lock().is_none()); // as another thread finds it
/// drop(guard);
/// assert_eq!(shared.lock().pop()?.map(|wc| wc.wr_id()), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It is `Sync` if the transport is `Send`; otherwise sharing it does not compile:
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<cq_core::shared_cq::SharedCq<std::rc::Rc<u32>>>();
/// ```
pub struct SharedCq<T> {
    lock: AtomicU32,
    tracked: Tracked,
    cq: UnsafeCell<CompletionQueue<T>>,
}

// SAFETY: `cq` is accessed only through a guard, and by `into_inner`, which takes ownership. At most one guard exists:
// it is created when `try_lock` changes the word from 0 to 1, and the word returns to 0 only when the guard is dropped.
// Release and Acquire on the word order one guard's accesses before the next one's. So sharing a `SharedCq` only moves
// the queue between threads, for which `T: Send` is sufficient.
unsafe impl<T: Send> Sync for SharedCq<T> {}

impl<T> SharedCq<T> {
    const_unless_loom! {
        /// Wraps a queue for sharing.
        #[must_use]
        pub const fn new(cq: CompletionQueue<T>) -> Self {
            Self { lock: AtomicU32::new(0), tracked: Tracked::new(), cq: UnsafeCell::new(cq) }
        }
    }

    /// Acquires the lock. Spins while another thread holds it. Dropping the guard releases it.
    ///
    /// A guard created in the head of a `for` or `match` lives until the end of the body: bind the batch first.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        loop {
            match self.try_lock() {
                Some(guard) => return guard,
                None => self.spin(),
            }
        }
    }

    /// Acquires the lock if it is free. Otherwise returns `None`.
    #[inline]
    #[must_use]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        sync::try_lock(&self.lock).then(|| {
            self.tracked.write();
            Guard { shared: self, exclusive: PhantomData }
        })
    }

    /// Consumes the lock and returns the queue.
    #[must_use]
    pub fn into_inner(self) -> CompletionQueue<T> {
        self.cq.into_inner()
    }

    /// Spins until the lock looks free, with exponential backoff.
    #[cold]
    fn spin(&self) {
        const LONGEST: u32 = 64;
        let mut pause = 1;
        while sync::load_u32(&self.lock) != 0 {
            (0..pause).for_each(|_| sync::spin_loop());
            pause = LONGEST.min(2 * pause);
        }
    }
}

impl<T: Arm> SharedCq<T> {
    /// [`CompletionQueue::wait`], with the lock held only to poll and to arm, never while sleeping.
    ///
    /// The channel must serve this queue only: its events are taken here. A wake-up whose completion another thread
    /// polls first is spurious; the deadline ends the wait once the channel has no unread event.
    ///
    /// # Errors
    /// The same as [`CompletionQueue::wait`].
    pub fn wait<'r, C: Block>(
        &self,
        buffer: &'r mut [T::Entry],
        channel: &mut C,
        deadline: Option<C::Instant>,
    ) -> Result<&'r [T::Entry], WaitError> {
        let key = self.lock().get_mut().key();
        wait_with(key, buffer, channel, deadline, |buffer, events, on| {
            self.lock().look(buffer, events, on)
        })
    }

    /// [`wait`](Self::wait) for at most this time.
    ///
    /// # Errors
    /// The same as [`CompletionQueue::wait`].
    pub fn wait_timeout<'r, C: Block<Instant: Deadline>>(
        &self,
        buffer: &'r mut [T::Entry],
        channel: &mut C,
        timeout: Duration,
    ) -> Result<&'r [T::Entry], WaitError> {
        self.wait(buffer, channel, Deadline::after(timeout))
    }
}

crate::debug_of!([T] SharedCq<T> {});

/// Holds the lock of a [`SharedCq`] and gives access to the queue. Dropping it releases the lock.
///
/// It is `Sync` only if the transport is; otherwise sharing a reference does not compile:
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<cq_core::shared_cq::Guard<'_, core::cell::Cell<u32>>>();
/// ```
#[must_use = "if unused, the lock is released immediately"]
pub struct Guard<'a, T> {
    shared: &'a SharedCq<T>,
    /// Limits `Send` and `Sync` of the guard to those of a `&mut CompletionQueue<T>`.
    exclusive: PhantomData<&'a mut CompletionQueue<T>>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = CompletionQueue<T>;

    #[inline]
    fn deref(&self) -> &CompletionQueue<T> {
        // SAFETY: this is the only guard, and `&self` rules out a `&mut` from it.
        unsafe { &*self.shared.cq.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut CompletionQueue<T> {
        // SAFETY: this is the only guard, and `&mut self` rules out any other reference from it.
        unsafe { &mut *self.shared.cq.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        sync::unlock(&self.shared.lock);
    }
}

impl<T: fmt::Debug> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
