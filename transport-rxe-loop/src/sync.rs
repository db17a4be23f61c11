//! Atomics, and the operations that the device's protocols are built on. No other module of this crate names a memory
//! ordering or a fence.
//!
//! # Release and acquire pairs
//!
//! | word | written by | read by | what is handed over |
//! |---|---|---|---|
//! | lock | [`unlock`] | [`try_lock_as`], [`take_lock`] | everything done under the lock |
//! | ownership of a send queue | [`cas`], a thread that enters; the owner | [`cas`], the owner | what a thread that found it owned did before |
//! | the same, as the private in-flight marker | [`cas`], [`fetch_add`], the owner | [`acquire_at`], who waits for copies, or unmaps what they used | that the copy is over |
//! | identity of a queue pair | [`cas`] | [`acquire`] | the attributes stored before the state |
//! | done position | [`release`], owner of the send queue | [`acquire`], poster | that the request was read, and what it did |
//! | posted position | [`release`], poster | [`acquire`], owner of the send queue | the request's words |
//! | count of polled completions | [`release_at`], poller | [`acquire_at`], poster | the words of the send slots that they cover, and that the requests were read |
//! | freed position | [`release`], owner of the send queue | [`acquire`], poster | that the requests before it were read |
//! | in-flight marker in shared memory | [`release_at`], the thread that posts; owner of the send queue | [`acquire_at`], who waits for copies | that the copy is over |
//! | posted receives | [`store_fenced`], poster | [`acquire_at`], taker and flusher | the receive's words |
//! | completed receives | [`release_at`], who settles | [`acquire_at`], poster | that the receive's words were read |
//! | word of a pool's slot | [`cas`], who settles | [`acquire_at`], poster; [`acquire`], who waits for that | that the receive's words were read, and its completion published |
//! | posted receives of a pool | [`store_fenced`], poster | [`acquire_at`], taker | the receives' words, slots and order |
//! | owner of a granule of the arena | [`release_at`], its owner, or who recovers from its death | [`acquire_at`], who takes it | that the last owner no longer uses the memory |
//! | life of a table entry | [`cas`], [`release`] | [`cas`] | that the last owner no longer uses it |
//! | link layer of a fabric | [`cas`], the first process that opens it | [`cas`], each that opens it | nothing: it is decided once |
//! | word of an attachment | [`cas`], [`release`] | [`acquire`], [`cas`], who attaches | that nothing of its last process is left |
//! | newest of the open files | [`release`], who opened it | [`acquire`], any thread, a forked child too | its description |
//! | reminder of remote requests | [`release`], who left one | [`cas`], who takes them | that their bits are set |
//! | bits of remote requests | [`cas`], who leaves one; who takes it | [`cas`], who takes it | what was done before it was left |
//! | newcomers of a completion queue | [`count`], owner of the queue pair | [`acquire`], who drops a completion | that it has left RESET |
//! | alarm of a delayed event | under the queue's lock; then [`count`], the thread's calls | [`acquire`] of the calls, the service thread | the alarm |
//! | word of an index of the GID table | [`release`], who reads the addresses | [`acquire`], who looks for a GID | the GID, and its network interface |
//! | number of a listener's socket | [`release`], the listener | [`acquire`], who frees the port | nothing: that an owner which is read after it is of the same time or later |
//! | owner of a port | [`release`], who binds | [`acquire`], who looks for a port | the rest of the entry |
//! | backlog of a listener | [`release`], the listener | [`acquire`], who requests a connection | the number of its socket |
//! | counts of requests that a listener has received, and that wait there | [`release`], the listener | [`acquire`], who requests a connection | that there is space for another |
//! | count of requests that were sent to a listener | [`fetch_update`], [`leave`], who requests a connection | [`acquire`], the listener | nothing: one that is counted too often, or not, is as if it had been received |
//! | whether a listener is behind | [`cas`], who requests a connection | [`cas`], its service thread | that a request is there |
//! | whether draining is to be reported | owner of the queue pair, before it reschedules | [`cas`], owner of the send queue | nothing: it is reported once |
//! | count of a source of events | [`cas`], who raises one; the channel's owner | [`acquire`], [`cas`], the same | the life of the source, its channel, and the state of the object then |
//! | only producer of a completion queue | [`cas`], [`fetch_update`], who uses the queue | the same | nothing: the marker does |
//! | whether events of a channel are parked | [`cas`], who parks one | [`cas`], the channel's owner | that it is counted as parked |
//! | count of the threads that use a stage, or wait for one | [`enter`], [`leave`], client | [`acquire`], who gives stages up | that they no longer use it |
//! | records of other processes' regions | [`release`], who learned of one | [`acquire`], who looks | its content |
//! | word of a stage | [`cas`], client and server | [`acquire`], [`cas`], the other | the request, and the answer |
//! | whether abandoned requests are in flight at a process | [`release`], the process, as it clears it | [`acquire`], who takes a receive of its | that the process has written to the receive |
//! | who has asked a process | [`fetch_update`], client | [`fetch_update`], the server | that the request is there |
//! | word of an atomic | [`fetch_add`], [`compare_swap`] | the same | what the other did before its atomic |
//! | last word of a WRITE | [`write_fence`] before it | [`read_fence`] after it | the rest of the WRITE (Q8) |
//!
//! # Full fences on both sides
//! Each side is *store, fence, load*, of the same two words crosswise, so at least one sees the other.
//!
//! | one | the other |
//! |---|---|
//! | set the in-flight markers ([`Site::OpenFence`]), read the peer's state, the key | change the state, invalidate the key ([`Site::ChangeFence`]), read the marker |
//! | clear the in-flight markers ([`Site::CloseFence`]), read the peer's state | change the state ([`Site::ChangeFence`]), read the marker |
//! | set the private in-flight marker ([`Site::OpenFence`]), read whether the queue pair is the only producer | have producers take turns ([`Site::ChangeFence`]), read the private marker |
//! | post receives ([`Site::PostFence`]), read the starved mark | set the starved mark ([`Site::StarveFence`]), look for receives |
//! | post receives ([`Site::PostFence`]), read the own state | change the state ([`Site::ChangeFence`]), look for receives |
//! | release the lock of a queue pair's datagrams, read its state ([`Site::LeaveFence`]) | change the state ([`Site::ChangeFence`]), try the lock |
//! | free what was taken for the peer, clear the in-flight markers ([`Site::CloseFence`]), read its state | change the state ([`Site::ChangeFence`]), look for what is taken |
//! | delay an event ([`Site::HoldFence`]), read the alarm | clear the alarm without the lock ([`Site::AlarmFence`]), read whether an event is delayed |
//! | set the private in-flight marker ([`Site::OpenFence`]), read the record of another process' region | replace the record ([`Site::ChangeFence`]), read the private marker |
//! | connect, read the peer's state ([`full_fence`]) | change the state, read who is connected ([`full_fence`]) |

mod site;

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

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
