//! Atomics, and the named operations built on them. Nothing else in this crate names an atomic type's
//! home, a memory ordering or a fence.
//!
//! Under `--cfg loom` the same names are loom's, and `weaken` takes an operation out by its
//! [`Site`], which is how a model shows that it would notice. Under `--cfg cq_core_word32` the crate is
//! what it is on targets without 64-bit atomics, which is how it is tested for them. A thread of a model can be
//! killed at any of its stores, as a process can: `death` has the means.
//!
//! # Who is paired with whom
//!
//! | operation | side | pairs with | what the pair hands over |
//! |---|---|---|---|
//! | [`publish`] (Release) | producer | [`observe`] (Acquire) | the words and the tag of one entry |
//! | [`release_head`] (Release) | consumer | [`acquire_head`] (Acquire) | slots that were read and may be written again |
//! | [`latch`] (Release) | producer | [`read_latch`] (Acquire) | every entry published before the overrun |
//! | [`latch_more`] (Release) | any producer | [`read_latch`] (Acquire) | that the reservation word is closed |
//! | [`reserve`] (Release) | any producer | [`acquire_tail`] (Acquire), any producer | a head at least as new as any that could be seen when the reservation was made |
//! | [`push_fence`] (SeqCst) | producer | [`arm_fence`] (SeqCst) | publish-then-look-at-arm against arm-then-look-at-slot: at least one side sees the other |
//! | [`push_fence`] (SeqCst) | one producer of several | [`push_fence`] (SeqCst) of another | with an [`arm_fence`] between the two: that the slot behind is published, or that the ring has ended |
//! | [`unlock`] (Release) | who held a lock | [`try_lock`], [`take_lock`] (Acquire) | everything done under the lock: the queue that pollers take turns at, and their place in it |
//! | [`Signal::raise`](crate::transport::Signal::raise) | producer | taking the event | that the arm word was written Idle, before the consumer arms again |
//!
//! [`disarm`] and [`end`] pair with nothing: they are read-modify-writes because what they replace must be
//! what was looked at. A failed [`reserve`] is an [`acquire_tail`].
//!
//! Everything else is `Relaxed`: its value is either private to one side or ordered by one of these pairs.
//!
//! ```
//! use cq_core::sync::{AtomicWord, Word, observe, publish};
//!
//! let word = AtomicWord::new(0);
//! publish(&word, 7 as Word);
//! assert_eq!(observe(&word), 7);
//! ```

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};

cfg_if::cfg_if! {
    if #[cfg(loom)] {
        pub mod death;
        pub use self::death::step;
        pub use loom::hint::spin_loop;
        pub use loom::sync::atomic::{AtomicU32, fence};
    } else {
        pub use core::hint::spin_loop;
        pub use core::sync::atomic::{AtomicU32, fence};
    }
}

cfg_if::cfg_if! {
    if #[cfg(all(loom, target_has_atomic = "64", not(cq_core_word32)))] {
        pub use loom::sync::atomic::AtomicU64 as AtomicWord;
        /// The widest word that the target loads and stores in one piece.
        pub type Word = u64;
    } else if #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))] {
        pub use core::sync::atomic::AtomicU64 as AtomicWord;
        /// The widest word that the target loads and stores in one piece.
        pub type Word = u64;
    } else {
        pub use self::AtomicU32 as AtomicWord;
        /// The widest word that the target loads and stores in one piece.
        pub type Word = u32;
    }
}

cfg_if::cfg_if! {
    if #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))] {
        mod shared;
        pub use self::shared::{Backoff, acquire_tail, disarm, end, latch_more, reserve};
    }
}

/// A step that some protocol of the engine cannot do without.
///
/// A loom model that claims to check a protocol is run once more with each of the protocol's sites
/// weakened, and must then fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// [`publish`] as Relaxed.
    Publish,
    /// [`observe`] as Relaxed.
    Observe,
    /// [`release_head`] as Relaxed.
    ReleaseHead,
    /// [`acquire_head`] as Relaxed.
    AcquireHead,
    /// [`latch`] as Relaxed.
    Latch,
    /// [`read_latch`] as Relaxed.
    ReadLatch,
    /// No [`push_fence`].
    PushFence,
    /// No [`arm_fence`].
    ArmFence,
    /// The producer's check that the ring has room.
    FullCheck,
    /// Giving slots back before the caller sees what was in them.
    ReleaseFirst,
    /// The consumer's second look at the slot once it has seen the overrun.
    LookAfterLatch,
    /// The poll after arming.
    SecondPoll,
    /// That a weaker arm leaves a stronger one in force.
    NeverWeaken,
    /// Disarming before the event is raised.
    DisarmFirst,
    /// Waking the sleeper of a queue that overran.
    OverrunWakes,
    /// [`try_lock`] and [`take_lock`] as Relaxed.
    Lock,
    /// [`unlock`] as Relaxed.
    Unlock,
    /// [`reserve`] as Relaxed.
    Reserve,
    /// [`acquire_tail`], also of a [`reserve`] that failed, as Relaxed.
    AcquireTail,
    /// That [`reserve`] succeeds only on the tail that the check for room was made on.
    ReserveSeen,
    /// That the overrun closes the reservation word.
    CloseInWord,
    /// That a consumer which has seen the overrun goes on to the final tail.
    DrainToTail,
    /// That no completion which [`latch_more`] counts is forgotten.
    CountEach,
    /// That [`disarm`] erases only what the producer has looked at.
    DisarmSeen,
    /// The look at the arm word after a [`disarm`] that failed.
    LookAgain,
    /// A producer's look at the slot behind its own.
    Successor,
    /// Waking the sleeper who may overlook the end of the ring.
    EndWakes,
    /// That a resize ends the ring only at the tail that it has seen.
    ResizeSeen,
    /// That the consumer takes the old ring's last entry before the new ring's first.
    DrainBeforeNew,
}

/// Publishes an entry: the last word of a slot, after all the others.
#[inline(always)]
pub fn publish(word: &AtomicWord, value: Word) {
    if step() {
        word.store(value, at(Site::Publish, Release));
    }
}

/// Looks whether an entry is published; if it is, its other words may be read.
#[inline(always)]
pub fn observe(word: &AtomicWord) -> Word {
    word.load(at(Site::Observe, Acquire))
}

/// Gives every slot before `position` back to the producer.
#[inline(always)]
pub fn release_head(head: &AtomicWord, position: Word) {
    if step() {
        head.store(position, at(Site::ReleaseHead, Release));
    }
}

/// Learns which slots the consumer has given back.
#[inline(always)]
pub fn acquire_head(head: &AtomicWord) -> Word {
    head.load(at(Site::AcquireHead, Acquire))
}

/// Announces the overrun, after the last entry that was stored.
#[inline(always)]
pub fn latch(cell: &AtomicU32, value: u32) {
    if step() {
        cell.store(value, at(Site::Latch, Release));
    }
}

/// Looks whether the queue has overrun; if so, everything stored before can be seen.
#[inline(always)]
pub fn read_latch(cell: &AtomicU32) -> u32 {
    cell.load(at(Site::ReadLatch, Acquire))
}

/// Stands between publishing (an entry, or the overrun) and looking at the arm word.
#[inline(always)]
pub fn push_fence() {
    if intact(Site::PushFence) {
        fence(SeqCst);
    }
}

/// Stands between writing the arm word and looking at the slot and the latch.
#[inline(always)]
pub fn arm_fence() {
    if intact(Site::ArmFence) {
        fence(SeqCst);
    }
}

/// Takes a lock word, if nobody has it.
#[cfg(target_has_atomic = "32")]
#[inline(always)]
pub fn try_lock(word: &AtomicU32) -> bool {
    try_lock_as(word, 1)
}

/// [`try_lock`] where the word says who has it; nobody is 0.
#[cfg(target_has_atomic = "32")]
#[inline(always)]
pub fn try_lock_as(word: &AtomicU32, holder: u32) -> bool {
    // Looking first leaves the cache line with the holder.
    load_u32(word) == 0 && take_lock(word, 0, holder)
}

/// Takes a lock word from `from`: nobody, or a holder that is dead. What a dead holder did comes over by
/// the knowledge that it is dead, not by this word.
#[cfg(target_has_atomic = "32")]
#[inline(always)]
pub fn take_lock(word: &AtomicU32, from: u32, to: u32) -> bool {
    step() && word.compare_exchange(from, to, at(Site::Lock, Acquire), Relaxed).is_ok()
}

/// Gives a lock word back.
#[inline(always)]
pub fn unlock(word: &AtomicU32) {
    if step() {
        word.store(0, at(Site::Unlock, Release));
    }
}

/// Loads a word that is private to one side, or that one of the named pairs orders.
#[inline(always)]
pub fn load(word: &AtomicWord) -> Word {
    word.load(Relaxed)
}

/// Stores a word that is private to one side, or that one of the named pairs orders.
#[inline(always)]
pub fn store(word: &AtomicWord, value: Word) {
    if step() {
        word.store(value, Relaxed);
    }
}

/// [`load`] for 32 bits.
#[inline(always)]
pub fn load_u32(word: &AtomicU32) -> u32 {
    word.load(Relaxed)
}

/// [`store`] for 32 bits.
#[inline(always)]
pub fn store_u32(word: &AtomicU32, value: u32) {
    if step() {
        word.store(value, Relaxed);
    }
}

#[inline(always)]
fn at(site: Site, ordering: Ordering) -> Ordering {
    if intact(site) { ordering } else { Relaxed }
}

cfg_if::cfg_if! {
    if #[cfg(loom)] {
        /// Which of a crate's sites is taken out.
        pub type Weakened<S> = std::thread::LocalKey<core::cell::Cell<Option<S>>>;

        std::thread_local! {
            static WEAKENED: core::cell::Cell<Option<Site>> = const { core::cell::Cell::new(None) };
        }

        /// Whether `site` does its work; false only inside [`weaken`].
        pub fn intact(site: Site) -> bool {
            WEAKENED.get() != Some(site)
        }

        /// Runs `model` with one site of the protocols taken out.
        pub fn weaken<R>(site: Site, model: impl FnOnce() -> R) -> R {
            weaken_in(&WEAKENED, site, model)
        }

        /// [`weaken`], for the sites of any crate. Loom runs all threads of a model on the thread that
        /// called it, so other models running at the same time do not notice.
        pub fn weaken_in<S: 'static, R>(
            weakened: &'static Weakened<S>,
            site: S,
            model: impl FnOnce() -> R,
        ) -> R {
            struct Restore<S: 'static>(&'static Weakened<S>);
            impl<S> Drop for Restore<S> {
                fn drop(&mut self) {
                    self.0.set(None);
                }
            }
            weakened.set(Some(site));
            let _restore = Restore(weakened);
            model()
        }
    } else {
        /// Always true: sites are weakened under loom only.
        #[inline(always)]
        pub const fn intact(_site: Site) -> bool {
            true
        }

        /// Always true: threads are killed under loom only.
        #[inline(always)]
        pub const fn step() -> bool {
            true
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
