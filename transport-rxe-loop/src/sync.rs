//! Atomics, and the operations that the device's protocols are built on. No other module of this crate names a memory
//! ordering or a fence.
//!
//! Each ordering has its partner in the table of [`internals::orderings`](crate::internals::orderings).

mod site;

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

// In a model, threads can be killed at any operation that changes these.
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

use self::site::at;
#[cfg(loom)]
pub use self::site::weaken;
pub use self::site::{Site, intact};

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_has_atomic = "64")))]
compile_error!("the loopback device is for 64-bit Linux");

/// The operations that all widths of word have.
pub trait Atomic {
    /// The type of the value.
    type Value: Copy;
    /// Loads.
    fn load_as(&self, ordering: Ordering) -> Self::Value;
    /// Stores.
    fn store_as(&self, value: Self::Value, ordering: Ordering);
    /// Stores, and fences.
    fn store_fenced(&self, value: Self::Value);
    /// Stores `to` if the word holds `from`; else returns what it holds. Acquires and releases.
    fn cas(&self, from: Self::Value, to: Self::Value) -> Result<(), Self::Value>;
}

macro_rules! atomic {
    ($atomic:ty, $value:ty $(, $of:ident)?) => {
        impl$(<$of>)? Atomic for $atomic {
            type Value = $value;
            #[inline(always)]
            fn load_as(&self, ordering: Ordering) -> $value {
                #[cfg(fuzzing)]
                before_load(self);
                self.load(ordering)
            }
            #[inline(always)]
            fn store_as(&self, value: $value, ordering: Ordering) {
                self.store(value, ordering);
            }
            #[cfg(all(target_arch = "x86_64", not(loom)))]
            #[inline(always)]
            fn store_fenced(&self, value: $value) {
                // On x86-64 an exchange is a full fence, and takes a fraction of the time of MFENCE.
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
            fn cas(&self, from: $value, to: $value) -> Result<(), $value> {
                #[cfg(fuzzing)]
                before_load(self);
                self.compare_exchange(from, to, AcqRel, Acquire).map(drop)
            }
        }
    };
}
atomic!(AtomicU8, u8);
atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);
atomic!(AtomicPtr<T>, *mut T, T);

/// What a fuzz target has happen before each load, of so many bytes at this address: another process may write at any time.
#[cfg(fuzzing)]
pub static BEFORE_LOAD: std::sync::OnceLock<fn(usize, usize)> = std::sync::OnceLock::new();

#[cfg(fuzzing)]
#[inline]
fn before_load<A>(word: &A) {
    if let Some(happens) = BEFORE_LOAD.get() {
        happens(std::ptr::from_ref(word).addr(), size_of_val(word));
    }
}

/// Loads with Relaxed: a word that one of the pairs above orders, or that needs no order.
#[inline(always)]
pub fn load<A: Atomic>(word: &A) -> A::Value {
    word.load_as(Relaxed)
}

/// Stores with Relaxed: a word that one of the pairs above orders, or that needs no order.
#[inline(always)]
pub fn store<A: Atomic>(word: &A, value: A::Value) {
    word.store_as(value, Relaxed);
}

/// Takes a lock word for `holder` if it is free, which is 0.
#[inline(always)]
pub fn try_lock_as(word: &AtomicU32, holder: u32) -> bool {
    // Loading first leaves the cache line with the holder.
    load(word) == 0 && take_lock(word, 0, holder)
}

/// Takes a lock word from `from`: 0, or a dead holder. What a dead holder did is ordered by the kernel, through which
/// its death is observed, not by this word.
#[inline(always)]
pub fn take_lock(word: &AtomicU32, from: u32, to: u32) -> bool {
    word.compare_exchange(from, to, at(Site::Lock, Acquire), Relaxed).is_ok()
}

/// Releases a lock word.
#[inline(always)]
pub fn unlock(word: &AtomicU32) {
    word.store_as(0, at(Site::Unlock, Release));
}

/// Loads with Acquire: what was done before the value was [`release`]d can be seen.
#[inline(always)]
pub fn acquire<A: Atomic>(word: &A) -> A::Value {
    word.load_as(Acquire)
}

/// [`acquire`], which a model can weaken.
#[inline(always)]
pub fn acquire_at<A: Atomic>(word: &A, site: Site) -> A::Value {
    word.load_as(at(site, Acquire))
}

/// Stores with Release: after everything done so far.
#[inline(always)]
pub fn release<A: Atomic>(word: &A, value: A::Value) {
    word.store_as(value, Release);
}

/// [`release`], which a model can weaken.
#[inline(always)]
pub fn release_at<A: Atomic>(word: &A, value: A::Value, site: Site) {
    word.store_as(value, at(site, Release));
}

/// Stores with Release, followed by a [`full_fence`]. A model can remove the fence.
#[inline(always)]
pub fn store_fenced<A: Atomic>(word: &A, value: A::Value, site: Site) {
    if intact(site) {
        word.store_fenced(value);
    } else {
        word.store_as(value, Release);
    }
}

/// [`Atomic::cas`].
#[inline(always)]
pub fn cas<A: Atomic>(word: &A, from: A::Value, to: A::Value) -> Result<(), A::Value> {
    word.cas(from, to)
}

/// A [`full_fence`] after an operation that reads and writes a word. A model can remove it.
#[inline(always)]
pub fn fence_after_rmw(site: Site) {
    // On x86-64 such an operation is a full fence.
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    {
        let _ = site;
        compiler_fence(SeqCst);
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    full_fence_at(site);
}

/// Replaces the word by what `next` returns, until that is `None` or the exchange succeeds.
#[inline(always)]
pub fn fetch_update<A: Atomic>(word: &A, mut next: impl FnMut(A::Value) -> Option<A::Value>) {
    let mut seen = acquire(word);
    while let Some(to) = next(seen) {
        match word.cas(seen, to) {
            Ok(()) => return,
            Err(now) => seen = now,
        }
    }
}

/// The operation of FETCH_ADD, and of a counter that other threads change: adds, and returns what the word held. Acquires and releases, so that a process that
/// sees the effect of a peer's atomic sees everything before it.
#[inline]
pub fn fetch_add(word: &AtomicU64, value: u64) -> u64 {
    word.fetch_add(value, AcqRel)
}

/// The operation of COMP_SWAP: stores `to` if the word holds `from`, and returns what it held. Acquires and releases,
/// as [`fetch_add`] does.
#[inline]
pub fn compare_swap(word: &AtomicU64, from: u64, to: u64) -> u64 {
    match word.compare_exchange(from, to, AcqRel, Acquire) {
        Ok(held) | Err(held) => held,
    }
}

/// Returns a number, and increments the word.
#[inline(always)]
pub fn next_number(word: &AtomicU32) -> u32 {
    word.fetch_add(1, Relaxed)
}

/// Increments a word: who [`acquire`]s it sees everything done so far.
#[inline]
pub fn count(word: &AtomicU32) {
    word.fetch_add(1, Release);
}

/// Increments a count of the threads that use something. That they do is seen with whatever they [`cas`] next.
#[inline]
pub fn enter(word: &AtomicU32) {
    word.fetch_add(1, AcqRel);
}

/// Decrements a count that was [`enter`]ed, after everything done so far.
#[inline]
pub fn leave(word: &AtomicU32) {
    word.fetch_sub(1, Release);
}

/// Orders a store before a load, where the other side does the same crosswise.
#[inline(always)]
pub fn full_fence() {
    fence(SeqCst);
}

/// [`full_fence`], which a model can remove.
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

/// Everything loaded from here on is at least as new as what was loaded so far.
#[inline(always)]
pub fn read_fence() {
    fence(Acquire);
}

/// Locks a mutex of this process. A thread that panicked has left nothing half done in it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
