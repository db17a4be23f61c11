//! Which memory orderings the engine uses, and why. Every atomic operation of the crate is one of the named operations
//! below. Outside this module the crate names no ordering and no fence, and takes its atomic types from here.
//!
//! For users of a queue this means: everything that a producer did before a push is visible to the consumer once it has
//! polled that completion.
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
//!     while consumer.poll(&mut [Wc::default()])?.is_empty() {}
//!     assert_eq!(buffer.load(Relaxed), 7);
//!     Ok::<(), PollError>(())
//! })?;
//! # Ok::<(), PollError>(())
//! ```
//!
//! # Pairs
//!
//! | operation | side | pairs with | what the pair makes visible |
//! |---|---|---|---|
//! | `publish`, `publish_u8` (Release) | producer | `observe`, `observe_u8` (Acquire) | the words and the tag of one entry |
//! | `release_head` (Release) | consumer | `acquire_head` (Acquire) | slots whose entries were read and that may be written again |
//! | `latch` (Release) | producer | `read_latch` (Acquire) | every entry published before the overrun, or before the producer was dropped |
//! | `refuse` (Release) | consumer | `see_refusal` (Acquire) | everything that the consumer did before it failed or abandoned the queue, or reported its end |
//! | `latch_more` (Release) | any producer | `read_latch` (Acquire) | that the reservation word is closed, unless the consumer's word was set |
//! | `leave` (AcqRel) | any producer that is dropped | `leave` (AcqRel) of the last one | every entry that the others published |
//! | `leave` (AcqRel) | a side that shares a [channel](crate::channel) | `leave` (AcqRel) of the last one, which is given the channel | what the others did with it |
//! | `reserve` (Release) | any producer | `acquire_tail` (Acquire), any producer | a head at least as new as any that could be seen when the reservation was made |
//! | `push_fence` (SeqCst) | producer | `arm_fence` (SeqCst) | publish, then load the arm word; against store the arm word, then load the slot and the latch: at least one side sees the other's store |
//! | `push_fence` (SeqCst) | one producer of several | `push_fence` (SeqCst) of another | with an `arm_fence` between the two: that the next slot is published, or that the ring has ended |
//! | `unlock` (Release) | the holder of a lock | `try_lock` (Acquire) | everything done under the lock: the queue that threads poll one at a time, and their position in it |
//! | `count_event` (Release) | the raiser of an event of [`channel`](crate::channel) | `see_events` (Acquire) | that the arm word was written Idle, for each event counted |
//! | `register`, `unregister` | consumer | `wake`, producer | a task that was registered before the event; `AtomicWaker` orders them |
//! | [`Signal::raise`](crate::transport::Signal::raise) | producer | taking the event | that the arm word was written Idle, before the consumer arms again |
//!
//! `disarm` and `end` pair with nothing: they are read-modify-writes because they must replace only the value that was
//! loaded. `join` is Relaxed: the producer, or the side, that is cloned is counted itself. A failed `reserve` is an
//! `acquire_tail`.
//!
//! # What is Relaxed
//!
//! | load | why a stale value does no harm |
//! |---|---|
//! | the word or byte that publishes the next slot, by an empty poll | the next poll loads it again; after an arm, `arm_fence` orders it |
//! | both words of the [end](crate::queue::End), by an empty poll | as above; before an end is reported, `read_latch` orders it |
//! | the consumer's word of the end, by a push | the queue ends one push later; the consumer returns what is stored until it has reported the end, and then nothing; before a producer learns of the end, `see_refusal` orders it |
//! | the producers' word of the end, by a producer | a single one loads what it stored; several learn of an overrun by the reservation word |
//! | the arm word | `push_fence` and `arm_fence` order it; each side otherwise loads what it wrote itself |
//! | the reservation word, by the consumer | after an overrun or the last producer's drop, `read_latch` has acquired its final position; after `fail`, a stale one only omits concurrent pushes; while resizing, a compare-and-swap checks it |
//! | the reservation word, by `has_ended` | `push_fence` orders it |
//! | tags | `publish` orders them |
//! | the number of sides of a channel, by `reunite` | both that are given back are counted; `leave` checks it |
//! | a lock word, by a thread that spins | `try_lock` checks it |
//! | the count of dropped completions, by `latch_more` | its compare-and-swap checks it |
//! | the count of events, by `count_event` without compare-and-swap | the only raiser loads what it stored |
//!
//! Relaxed stores are to words that only one side writes, to the arm word (see `queue/arm`), or to words that one of
//! the pairs above publishes. What contains the generation of a slot is always accessed as one word, or one byte.
//! In the queue's own memory all else of an entry is copied plainly, or read in place: the slot belongs to the producer between
//! `acquire_head` and `publish`, and to the consumer between `observe` and `release_head`. In a
//! [raw](crate::queue::raw) queue, which others may write to at any time, they are stored and loaded Relaxed.
//!
//! # Loads that are held
//! A consumer whose last poll has found nothing has caught up with its producer. If the poll before that has found several, a poll
//! of 8 or more checks the slot 63 further on, at most a quarter of the ring; where a poll finds one, as in a round trip, it
//! need not wait. If that is not published either, there is little to take. A processor that runs
//! ahead of the check of a slot loads the slots behind it all the same, and takes their cache lines away from the producer that
//! is writing them. On x86-64, `hold_loads` is an `lfence`: it waits until the loads before it are done. On Arm and RISC-V
//! the Acquire load of a slot, `ldar` or a load with a fence behind it, holds later loads itself, and nothing is done. This is a
//! matter of time: no pair above depends on it, and each slot that is taken is checked by its own generation.
//!
//! # Counters
//! What each count of the crate does at its end. None of them panics there.
//!
//! | count | bits | at its end |
//! |---|---|---|
//! | [positions](crate::queue::Position) of a ring | 64; 32 on targets without 64-bit atomics | wraps; only differences count, which are at most the number of slots |
//! | positions of a reservation word of `queue::mpsc` | 62 | wraps, likewise. A producer would have to push nothing through 2⁶² completions of others to take a wrong position |
//! | the round of a slot, its generation | 15; 7 in a byte apart, at least 1 in an entry | wraps; the consumer has seen the entry that a slot had before, which is of the round before |
//! | dropped completions of a queue | 32 | saturates at 2³² − 2, and those of one call at 2³² − 3 |
//! | producers of a queue | 32 | saturates: once there were 2³² − 1, leaked ones among them, dropping producers never closes the queue |
//! | sides of a channel that they share | 32 | saturates: once there were 2³² − 1, leaked ones among them, the channel is not given back |
//! | the numbers of `channel::thread`'s channels in the process, and of the raisers of one channel | 32 each | wrap. A wait is not refused on a channel that was made 2³², or a multiple of that, channels before or after that of the queue; nor for a key that a program made with that generation. Two raisers so far apart have one key, and spurious wake-ups by each other's events |
//! | events of [`channel::flag`](crate::channel::flag) and `channel::waker` | 32 | wraps; exactly 2³² unread events look like none. A queue that is armed again after each event leaves two |
//! | steps of a backoff, turns of a spin lock | 32 | not reached: both are bounded |
//!
//! # How it is checked
//! Loom models in `verify/loom` explore every interleaving and every value that a load may return, up to a bound on
//! preemptions. Each ordering in the table is weakened once, and a model must then fail. Under `--cfg loom` the atomics
//! are loom's, and a thread can be killed before any of its stores, swaps and compare-exchanges, though not before a plain copy
//! or a `fetch_add`. Under `--cfg cq_core_word32` the crate compiles as for
//! targets without 64-bit atomics.

mod plain;
mod site;

use core::fmt;
#[cfg(target_has_atomic = "32")]
use core::sync::atomic::Ordering::AcqRel;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

pub(crate) use self::plain::{
    LOADS_AHEAD, MOST_COPIED, Tracked, by_its_address, copy_entry, copy_in_order, hold_loads,
};
use self::site::at;
pub(crate) use crate::{array_of, const_unless_loom};

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
        #[doc(hidden)]
        pub use core::sync::atomic::{AtomicU8, AtomicU32};
        #[cfg(target_has_atomic = "64")]
        #[doc(hidden)]
        pub use core::sync::atomic::AtomicU64;
        #[cfg(feature = "async")]
        pub(crate) use atomic_waker::AtomicWaker;
        use core::sync::atomic::fence;
        pub(crate) use self::site::{Site, intact};
    }
}

cfg_if::cfg_if! {
    if #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))] {
        mod shared;
        #[doc(hidden)]
        pub use self::AtomicU64 as AtomicWord;
        pub(crate) use self::shared::{Backoff, acquire_tail, disarm, end, latch_more, reserve};
        /// The widest word that the target loads and stores in one piece.
        #[doc(hidden)]
        pub type Word = u64;
    } else {
        #[doc(hidden)]
        pub use self::AtomicU32 as AtomicWord;
        /// The widest word that the target loads and stores in one piece.
        #[doc(hidden)]
        pub type Word = u32;
    }
}

/// Whether the target has no 64-bit atomics, as a microcontroller. There instructions and flash count, not cache lines.
pub(crate) const IS_SMALL: bool = size_of::<Word>() < size_of::<u64>();

/// Publishes an entry: stores the word that has its generation, after all the others.
#[inline(always)]
pub(crate) fn publish(word: &AtomicWord, value: Word) {
    word.store(value, at(Site::Publish, Release));
}

/// Loads the word that has the generation of a slot. If it shows that the entry is published, the others may be read.
#[inline(always)]
pub(crate) fn observe(word: &AtomicWord) -> Word {
    word.load(at(Site::Observe, Acquire))
}

/// [`publish`] by a byte beside the entry.
#[inline(always)]
pub(crate) fn publish_u8(cell: &AtomicU8, value: u8) {
    cell.store(value, at(Site::Publish, Release));
}

/// [`observe`] of a byte beside the entry.
#[inline(always)]
pub(crate) fn observe_u8(cell: &AtomicU8) -> u8 {
    cell.load(at(Site::Observe, Acquire))
}

/// Releases every slot before `position` to the producer.
#[inline(always)]
pub(crate) fn release_head(head: &AtomicWord, position: Word) {
    head.store(position, at(Site::ReleaseHead, Release));
}

/// Loads the position up to which the consumer has released slots.
#[inline(always)]
pub(crate) fn acquire_head(head: &AtomicWord) -> Word {
    head.load(at(Site::AcquireHead, Acquire))
}

/// Records the overrun, or that the producers are gone, after the last entry stored.
#[inline(always)]
pub(crate) fn latch(cell: &AtomicU32, value: u32) {
    cell.store(value, at(Site::Latch, Release));
}

/// Loads what was latched. If anything was, everything stored before is visible.
#[inline(always)]
pub(crate) fn read_latch(cell: &AtomicU32) -> u32 {
    cell.load(at(Site::ReadLatch, Acquire))
}

/// Records that the consumer leaves: it fails or abandons the queue, or reports its end.
#[inline(always)]
pub(crate) fn refuse(cell: &AtomicU32, value: u32) {
    cell.store(value, at(Site::Refuse, Release));
}

/// Loads what the consumer recorded. If it has left, everything that it did before is visible.
#[inline(always)]
pub(crate) fn see_refusal(cell: &AtomicU32) -> u32 {
    cell.load(at(Site::SeeRefusal, Acquire))
}

/// Stands between publishing (an entry, or the end of the queue) and loading the arm word.
#[inline(always)]
pub(crate) fn push_fence() {
    if intact(Site::PushFence) {
        fence(SeqCst);
    }
}

/// Stands between storing the arm word and loading the slot and the latch.
#[inline(always)]
pub(crate) fn arm_fence() {
    if intact(Site::ArmFence) {
        fence(SeqCst);
    }
}

/// Takes a lock, if it is free.
#[cfg(target_has_atomic = "32")]
#[inline(always)]
pub(crate) fn try_lock(word: &AtomicU32) -> bool {
    // The load leaves the cache line of a taken lock with its holder.
    load_u32(word) == 0 && word.compare_exchange(0, 1, at(Site::Lock, Acquire), Relaxed).is_ok()
}

/// Adds one to a count of sharers, which saturates.
#[cfg(target_has_atomic = "32")]
#[doc(hidden)]
pub fn join(count: &AtomicU32) {
    let _ = count.fetch_update(Relaxed, Relaxed, |count| count.checked_add(1));
}

/// Subtracts one from a count of sharers. Returns whether it was the last one, which then sees what all others did. A
/// saturated count stays so, because nobody knows how many there are.
#[cfg(target_has_atomic = "32")]
#[doc(hidden)]
pub fn leave(count: &AtomicU32) -> bool {
    let one_less = |count: u32| if count == u32::MAX { None } else { count.checked_sub(1) };
    count.fetch_update(at(Site::Leave, AcqRel), Relaxed, one_less) == Ok(1)
}

/// Two share, and there is no third: who has both is the last one.
#[cfg(not(target_has_atomic = "32"))]
pub(crate) const fn leave(_: &AtomicU32) -> bool {
    true
}

/// Counts an event, and makes visible what was done before it.
#[inline(always)]
pub(crate) fn count_event(count: &AtomicU32) {
    cfg_if::cfg_if! {
        if #[cfg(target_has_atomic = "32")] {
            // A read-modify-write continues the release sequence: the count also makes visible what was done before
            // earlier events.
            count.fetch_add(1, at(Site::CountEvent, Release));
        } else {
            count.store(load_u32(count).wrapping_add(1), at(Site::CountEvent, Release));
        }
    }
}

/// Loads the number of events. What was done before each of them is then visible.
#[inline(always)]
pub(crate) fn see_events(count: &AtomicU32) -> u32 {
    count.load(at(Site::SeeEvents, Acquire))
}

/// Registers a task to be woken.
#[cfg(feature = "async")]
pub(crate) fn register(waker: &AtomicWaker, task: &core::task::Waker) {
    #[cfg(loom)]
    waker.register_by_ref(task);
    #[cfg(not(loom))]
    waker.register(task);
}

/// Takes out the registered task.
#[cfg(feature = "async")]
pub(crate) fn unregister(waker: &AtomicWaker) {
    #[cfg(loom)]
    drop(waker.take_waker());
    #[cfg(not(loom))]
    drop(waker.take());
}

/// Wakes the registered task.
#[cfg(feature = "async")]
pub(crate) fn wake(waker: &AtomicWaker) {
    waker.wake();
}

/// Releases a lock.
#[cfg(target_has_atomic = "32")]
#[inline(always)]
pub(crate) fn unlock(word: &AtomicU32) {
    word.store(0, at(Site::Unlock, Release));
}

/// Loads a word that is private to one side, that one of the named pairs orders, or that is a count.
#[doc(hidden)]
#[inline(always)]
pub fn load(word: &AtomicWord) -> Word {
    word.load(Relaxed)
}

/// Stores a word that is private to one side, that one of the named pairs orders, or that is a count.
#[doc(hidden)]
#[inline(always)]
pub fn store(word: &AtomicWord, value: Word) {
    word.store(value, Relaxed);
}

/// [`load`] for 32 bits.
#[doc(hidden)]
#[inline(always)]
pub fn load_u32(word: &AtomicU32) -> u32 {
    word.load(Relaxed)
}

/// [`store`] for 32 bits.
#[doc(hidden)]
#[inline(always)]
pub fn store_u32(word: &AtomicU32, value: u32) {
    word.store(value, Relaxed);
}

/// [`load`] for 8 bits.
#[inline(always)]
pub(crate) fn load_u8(cell: &AtomicU8) -> u8 {
    cell.load(Relaxed)
}

/// [`store`] for 8 bits.
#[inline(always)]
pub(crate) fn store_u8(cell: &AtomicU8, value: u8) {
    cell.store(value, Relaxed);
}

/// Bytes beside the words of shared memory, which nobody uses. As padding they would be part of what a reference promises
/// not to change, and others may write to any byte of such memory.
pub(crate) struct Unused<const N: usize>([core::sync::atomic::AtomicU8; N]);

impl<const N: usize> Unused<N> {
    /// Zeros.
    pub(crate) const fn new() -> Self {
        Self([const { core::sync::atomic::AtomicU8::new(0) }; N])
    }
}

impl<const N: usize> Default for Unused<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Debug for Unused<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} unused bytes", self.0.len())
    }
}
