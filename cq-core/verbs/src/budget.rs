//! Reservations of completion-queue entries, so that a completion queue can't overrun. Available on targets with
//! compare-and-swap; with the feature `alloc` a budget is on the heap, else in [a place of your own](Budgeted::new_in).
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::transport::CqKey;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_testing::fake::Script;
//! use cq_verbs::budget::{Budgeted, Reserved};
//!
//! // A completion queue of 64 entries. On a device: `Budgeted::new(context.cq(64).create()?)`.
//! let (mut device, consumer) = HeapCq::new(64)?.split();
//! let mut cq = CompletionQueue::new(Budgeted::with_capacity(consumer, 64));
//!
//! // Each queue pair, here a script, reserves an entry for each request that it may have outstanding.
//! let budget = cq.get_ref().budget().clone(); // for other threads
//! let script = Script::<1>::new(CqKey { index: 0, generation: 1 });
//! let create = || Reserved::create([(&budget, 40)], || Ok::<_, ()>(&script));
//! let first = create()?;
//! let refused = create().unwrap_err();
//! assert_eq!((refused.missing(), refused.pending), (16, false));
//!
//! // The queue pair is destroyed. Its last completions may still be in the queue: their entries are free once a poll has
//! // found the queue empty.
//! device.push(&Wc::new(1, WcStatus::SUCCESS, 7))?;
//! drop(first);
//! assert!(create().unwrap_err().pending, "try again after a poll that found nothing");
//! let mut buffer = [Wc::default(); 16];
//! while !cq.poll(&mut buffer)?.is_empty() {}
//! let second = create()?;
//! # drop(second);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What to reserve
//! A completion queue overruns if it holds as many completions as it has entries and one more comes
//! ([O2](cq_core::contract#o2)). So the sum of all requests that may be outstanding on it must not exceed its capacity
//! ([O7](cq_core::contract#o7)):
//!
//! - One entry for each request of a send queue, signaled or not, since every one may be flushed
//!   ([Q2](cq_core::contract#q2)). A request is outstanding until a completion that covers it was polled
//!   ([Q5](cq_core::contract#q5)), which a [ledger](crate::ledger) counts.
//! - One entry for each receive of a receive queue.
//! - The receives of a shared receive queue can all complete on one queue, and on any one that its queue pairs have: one
//!   entry for each of its receives on each of those completion queues.
//!
//! A [`TrackedQp`](crate::tracked::TrackedQp) holds the reservations of its queue pair and never posts past them; a
//! [`TrackedSrq`](crate::tracked::TrackedSrq) does so for a shared receive queue.
//! A [`Reserved`] queue pair holds them for a program that counts by itself. Nothing reserves entries without an owner: it
//! destroys the queue pair before it gives them back.
//!
//! # When entries are free again
//! A queue pair that is destroyed or goes to RESET completes nothing more, but completions that came before are still in
//! the queue. Their entries are free once the queue was empty: after a poll that began later and returned fewer
//! completions than its buffer holds ([P2](cq_core::contract#p2)). [`Budgeted`] observes this on each poll.
//!
//! Both are counted modulo 2³². So fewer than 2³² reservations must be dropped or discarded between two polls that find
//! the queue empty.
//!
//! A queue with several software producers ([`mpsc`](cq_core::queue::mpsc)) may return fewer completions while a producer
//! is in a push, though others are stored behind it. Its producers use `push`, which can't overrun. A wrapper that holds
//! completions back, such as a fault injector, goes around a [`Budgeted`] queue, not into it.
//!
//! # Threads
//! Reservations are made and dropped by any thread, without a lock. The cost of a poll is one load of a word that seldom
//! changes.

mod reservation;
mod reserved;
#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(feature = "alloc")]
use alloc::sync::Arc;
use core::ops::Deref;

use cq_core::of_target;
use cq_core::transport::{Arm, ArmError, Armed, Capacity, CqKey, Notify, PollCq, PollError};
use cq_core::wc::Wc;

pub use self::reservation::OverdrawnError;
pub(crate) use self::reservation::Reservation;
pub use self::reserved::Reserved;
use crate::device::{Destroy, DeviceCq};
use crate::polling::{ArmWc, PollWc};
use crate::setup::{InUseError, ModerateError, ResizeError};
use crate::sync::{self, AtomicU32};

/// The entries of one completion queue, as the threads that reserve them share it. See [the module](self).
///
/// ```
/// use cq_core::queue::SoftCq;
/// use cq_verbs::budget::{Budget, Budgeted};
///
/// let (mut storage, mut budget) = (SoftCq::<64>::new(), Budget::new());
/// let (_device, consumer) = storage.split();
/// let cq = Budgeted::new_in(consumer, 64, &mut budget);
/// assert_eq!(cq.budget().available(), 64);
/// ```
#[derive(Debug, Default)]
pub struct Budget {
    /// Entries that are neither reserved nor waiting for the queue to be empty. Written by all threads.
    free: AtomicU32,
    /// Entries of all dropped reservations, modulo 2³². Written by the threads that drop them.
    released: AtomicU32,
    /// Requests to be told when the queue was empty, modulo 2³². Written by the same threads, and those that discard.
    asked: AtomicU32,
    /// The last of these requests that was answered. Written by the poller.
    answered: AtomicU32,
    /// Entries of the queue. Written by the thread that creates or resizes it.
    capacity: AtomicU32,
}

impl Budget {
    cq_core::const_unless_loom! {
        /// The storage for a [`Budgeted`] queue without an allocator: see [`Budgeted::new_in`].
        #[must_use]
        pub const fn new() -> Self {
            Self {
                free: AtomicU32::new(0),
                released: AtomicU32::new(0),
                asked: AtomicU32::new(0),
                answered: AtomicU32::new(0),
                capacity: AtomicU32::new(0),
            }
        }
    }

    /// How many entries can be reserved.
    ///
    /// # Staleness
    /// Other threads may reserve them at any time.
    #[must_use]
    pub fn available(&self) -> u32 {
        sync::load_u32(&self.free)
    }

    /// Takes entries of those that are free. The caller takes `all` with those that it takes beside them.
    fn take(&self, entries: u32, all: u64) -> Result<(), OverdrawnError> {
        let fits = || all <= sync::load_u32(&self.capacity).into();
        // Looked at first: what was given back before, and is not pending here, is free below.
        let pending = sync::see_asked(&self.asked) != sync::see_answer(&self.answered);
        let refused =
            |available| OverdrawnError { asked: entries, available, pending: pending && fits() };
        sync::take(&self.free, entries).map_err(refused)
    }
}

/// A completion queue whose entries are reserved. It polls and arms as the transport `T` does. `B` is what holds the
/// [`Budget`]: an `Arc`, or a reference.
///
/// ```
/// use std::error::Error;
///
/// use cq_verbs::budget::Budgeted;
/// use cq_verbs::device::{Device, DeviceCq};
/// use cq_verbs::tracked::TrackedQp;
///
/// fn create<D: Device>(device: &D, pd: &D::Pd) -> Result<(impl DeviceCq, TrackedQp<D::Qp, u64>), Box<dyn Error>> {
///     let cq = Budgeted::new(device.cq(48).create()?);
///     let qp = TrackedQp::create(pd, &cq.handle(), 32, 16)?; // reserves 48 entries
///     Ok((cq, qp))
/// }
/// ```
///
/// A queue pair that reserves nothing is not created by it:
/// ```compile_fail,E0277
/// use std::sync::Arc;
///
/// use cq_core::cq::CompletionQueue;
/// use cq_verbs::budget::{Budget, Budgeted};
/// use cq_verbs::device::{Device, DevicePd};
///
/// fn create<D: Device>(pd: &D::Pd, cq: &CompletionQueue<Budgeted<D::Cq, Arc<Budget>>>) {
///     let _ = pd.qp(cq.get_ref()).create();
/// }
/// ```
#[derive(Debug)]
pub struct Budgeted<T, B> {
    transport: T,
    budget: B,
    capacity: u32,
    /// The requests that were answered, and the entries that were released until then.
    answered: u32,
    released: u32,
}

#[cfg(feature = "alloc")]
impl<T: DeviceCq> Budgeted<T, Arc<Budget>> {
    /// Wraps a completion queue of a device. It is empty, and no queue pair uses it yet.
    #[must_use]
    pub fn new(cq: T) -> Self {
        let capacity = cq.capacity();
        Self::with_capacity(cq, capacity)
    }
}

#[cfg(feature = "alloc")]
impl<T> Budgeted<T, Arc<Budget>> {
    /// Wraps a completion queue of this capacity. It is empty, and no queue pair uses it yet.
    #[must_use]
    pub fn with_capacity(transport: T, capacity: usize) -> Self {
        Self::with(transport, capacity, Arc::new(Budget::new()))
    }
}

impl<'b, T> Budgeted<T, &'b Budget> {
    /// Wraps a completion queue of this capacity. What the storage held before is forgotten.
    #[must_use]
    pub fn new_in(transport: T, capacity: usize, storage: &'b mut Budget) -> Self {
        *storage = Budget::new();
        Self::with(transport, capacity, storage)
    }
}

impl<T, B: Deref<Target = Budget>> Budgeted<T, B> {
    fn with(transport: T, capacity: usize, budget: B) -> Self {
        let capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
        sync::store_u32(&budget.capacity, capacity);
        sync::give(&budget.free, capacity);
        Self { transport, budget, capacity, answered: 0, released: 0 }
    }

    /// The budget: a clone of it makes reservations in other threads.
    pub const fn budget(&self) -> &B {
        &self.budget
    }

    /// A handle of the queue, by which queue pairs are [created](crate::tracked::TrackedQp::create_by) that reserve entries
    /// of it.
    pub fn handle(&self) -> BudgetedHandle<T::Handle, B>
    where
        T: DeviceCq,
        B: Clone,
    {
        BudgetedHandle { handle: self.transport.handle(), budget: self.budget.clone() }
    }

    /// The transport, for what it alone has. A queue pair that is created by it has reserved nothing, and can overrun the
    /// queue.
    pub const fn unbudgeted(&self) -> &T {
        &self.transport
    }

    /// Returns the transport. Reservations that are dropped later are not freed.
    pub fn into_inner(self) -> T {
        self.transport
    }

    /// Resizes the queue by `resize`, which gets the transport and returns the new capacity, at least `capacity`. For a
    /// transport without the traits of [`device`](crate::device).
    ///
    /// # Errors
    /// More entries are reserved, with those that wait for the queue to be empty, than the new capacity has. The queue
    /// was not resized.
    ///
    /// # Panics
    /// As `resize` does, which must not have resized the queue then.
    pub fn resize_by<E>(
        &mut self,
        capacity: u32,
        resize: impl FnOnce(&mut T) -> Result<u32, E>,
    ) -> Result<Result<u32, E>, OverdrawnError> {
        let fewer = self.capacity.saturating_sub(capacity);
        // Taken before the queue shrinks, so that nobody reserves them meanwhile.
        self.budget.take(fewer, fewer.into())?;
        let mut unused = Unused { budget: &self.budget, entries: fewer };
        let resized = resize(&mut self.transport);
        if let Ok(now) = resized {
            let least = self.capacity - fewer;
            self.capacity = least.max(now);
            sync::store_u32(&self.budget.capacity, self.capacity);
            unused.entries = self.capacity - least;
        }
        Ok(resized)
    }

    /// The queue was empty after `asked` and `released` were loaded.
    #[cold]
    fn answer(&mut self, asked: u32, released: u32) {
        let more = released.wrapping_sub(self.released);
        sync::give(&self.budget.free, more);
        sync::answer(&self.budget.answered, asked);
        (self.answered, self.released) = (asked, released);
    }
}

/// Entries that are free again when it is dropped, also by a panic.
struct Unused<'b> {
    budget: &'b Budget,
    entries: u32,
}

impl Drop for Unused<'_> {
    fn drop(&mut self) {
        sync::give(&self.budget.free, self.entries);
    }
}

impl<T: PollWc, B: Deref<Target = Budget>> PollCq for Budgeted<T, B> {
    type Entry = Wc;

    #[inline]
    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let asked = sync::see_asked(&self.budget.asked);
        if asked == self.answered {
            return self.transport.poll_into(out);
        }
        // What was released before this poll is no longer in the queue if the poll finds it empty.
        let released = sync::see_asked(&self.budget.released);
        let count = self.transport.poll_into(out)?;
        if count < out.len() {
            self.answer(asked, released);
        }
        Ok(count)
    }

    of_target! { self.transport; holds_more_than(&self, count: usize) -> bool; }
}

impl<T: ArmWc, B: Deref<Target = Budget>> Arm for Budgeted<T, B> {
    of_target! { self.transport;
        arm(&mut self, on: Notify) -> Result<Armed, ArmError>;
        key(&self) -> CqKey;
        took_events(&mut self, count: u32);
    }
}

impl<T: Destroy, B: Deref<Target = Budget>> Destroy for Budgeted<T, B> {
    fn destroy(self) -> Result<(), InUseError<Self>> {
        let Self { transport, budget, capacity, answered, released } = self;
        transport.destroy().map_err(|in_use| {
            in_use.map(|transport| Self { transport, budget, capacity, answered, released })
        })
    }
}

/// A handle of a [`Budgeted`] completion queue: the device's handle, and the budget.
///
/// Nor is a queue pair that reserves nothing created by it:
/// ```compile_fail,E0277
/// use std::sync::Arc;
///
/// use cq_verbs::budget::{Budget, BudgetedHandle};
/// use cq_verbs::device::{Device, DevicePd};
///
/// fn create<D: Device>(pd: &D::Pd, cq: &BudgetedHandle<D::CqHandle, Arc<Budget>>) {
///     let _ = pd.qp(cq).create();
/// }
/// ```
#[derive(Clone, Debug)]
pub struct BudgetedHandle<H, B> {
    handle: H,
    budget: B,
}

impl<H, B> BudgetedHandle<H, B> {
    /// The budget.
    pub const fn budget(&self) -> &B {
        &self.budget
    }

    /// The device's handle. A queue pair that is created by it alone has reserved nothing, and can overrun the queue.
    pub const fn unbudgeted(&self) -> &H {
        &self.handle
    }
}

impl<T, B> Capacity for Budgeted<T, B> {
    fn capacity(&self) -> usize {
        self.capacity as usize
    }
}

impl<T, B> DeviceCq for Budgeted<T, B>
where
    T: DeviceCq,
    B: Deref<Target = Budget> + Clone + core::fmt::Debug + Send + Sync + 'static,
{
    type Handle = BudgetedHandle<T::Handle, B>;

    fn handle(&self) -> Self::Handle {
        self.handle()
    }

    /// Fails with [`ResizeError::Reserved`] below what is reserved, or waits for the queue to be empty.
    fn resize(&mut self, capacity: u32) -> Result<u32, ResizeError> {
        let before = self.capacity;
        let resized = self.resize_by(capacity, |transport| transport.resize(capacity));
        resized.unwrap_or_else(|OverdrawnError { available, .. }| {
            Err(ResizeError::Reserved { reserved: before - available, asked: capacity })
        })
    }

    of_target! { self.transport;
        moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError>;
    }
}
