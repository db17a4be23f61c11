//! Atomics, and the few operations that the device's protocols are built on. Nothing else in this crate
//! names a memory ordering or a fence.
//!
//! # Which words hand what over
//!
//! | word | written by | read by | what is handed over |
//! |---|---|---|---|
//! | lock | [`unlock`] | [`try_lock_as`], [`take_lock`] | everything done under the lock |
//! | ownership of a send queue | [`swap_if`], who enters; the owner | [`swap_if`], the owner | whatever who found it owned did before |
//! | identity of a queue pair | [`swap_if`], [`release`] | [`acquire`] | the attributes stored before the state |
//! | posted position | [`release`], poster | [`acquire`], holder of the turn | the request's words |
//! | retired position | [`raise_from`], poller | [`acquire`], poster | that the slot's request was read |
//! | copying counter | [`store_fenced`], holder | [`acquire_at`], who has shut it out | that the copy is over |
//! | posted receives | [`store_fenced`], poster | [`acquire_at`], taker and flusher | the receive's words |
//! | completed receives | [`release_at`], who settles | [`acquire_at`], poster | that the receive's words were read |
//! | word of a pool's slot | [`swap_if`], who settles | [`acquire_at`], poster; [`acquire`], who waits for that | that the receive's words were read, and its completion published |
//! | posted receives of a pool | [`store_fenced`], poster | [`acquire_at`], taker | the receives' words, slots and order |
//! | owner of a granule of the arena | [`release_at`], its owner, or who sweeps up after it | [`acquire_at`], who takes it | that the last owner is done with the memory |
//! | life of a table entry | [`swap_if`], [`release`] | [`swap_if`] | that the last owner is done with it |
//! | word of a process | [`swap_if`], [`release`] | [`acquire`], [`swap_if`], who attaches | that nothing is left of its last owner |
//! | newest of the open files | [`release`], who opened it | [`acquire`], anybody, a forked child too | what it says of itself |
//! | whether queue pairs are noted | [`release`], who noted them | [`swap_if`], who runs them | that their bits are set |
//! | bits of queue pairs to be run | [`swap_if`], who leaves a request; who takes it | [`swap_if`], who takes it | what was done before it was left |
//! | newcomers of a completion queue | [`count`], owner of the queue pair | [`acquire`], who drops a completion | that it has left RESET |
//! | when the service thread looks at a held event | under the queue's lock; then [`count`], the thread's calls | [`acquire`] of the calls, the thread | the alarm |
//! | whether draining is to be reported | owner of the queue pair, before it kicks | [`swap_if`], holder of the turn | nothing: it is told once |
//! | count of a source of events | [`swap_if`], who raises one; the channel's owner | [`acquire`], [`swap_if`], the same | in which life of the source it is, to which channel its events come, and what the object was then |
//! | marks of a channel | [`swap_if`], who raises an event | [`swap_if`], the channel's owner | that it is counted |
//! | count of visitors | [`leave`], who looked at other processes' regions | [`acquire_at`], who unmaps them | that it does not look any more |
//! | records of other processes' regions | [`release`], who learned of one | [`acquire`], who looks | what it says |
//! | word of a stage | [`swap_if`], asker and asked | [`acquire`], [`swap_if`], the other | the request, and the answer |
//! | whether abandoned requests are in flight at a process | [`release`], the process, as it clears it | [`acquire`], who takes a receive of its | that the process has written to the receive |
//! | who has asked a process | [`raise_from`], asker | [`raise_from`], the asked | that the request is there |
//! | word of an atomic | [`fetch_add`], [`compare_swap`] | the same | what the other did before its atomic |
//! | last word of a WRITE | [`write_fence`] before it | [`read_fence`] after it | the rest of the WRITE (Q8) |
//!
//! # What is settled by a full fence on both sides
//! Each is *store, fence, load*, and the other side does the same crosswise, so that one of them sees the
//! other.
//!
//! | one | the other |
//! |---|---|
//! | open the window ([`Site::OpenFence`]), look at the peer's state, the key | change the state, kill the key ([`Site::ChangeFence`]), look at the counter |
//! | close the window ([`Site::CloseFence`]), look at the peer's state | change the state ([`Site::ChangeFence`]), look at the counter |
//! | post receives ([`Site::PostFence`]), look for the mark | leave the mark ([`Site::StarveFence`]), look for receives |
//! | post receives ([`Site::PostFence`]), look at the own state | change the state ([`Site::ChangeFence`]), look for receives |
//! | give the lock of a queue pair's datagrams back, look at its state ([`Site::LeaveFence`]) | change the state ([`Site::ChangeFence`]), try the lock |
//! | free what was taken for the peer, close the window ([`Site::CloseFence`]), look at its state | change the state ([`Site::ChangeFence`]), look for what is taken |
//! | mark a source at its channel ([`Site::RaiseFence`]), look whether the descriptor was written | say that it was not ([`Site::EmptyFence`]), look at the marks |
//! | hold an event back ([`Site::HoldFence`]), look at the alarm | take the alarm back without the lock ([`Site::AlarmFence`]), look whether an event is held back |
//! | count a visitor ([`Site::VisitFence`]), look at what is in its place | put something else in the place ([`Site::RetireFence`]), look at the counts |
//! | connect, look at the peer's state ([`full_fence`]) | change the state, look who is connected ([`full_fence`]) |

mod site;

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

// Threads of a model can be killed at whatever changes these.
#[cfg(loom)]
pub use cq_core::sync::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, death};
#[cfg(loom)]
use loom::sync::atomic::fence;
#[cfg(all(target_arch = "x86_64", not(loom)))]
use std::sync::atomic::compiler_fence;
#[cfg(not(loom))]
use std::sync::atomic::fence;
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

#[cfg(loom)]
pub use self::site::weaken;
pub use self::site::{Site, intact};

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_has_atomic = "64")))]
compile_error!("the loopback device is for 64-bit Linux");

/// The widths of word, so that each operation is written once.
pub trait Atomic {
    /// What the word holds.
    type Value: Copy;
    /// Loads.
    fn load_as(&self, ordering: Ordering) -> Self::Value;
    /// Stores.
    fn store_as(&self, value: Self::Value, ordering: Ordering);
    /// Stores, and fences.
    fn store_fenced(&self, value: Self::Value);
    /// Stores `to` if the word holds `from`; else says what it holds. Acquires and releases.
    fn swap_if(&self, from: Self::Value, to: Self::Value) -> Result<(), Self::Value>;
}

macro_rules! atomic {
    ($atomic:ty, $value:ty $(, $of:ident)?) => {
        impl$(<$of>)? Atomic for $atomic {
            type Value = $value;
            #[inline(always)]
            fn load_as(&self, ordering: Ordering) -> $value {
                self.load(ordering)
            }
            #[inline(always)]
            fn store_as(&self, value: $value, ordering: Ordering) {
                self.store(value, ordering);
            }
            #[cfg(all(target_arch = "x86_64", not(loom)))]
            #[inline(always)]
            fn store_fenced(&self, value: $value) {
                // An exchange is a full fence here, and takes a fraction of the time that MFENCE takes.
                self.swap(value, SeqCst);
                compiler_fence(SeqCst);
            }
            #[cfg(not(all(target_arch = "x86_64", not(loom))))]
            #[inline(always)]
            fn store_fenced(&self, value: $value) {
                self.store_as(value, at(Site::StoreFenced, Release));
                fence(SeqCst);
            }
            #[inline(always)]
            fn swap_if(&self, from: $value, to: $value) -> Result<(), $value> {
                self.compare_exchange(from, to, AcqRel, Acquire).map(drop)
            }
        }
    };
}
atomic!(AtomicU8, u8);
atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);
atomic!(AtomicPtr<T>, *mut T, T);

/// Loads a word that one of the pairs orders, or nothing at all.
#[inline(always)]
pub fn load<A: Atomic>(word: &A) -> A::Value {
    word.load_as(Relaxed)
}

/// Stores a word that one of the pairs orders, or nothing at all.
#[inline(always)]
pub fn store<A: Atomic>(word: &A, value: A::Value) {
    word.store_as(value, Relaxed);
}

/// Takes a lock word for somebody, if nobody, 0, has it.
#[inline(always)]
pub fn try_lock_as(word: &AtomicU32, holder: u32) -> bool {
    // Looking first leaves the cache line with the holder.
    load(word) == 0 && take_lock(word, 0, holder)
}

/// Takes a lock word from `from`: nobody, or a holder that is dead. What a dead holder did comes over by the knowledge
/// that it is dead, not by this word.
#[inline(always)]
pub fn take_lock(word: &AtomicU32, from: u32, to: u32) -> bool {
    word.compare_exchange(from, to, at(Site::Lock, Acquire), Relaxed).is_ok()
}

/// Gives a lock word back.
#[inline(always)]
pub fn unlock(word: &AtomicU32) {
    word.store_as(0, at(Site::Unlock, Release));
}

/// Loads, and sees what was done before the value was [`release`]d.
#[inline(always)]
pub fn acquire<A: Atomic>(word: &A) -> A::Value {
    word.load_as(Acquire)
}

/// [`acquire`], where a model takes it out.
#[inline(always)]
pub fn acquire_at<A: Atomic>(word: &A, site: Site) -> A::Value {
    word.load_as(at(site, Acquire))
}

/// Stores, after everything done so far.
#[inline(always)]
pub fn release<A: Atomic>(word: &A, value: A::Value) {
    word.store_as(value, Release);
}

/// [`release`], where a model takes it out.
#[inline(always)]
pub fn release_at<A: Atomic>(word: &A, value: A::Value, site: Site) {
    word.store_as(value, at(site, Release));
}

/// Stores, after everything done so far, and then stands as a [`full_fence`] before what is loaded next. The
/// fence is what a model takes out.
#[inline(always)]
pub fn store_fenced<A: Atomic>(word: &A, value: A::Value, site: Site) {
    if intact(site) {
        word.store_fenced(value);
    } else {
        word.store_as(value, Release);
    }
}

/// [`Atomic::swap_if`].
#[inline(always)]
pub fn swap_if<A: Atomic>(word: &A, from: A::Value, to: A::Value) -> Result<(), A::Value> {
    word.swap_if(from, to)
}

/// Raises a word to what `next` makes of it, until that is nothing or nobody interfered.
#[inline(always)]
pub fn raise_from<A: Atomic>(word: &A, mut next: impl FnMut(A::Value) -> Option<A::Value>) {
    let mut seen = acquire(word);
    while let Some(to) = next(seen) {
        match word.swap_if(seen, to) {
            Ok(()) => return,
            Err(now) => seen = now,
        }
    }
}

/// What a FETCH_ADD does: adds, and says what the word held. Acquires and releases, so that who finds what
/// a peer did by an atomic finds everything before it.
#[inline]
pub fn fetch_add(word: &AtomicU64, value: u64) -> u64 {
    word.fetch_add(value, AcqRel)
}

/// What a COMP_SWAP does: stores `to` if the word holds `from`, and says what it held. Acquires and
/// releases, as [`fetch_add`] does.
#[inline]
pub fn compare_swap(word: &AtomicU64, from: u64, to: u64) -> u64 {
    match word.compare_exchange(from, to, AcqRel, Acquire) {
        Ok(held) | Err(held) => held,
    }
}

/// A number that nobody else gets.
#[inline(always)]
pub fn next_number(word: &AtomicU32) -> u32 {
    word.fetch_add(1, Relaxed)
}

/// One more in a word that a sleeper watches: everything done so far is seen by who [`acquire`]s it.
#[inline]
pub fn count(word: &AtomicU32) {
    word.fetch_add(1, Release);
}

/// One more in a word that tells who is at something, and stands between that and what is looked at then. The fence is
/// what a model takes out.
#[inline]
pub fn enter(word: &AtomicU32) {
    word.fetch_add(1, SeqCst);
    // A read-modify-write is a full fence there.
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    compiler_fence(SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    full_fence_at(Site::VisitFence);
}

/// One less in a word that was [`enter`]ed, after everything done so far.
#[inline]
pub fn leave(word: &AtomicU32) {
    word.fetch_sub(1, at(Site::LeaveVisit, Release));
}

/// Stands between a store and a load where the other side does the same crosswise.
#[inline(always)]
pub fn full_fence() {
    fence(SeqCst);
}

/// [`full_fence`], where a model takes it out.
#[inline(always)]
pub fn full_fence_at(site: Site) {
    if intact(site) {
        full_fence();
    }
}

/// Everything stored so far is visible before anything stored from here on.
#[inline(always)]
pub fn write_fence() {
    fence(Release);
}

/// Everything loaded from here on is as new as what was loaded so far.
#[inline(always)]
pub fn read_fence() {
    fence(Acquire);
}

#[inline(always)]
fn at(site: Site, ordering: Ordering) -> Ordering {
    if intact(site) { ordering } else { Relaxed }
}
