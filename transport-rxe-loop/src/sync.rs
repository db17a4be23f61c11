//! Atomics, and the few operations that the device's protocols are built on. Nothing else in this crate
//! names a memory ordering or a fence.
//!
//! # Which words hand what over
//!
//! | word | written by | read by | what is handed over |
//! |---|---|---|---|
//! | lock | [`unlock`] | [`try_lock`] | everything done under the lock |
//! | turn of a queue pair | [`swap_if`], kicker and holder | [`swap_if`], holder | whatever the kicker did before it kicked |
//! | identity of a queue pair | [`swap_if`], [`release`] | [`acquire`] | the attributes stored before the state |
//! | posted position | [`release`], poster | [`acquire`], holder of the turn | the request's words |
//! | retired position | [`raise_from`], poller | [`acquire`], poster | that the slot's request was read |
//! | copying counter | [`release`], holder | [`acquire`], deregistration | that the copy is over |
//! | life of a table entry | [`swap_if`], [`release`] | [`swap_if`] | that the last owner is done with it |
//! | whether queue pairs are noted | [`release`], who noted them | [`swap_if`], who runs them | that their bits are set |
//! | newcomers of a completion queue | [`release`], owner of the queue pair | [`swap_if`], who drops a completion | that it has left RESET |
//! | whether draining is to be reported | owner of the queue pair, before it kicks | [`swap_if`], holder of the turn | nothing: it is told once |
//! | taken position | [`release`], taker | [`acquire`], poster | that the receive's words were read |
//! | word of an atomic | [`fetch_add`], [`compare_swap`] | the same | what the other did before its atomic |
//! | last word of a WRITE | [`write_fence`] before it | [`read_fence`] after it | the rest of the WRITE (Q8) |
//!
//! Two pairs are settled by [`full_fence`] on both sides: *open the window, then look at the key* against
//! *kill the key, then look at the window*; and *connect, then look at the peer's state* against *change
//! the state, then look who is connected*.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

#[cfg(not(loom))]
pub use std::sync::atomic::AtomicU8;

use cq_core::sync::fence;
pub use cq_core::sync::{
    AtomicU32, AtomicWord as AtomicU64, load, load_u32, store, store_u32, take_lock, try_lock,
    try_lock_as, unlock,
};

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_has_atomic = "64")))]
compile_error!("the loopback device is for 64-bit Linux");

/// The two widths of word, so that each operation is written once.
pub trait Atomic {
    /// What the word holds.
    type Value: Copy;
    /// Loads, and sees what was done before the value was [`release`]d.
    fn acquire(&self) -> Self::Value;
    /// Stores, after everything done so far.
    fn release(&self, value: Self::Value);
    /// Stores `to` if the word holds `from`; else says what it holds. Acquires and releases.
    fn swap_if(&self, from: Self::Value, to: Self::Value) -> Result<(), Self::Value>;
}

macro_rules! atomic {
    ($atomic:ty, $value:ty) => {
        impl Atomic for $atomic {
            type Value = $value;
            #[inline(always)]
            fn acquire(&self) -> $value {
                self.load(Acquire)
            }
            #[inline(always)]
            fn release(&self, value: $value) {
                self.store(value, Release);
            }
            #[inline(always)]
            fn swap_if(&self, from: $value, to: $value) -> Result<(), $value> {
                self.compare_exchange(from, to, AcqRel, Acquire).map(drop)
            }
        }
    };
}
atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);

/// [`Atomic::acquire`].
#[inline(always)]
pub fn acquire<A: Atomic>(word: &A) -> A::Value {
    word.acquire()
}

/// [`Atomic::release`].
#[inline(always)]
pub fn release<A: Atomic>(word: &A, value: A::Value) {
    word.release(value);
}

/// [`Atomic::swap_if`].
#[inline(always)]
pub fn swap_if<A: Atomic>(word: &A, from: A::Value, to: A::Value) -> Result<(), A::Value> {
    word.swap_if(from, to)
}

/// Raises a word to what `next` makes of it, until that is nothing or nobody interfered.
#[inline(always)]
pub fn raise_from<A: Atomic>(word: &A, mut next: impl FnMut(A::Value) -> Option<A::Value>) {
    let mut seen = word.acquire();
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

/// Loads a byte that one of the pairs orders, or nothing at all.
#[cfg(not(loom))]
#[inline(always)]
pub fn load_u8(byte: &AtomicU8) -> u8 {
    byte.load(Relaxed)
}

/// Stores a byte that one of the pairs orders, or nothing at all.
#[cfg(not(loom))]
#[inline(always)]
pub fn store_u8(byte: &AtomicU8, value: u8) {
    byte.store(value, Relaxed);
}

/// A number that nobody else gets.
#[inline(always)]
pub fn next_number(word: &AtomicU32) -> u32 {
    word.fetch_add(1, Relaxed)
}

/// Stands between a store and a load where the other side does the same crosswise.
#[inline(always)]
pub fn full_fence() {
    fence(SeqCst);
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
