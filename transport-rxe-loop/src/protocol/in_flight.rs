//! The in-flight markers of a queue pair: counters that are odd while bytes are being moved for its requests. A
//! process that changes a state or invalidates a key reads them to find out whether a copy may still be running.
//!
//! There are three. One is private, in the word of the [ownership](super::ownership) of its send queue: its own process waits
//! for that one. [Two are in shared memory](SharedMarkers): other processes wait for them, and whether a queue pair can be
//! flushed is judged by them everywhere.
//!
//! | who | does | then reads |
//! |---|---|---|
//! | initiator | sets a marker in shared memory, then [the private one](super::ownership::Ownership::open), fences | the peer's state and connection, the keys |
//! | initiator | clears both in the same order, fences | the peer's state again: in ERR, the peer may wait to be flushed |
//! | a process that changes to ERR or RESET, or invalidates a key | [changes, fences](ChangeFence::after_change) | the counters |
//!
//! All three are a store, a full fence, a load. So of an initiator that sets the marker and a process that changes a
//! state, at least one sees the other: the bytes do not move, or the counter is odd. The same holds for an initiator
//! that clears the marker and a process that fails its peer: the counter is even, or the initiator has the peer run.
//!
//! # Two in shared memory
//! The thread that posts sets the poster's marker before it enters the send queue, so that the locked operation by which it
//! enters is the fence of both. If it finds the queue owned, it has set the marker for nothing: it clears it with a fence, and
//! then reads the peer's state like one that has copied. For every other run of requests, of the thread that posts too, the
//! owner sets the owner's marker.
//!
//! Another process may corrupt either, which keeps others waiting. An owner that copies nothing
//! [corrects](SharedMarkers::correct) both, and then looks at the peer. It may clear the poster's marker just when that was
//! set: so the thread that posts looks at it [once more](InFlight::is_open) when it has entered.

use super::steps::{self, Step};
use crate::sync::{self, AtomicU64, Site};

/// A word that says whether a copy is running.
pub trait Marker {
    /// The copy that it is set for, if it is. If not, everything done by the last one can be seen.
    fn seen(&self) -> Option<Seen>;
}

impl<M: Marker> Marker for &M {
    fn seen(&self) -> Option<Seen> {
        (**self).seen()
    }
}

/// A marker, set while it is odd. One thread at a time sets it.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct InFlight(AtomicU64);

impl InFlight {
    /// Sets the marker. Whether bytes may move is checked after this.
    #[inline(always)]
    pub fn open(&self) {
        sync::store_fenced(&self.0, sync::load(&self.0) | 1, Site::OpenFence);
        steps::done(Step::Opened);
    }

    /// Sets the marker; the private one is set next, whose fence is for both.
    #[inline(always)]
    pub fn open_first(&self) {
        // Who waits for an earlier copy, of another thread, may see this as its end.
        sync::release_at(&self.0, sync::load(&self.0) | 1, Site::OpenFirst);
        steps::done(Step::Announced);
    }

    /// Clears the marker; the private one is cleared next, whose fence is for both.
    #[inline(always)]
    pub fn close_first(&self) {
        let odd = sync::load(&self.0) | 1;
        sync::release_at(&self.0, odd.wrapping_add(1), Site::CloseFirst);
        steps::done(Step::Withdrawn);
    }

    /// Whether it is set. For the thread that writes it, once it is the owner: nobody corrects it from then on.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        is_odd(sync::load(&self.0))
    }

    /// Clears the marker. The peer's state is read after this: in ERR, the peer has to be run.
    #[inline(always)]
    pub fn close(&self) {
        let odd = sync::load(&self.0) | 1;
        sync::store_fenced(&self.0, odd.wrapping_add(1), Site::CloseFence);
        steps::done(Step::Closed);
    }
}

impl Marker for InFlight {
    fn seen(&self) -> Option<Seen> {
        Seen::copy(sync::acquire_at(&self.0, Site::SeeClosed))
    }
}

/// The markers of a queue pair in shared memory: see [above](self#two-in-shared-memory).
#[derive(Debug, Default)]
#[repr(C)]
pub struct SharedMarkers {
    /// Set by the thread that posts, as it enters the send queue.
    pub poster: InFlight,
    /// Set by the owner of the send queue, for any other run.
    pub owner: InFlight,
}

impl SharedMarkers {
    /// Whether a copy that began before the change may still be running.
    pub fn are_open(&self, fence: &ChangeFence) -> bool {
        fence.is_open(&self.poster) || fence.is_open(&self.owner)
    }

    /// Waits for both: see [`ChangeFence::wait`].
    pub fn wait(&self, fence: &ChangeFence, mut wait_on: impl FnMut() -> bool) -> bool {
        fence.wait(&self.poster, &mut wait_on) && fence.wait(&self.owner, wait_on)
    }

    /// Clears both, where another process has set them; true if it did, and who has waited for them is to be looked after.
    /// For the owner of the send queue, which moves no bytes.
    pub fn correct(&self) -> bool {
        [&self.poster, &self.owner].into_iter().fold(false, |corrected, marker| {
            let seen = sync::load(&marker.0);
            // The exchange fails if the thread that posts has cleared it.
            let is_cleared =
                is_odd(seen) && sync::cas(&marker.0, seen, seen.wrapping_add(1)).is_ok();
            corrected || is_cleared
        })
    }
}

/// A copy that a marker was seen set for. No other copy has the same, of that marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen(u64);

impl Seen {
    /// The copy that a counter is odd for.
    pub(super) fn copy(count: u64) -> Option<Self> {
        is_odd(count).then_some(Self(count))
    }
}

/// Proof that a state was changed, or a key invalidated, and a full fence followed. The counters of copies
/// that began before the change are read through it.
#[derive(Debug)]
pub struct ChangeFence(());

impl ChangeFence {
    /// To be called after the change, or after having seen that another process made it.
    pub fn after_change() -> Self {
        sync::full_fence_at(Site::ChangeFence);
        Self(())
    }

    /// Whether a copy that began before the change may still be running. If not, everything done by it can be seen.
    pub fn is_open(&self, marker: &impl Marker) -> bool {
        self.seen(marker).is_some()
    }

    /// The copy that a marker is set for, if it is: one that may have begun before the change.
    pub fn seen(&self, marker: &impl Marker) -> Option<Seen> {
        marker.seen()
    }

    /// Waits until every copy that began before the change is over. `wait_on` waits a little, and returns
    /// whether to continue: not if the initiator is dead. Returns false if it gave up.
    pub fn wait(&self, marker: &impl Marker, mut wait_on: impl FnMut() -> bool) -> bool {
        let seen = self.seen(marker);
        while seen.is_some() && self.seen(marker) == seen {
            if !wait_on() {
                return false;
            }
        }
        true
    }
}

const fn is_odd(count: u64) -> bool {
    count & 1 == 1
}

#[cfg(test)]
mod tests;
