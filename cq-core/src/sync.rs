//! Which memory orderings the engine uses, and why: every atomic operation of the crate is one of the named ones below.
//! Nothing else in it names an atomic type, an ordering or a fence.
//!
//! What follows from it for who uses a queue: whatever a producer did before a push, the consumer sees once it has polled
//! that completion.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//! use cq_core::queue::SoftCq;
//! use cq_core::transport::{PollCq, PollError};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let (buffer, mut queue) = (AtomicU32::new(0), SoftCq::<4>::new());
//! let (mut producer, mut consumer) = queue.split();
//! std::thread::scope(|threads| {
//!     threads.spawn(|| {
//!         buffer.store(7, Relaxed);
//!         producer.push(&Wc::new(1, WcStatus::SUCCESS, 5)).unwrap();
//!     });
//!     while consumer.poll(&mut [Wc::default()])? == 0 {}
//!     assert_eq!(buffer.load(Relaxed), 7);
//!     Ok::<(), PollError>(())
//! })?;
//! # Ok::<(), PollError>(())
//! ```
//!
//! # Who is paired with whom
//!
//! | operation | side | pairs with | what the pair hands over |
//! |---|---|---|---|
//! | `publish` (Release) | producer | `observe` (Acquire) | the words and the tag of one entry |
//! | `release_head` (Release) | consumer | `acquire_head` (Acquire) | slots that were read and may be written again |
//! | `latch` (Release) | producer | `read_latch` (Acquire) | every entry published before the overrun, or before the producer went |
//! | `latch_more` (Release) | any producer | `read_latch` (Acquire) | that the reservation word is closed |
//! | `leave` (AcqRel) | any producer that goes | `leave` (AcqRel) of the last one | every entry that the others published |
//! | `reserve` (Release) | any producer | `acquire_tail` (Acquire), any producer | a head at least as new as any that could be seen when the reservation was made |
//! | `push_fence` (SeqCst) | producer | `arm_fence` (SeqCst) | publish-then-look-at-arm against arm-then-look-at-slot: at least one side sees the other |
//! | `push_fence` (SeqCst) | one producer of several | `push_fence` (SeqCst) of another | with an `arm_fence` between the two: that the slot behind is published, or that the ring has ended |
//! | `unlock` (Release) | who held a lock | `try_lock` (Acquire) | everything done under the lock: the queue that pollers take turns at, and their place in it |
//! | `count_event` (Release) | who raises an event of [`channel`](crate::channel) | `see_events` (Acquire) | that the arm word was written Idle, for each event that was counted |
//! | [`Signal::raise`](crate::transport::Signal::raise) | producer | taking the event | that the arm word was written Idle, before the consumer arms again |
//!
//! `disarm` and `end` pair with nothing: they are read-modify-writes because what they replace must be what was looked
//! at. A failed `reserve` is an `acquire_tail`. Everything else is Relaxed: its value is either private to one side or
//! ordered by one of these pairs. The last word of a slot, which has the generation, is always accessed as that one word.
//! The others are copied plainly in the queue's own memory: the producer has a slot to itself between `acquire_head` and
//! `publish`, the consumer between `observe` and `release_head`. In a [raw](crate::queue::raw) queue, which others may
//! write to at any time, they are stored and loaded Relaxed.
//!
//! # How it is checked
//! Loom models in `verify/loom` explore every interleaving and every value that a load may see. Each ordering in the
//! table is weakened once, and a model must then fail. Under `--cfg loom` the atomics are loom's, and threads can be
//! killed at any of their stores; under `--cfg cq_core_word32` the crate is what it is on targets without 64-bit
//! atomics.

mod site;

#[cfg(not(loom))]
use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use self::site::at;

cfg_if::cfg_if! {
    if #[cfg(loom)] {
        pub mod death;
        mod mortal;
        pub use self::mortal::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64};
        pub use self::site::{Site, intact, weaken, weaken_in};
        pub(crate) use loom::hint::spin_loop;
        #[cfg(feature = "async")]
        pub(crate) use loom::future::AtomicWaker;
        use loom::sync::atomic::fence;
    } else {
        #[cfg(target_has_atomic = "32")]
        pub(crate) use core::hint::spin_loop;
        pub(crate) use core::sync::atomic::AtomicU32;
        #[cfg(feature = "async")]
        pub(crate) use atomic_waker::AtomicWaker;
        use core::sync::atomic::fence;
        pub(crate) use self::site::{Site, intact};
    }
}

cfg_if::cfg_if! {
    if #[cfg(all(loom, target_has_atomic = "64", not(cq_core_word32)))] {
        pub(crate) use self::AtomicU64 as AtomicWord;
        /// The widest word that the target loads and stores in one piece.
        pub(crate) type Word = u64;
    } else if #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))] {
        pub(crate) use core::sync::atomic::AtomicU64 as AtomicWord;
        /// The widest word that the target loads and stores in one piece.
        pub(crate) type Word = u64;
    } else {
        pub(crate) use self::AtomicU32 as AtomicWord;
        /// The widest word that the target loads and stores in one piece.
        pub(crate) type Word = u32;
    }
}

cfg_if::cfg_if! {
    if #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))] {
        mod shared;
        pub(crate) use self::shared::{Backoff, acquire_tail, disarm, end, join, latch_more, leave, reserve};
    }
}

/// Publishes an entry: the last word of a slot, after all the others.
#[inline(always)]
pub(crate) fn publish(word: &AtomicWord, value: Word) {
    word.store(value, at(Site::Publish, Release));
}

/// Looks whether an entry is published; if it is, its other words may be read.
#[inline(always)]
pub(crate) fn observe(word: &AtomicWord) -> Word {
    word.load(at(Site::Observe, Acquire))
}

/// Gives every slot before `position` back to the producer.
#[inline(always)]
pub(crate) fn release_head(head: &AtomicWord, position: Word) {
    head.store(position, at(Site::ReleaseHead, Release));
}

/// Learns which slots the consumer has given back.
#[inline(always)]
pub(crate) fn acquire_head(head: &AtomicWord) -> Word {
    head.load(at(Site::AcquireHead, Acquire))
}

/// Announces the overrun, after the last entry that was stored.
#[inline(always)]
pub(crate) fn latch(cell: &AtomicU32, value: u32) {
    cell.store(value, at(Site::Latch, Release));
}

/// Looks whether the queue has overrun; if so, everything stored before can be seen.
#[inline(always)]
pub(crate) fn read_latch(cell: &AtomicU32) -> u32 {
    cell.load(at(Site::ReadLatch, Acquire))
}

/// Stands between publishing (an entry, or the overrun) and looking at the arm word.
#[inline(always)]
pub(crate) fn push_fence() {
    if intact(Site::PushFence) {
        fence(SeqCst);
    }
}

/// Stands between writing the arm word and looking at the slot and the latch.
#[inline(always)]
pub(crate) fn arm_fence() {
    if intact(Site::ArmFence) {
        fence(SeqCst);
    }
}

/// Takes a lock word, if nobody has it.
#[cfg(target_has_atomic = "32")]
#[inline(always)]
pub(crate) fn try_lock(word: &AtomicU32) -> bool {
    // Looking first leaves the cache line with the holder.
    load_u32(word) == 0 && word.compare_exchange(0, 1, at(Site::Lock, Acquire), Relaxed).is_ok()
}

/// Counts an event, after what was done before it.
#[inline(always)]
pub(crate) fn count_event(count: &AtomicU32) {
    cfg_if::cfg_if! {
        if #[cfg(target_has_atomic = "32")] {
            // By which the count hands over what was done before earlier events, too.
            count.fetch_add(1, at(Site::CountEvent, Release));
        } else {
            count.store(load_u32(count).wrapping_add(1), at(Site::CountEvent, Release));
        }
    }
}

/// Looks how many events there were; what was done before each of them can be seen then.
#[inline(always)]
pub(crate) fn see_events(count: &AtomicU32) -> u32 {
    count.load(at(Site::SeeEvents, Acquire))
}

/// Has a task woken.
#[cfg(feature = "async")]
pub(crate) fn register(waker: &AtomicWaker, task: &core::task::Waker) {
    #[cfg(loom)]
    waker.register_by_ref(task);
    #[cfg(not(loom))]
    waker.register(task);
}

/// Gives a lock word back.
#[cfg(target_has_atomic = "32")]
#[inline(always)]
pub(crate) fn unlock(word: &AtomicU32) {
    word.store(0, at(Site::Unlock, Release));
}

/// Loads a word that is private to one side, or that one of the named pairs orders.
#[inline(always)]
pub(crate) fn load(word: &AtomicWord) -> Word {
    word.load(Relaxed)
}

/// Stores a word that is private to one side, or that one of the named pairs orders.
#[inline(always)]
pub(crate) fn store(word: &AtomicWord, value: Word) {
    word.store(value, Relaxed);
}

/// [`load`] for 32 bits.
#[inline(always)]
pub(crate) fn load_u32(word: &AtomicU32) -> u32 {
    word.load(Relaxed)
}

/// [`store`] for 32 bits.
#[inline(always)]
pub(crate) fn store_u32(word: &AtomicU32, value: u32) {
    word.store(value, Relaxed);
}

/// Reads words by a plain copy.
///
/// # Safety
/// Nobody writes them meanwhile: whoever does it later has acquired what this thread releases after the copy.
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) unsafe fn read_plainly<const N: usize>(from: &[AtomicWord; N], to: &mut [Word; N]) {
    cfg_if::cfg_if! {
        if #[cfg(loom)] {
            for (to, from) in to.iter_mut().zip(from) {
                // SAFETY: the caller's word, which loom checks.
                *to = unsafe { from.unsync_load() };
            }
        } else {
            // SAFETY: an atomic word has the size and the alignment of a word; nobody writes (the caller's word).
            *to = unsafe { *core::ptr::from_ref(from).cast() };
        }
    }
}

/// Writes words by a plain copy, two at a time and in order: a copy of all at once is compiled to moves that begin with
/// the last word, and another core was measured to read them 15 % later then.
///
/// # Safety
/// Nobody else reads or writes them meanwhile. Whoever did so before has released them to this thread; whoever does so
/// later acquires what this thread releases after the copy.
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) unsafe fn write_plainly<const N: usize>(from: &[Word; N], to: &[AtomicWord; N]) {
    cfg_if::cfg_if! {
        if #[cfg(loom)] {
            // Loom's `Tracked` sees whether it is plain.
            from.iter().zip(to).for_each(|(&from, to)| store(to, from));
        } else {
            let to = UnsafeCell::raw_get(core::ptr::from_ref(to).cast::<UnsafeCell<[Word; N]>>());
            // SAFETY: an atomic word has the size and the alignment of a word, and may be written through a shared
            // reference, as a cell; nobody else is there (the caller's word).
            let to = unsafe { &mut *to };
            to.chunks_mut(2).zip(from.chunks(2)).for_each(|(to, from)| to.copy_from_slice(from));
        }
    }
}

/// Declares functions that are `const`, but for loom, whose atomics can't be made in a constant.
macro_rules! const_unless_loom {
    ($($(#[$meta:meta])* $vis:vis const fn $name:ident($($args:tt)*) -> $ret:ty $body:block)+) => {
        $(
            #[cfg(not(loom))]
            $(#[$meta])*
            $vis const fn $name($($args)*) -> $ret $body

            #[cfg(loom)]
            $(#[$meta])*
            $vis fn $name($($args)*) -> $ret $body
        )+
    };
}
pub(crate) use const_unless_loom;

/// An array of values that hold atomics.
macro_rules! array_of {
    ($value:expr; $len:expr) => {{
        #[cfg(not(loom))]
        {
            [const { $value }; $len]
        }
        #[cfg(loom)]
        {
            core::array::from_fn::<_, { $len }, _>(|_| $value)
        }
    }};
}
pub(crate) use array_of;

/// What loom watches for a missing Release or Acquire that the words of a slot cannot show, being
/// atomic themselves. Nothing at all outside loom.
#[derive(Debug)]
pub(crate) struct Tracked {
    #[cfg(loom)]
    cell: loom::cell::UnsafeCell<()>,
}

impl Tracked {
    const_unless_loom! {
        pub(crate) const fn new() -> Self {
            Self {
                #[cfg(loom)]
                cell: loom::cell::UnsafeCell::new(()),
            }
        }
    }

    #[inline(always)]
    pub(crate) fn write(&self) {
        #[cfg(loom)]
        self.cell.with_mut(|_| ());
    }

    #[inline(always)]
    pub(crate) fn read(&self) {
        #[cfg(loom)]
        self.cell.with(|_| ());
    }
}

// SAFETY: the cell holds nothing; no reference to its content is ever made.
#[cfg(loom)]
#[allow(unsafe_code)]
unsafe impl Sync for Tracked {}
