//! A completion queue that several threads poll, in turn: one lock, which the user takes (P8). Where the
//! target has compare-and-swap.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::shared_cq::SharedCq;
//! use cq_core::queue::SoftCq;
//! use cq_core::transport::{PollCq, PollError};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! /// One of the threads: takes batches until the queue is empty; says how many completions it got.
//! fn serve(shared: &SharedCq<impl PollCq>) -> Result<usize, PollError> {
//!     let (mut room, mut served) = ([Wc::default(); 16], 0);
//!     loop {
//!         let batch = shared.lock().poll(&mut room)?; // the lock is free again at the semicolon
//!         if batch.is_empty() {
//!             return Ok(served);
//!         }
//!         served += batch.len(); // serving them needs no lock
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
//! # What it gives
//! Each completion goes to exactly one thread (P8), and the batches that threads take follow each other in
//! the queue's order (P1). How the threads then serve them interleaves as it likes: where the order of one
//! queue pair matters (C10), serve under the lock, or keep that queue pair's completions to one thread. An
//! empty poll says that the queue was empty in that moment (P2); another thread may hold what came before.
//!
//! # What it costs
//! A compare-and-swap and a store for every poll: 8 ns instead of 0.6 where an empty poll was measured that
//! nobody contends (a `std::sync::Mutex`: 14). And the queue's cache lines travel to whichever core polls.
//! Take large batches. A queue of its own for each thread costs none of this, and is what hardware with
//! many queues is for.
//!
//! The lock spins: whoever waits for it burns its core, and for a whole time slice if the holder was put
//! off its own. It is right where each thread has a core of its own and holds the lock for the length of a
//! poll. Put the queue into a `std::sync::Mutex` instead where threads outnumber cores, where priorities
//! differ, or where completions are served under the lock: that one sleeps, and it tells of a panic by
//! poisoning. An interrupt handler takes [`try_lock`](SharedCq::try_lock) only, since it may have
//! interrupted the holder. The lock is not fair: a thread that polls without pause may get most of it.
//!
//! A thread that panics while it holds the lock gives it back as it unwinds. There is no poisoning: the
//! queue goes on, and what the thread had polled is lost with it (P2). A guard that is forgotten leaves the
//! lock taken for ever.
//!
//! # Waiting
//! Never sleep with the lock held: `shared.lock().wait(…)` would stop all the others until an event comes.
//! [`SharedCq::wait`] takes it only to look and to arm, and sleeps without:
//!
//! ```
//! # use std::time::{Duration, Instant};
//! # use cq_core::cq::WaitError;
//! # use cq_core::shared_cq::SharedCq;
//! # use cq_core::transport::{Arm, Block};
//! # use cq_core::wc::Wc;
//! /// Serves until none has come for a second. The others just poll.
//! fn sleeper<C>(shared: &SharedCq<impl Arm>, channel: &mut C) -> Result<usize, WaitError>
//! where
//!     C: Block<Instant = Instant>,
//! {
//!     let (mut room, mut served) = ([Wc::default(); 16], 0);
//!     loop {
//!         let deadline = Instant::now() + Duration::from_secs(1);
//!         match shared.wait(&mut room, channel, Some(deadline))?.len() {
//!             0 => return Ok(served),
//!             count => served += count,
//!         }
//!     }
//! }
//! ```
//!
//! An event loop of its own does the same by hand: `poll_or_arm` under the lock, then, without it, the
//! sleep, then again. One completion raises one event, and that wakes one sleeper (N1): so let one thread
//! sleep, and have it wake the others if there is work for them. If several sleep, each that got completions
//! has to go on until it finds nothing, which arms again, whether it slept for them or not: the event that
//! was another's to wake by may have been taken by it. One that stops earlier leaves the others asleep over
//! what is still in the queue.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::cq::{CompletionQueue, WaitError, wait_with};
use crate::sync::{self, AtomicU32, Tracked, const_unless_loom};
use crate::transport::{Arm, Block};
use crate::wc::Wc;

/// A completion queue behind a lock that spins.
///
/// Threads share it if they could be handed the transport; one that they could not does not compile:
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<cq_core::shared_cq::SharedCq<std::rc::Rc<u32>>>();
/// ```
pub struct SharedCq<T> {
    lock: AtomicU32,
    tracked: Tracked,
    cq: UnsafeCell<CompletionQueue<T>>,
}

// SAFETY: `cq` is reached by a guard only, and by `into_inner`, which owns everything. There is one guard
// at a time: it is made where `try_lock` changed the word from 0 to 1, and the word is 0 again only when
// it is dropped; Release and Acquire of the word put one guard's accesses before the next one's. So sharing
// a `SharedCq` no more than hands the queue from thread to thread, for which `T: Send` is enough.
unsafe impl<T: Send> Sync for SharedCq<T> {}

impl<T> SharedCq<T> {
    const_unless_loom! {
        /// Shares this queue.
        #[must_use]
        pub const fn new(cq: CompletionQueue<T>) -> Self {
            Self { lock: AtomicU32::new(0), tracked: Tracked::new(), cq: UnsafeCell::new(cq) }
        }
    }

    /// Takes the lock, spinning while another thread has it; it is given back when the guard goes.
    ///
    /// A guard in the head of a `for` or `match` lives to the end of the body: bind the batch first.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        loop {
            match self.try_lock() {
                Some(guard) => return guard,
                None => self.spin(),
            }
        }
    }

    /// Takes the lock, if no other thread has it.
    #[inline]
    #[must_use]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        sync::try_lock(&self.lock).then(|| {
            self.tracked.write();
            Guard { shared: self, exclusive: PhantomData }
        })
    }

    /// Gives the queue back.
    #[must_use]
    pub fn into_inner(self) -> CompletionQueue<T> {
        self.cq.into_inner()
    }

    /// Waits until the lock looks free, looking less and less often.
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
    /// [`CompletionQueue::wait`], with the lock held only to poll and to arm, never in the sleep.
    ///
    /// The channel has to be this queue's alone: its events are taken here.
    ///
    /// # Errors
    /// As there.
    pub fn wait<'r, C: Block>(
        &self,
        room: &'r mut [Wc],
        channel: &mut C,
        deadline: Option<C::Instant>,
    ) -> Result<&'r [Wc], WaitError> {
        let key = self.lock().transport().key();
        wait_with(key, room, channel, deadline, |room, on| self.lock().look(room, on))
    }
}

impl<T> fmt::Debug for SharedCq<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedCq").finish_non_exhaustive()
    }
}

/// The lock is taken: the queue is this thread's until the guard goes.
///
/// A guard is shared by reference if the transport could be; one that could not does not compile:
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<cq_core::shared_cq::Guard<'_, core::cell::Cell<u32>>>();
/// ```
#[must_use = "the lock is given back at once unless the guard is kept"]
pub struct Guard<'a, T> {
    shared: &'a SharedCq<T>,
    /// Shared or sent to a thread, a guard is what it leads to.
    exclusive: PhantomData<&'a mut CompletionQueue<T>>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = CompletionQueue<T>;

    #[inline]
    fn deref(&self) -> &CompletionQueue<T> {
        // SAFETY: this is the one guard, and by `&self` nobody has a `&mut` from it.
        unsafe { &*self.shared.cq.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut CompletionQueue<T> {
        // SAFETY: this is the one guard, and by `&mut self` nobody has another reference from it.
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
