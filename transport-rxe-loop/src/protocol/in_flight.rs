//! The in-flight marker of a queue pair: a counter that is odd while bytes are being moved for its requests. A
//! process that changes a state or invalidates a key reads it to find out whether a copy may still be running.
//!
//! | who | does | then reads |
//! |---|---|---|
//! | initiator | [sets the marker](InFlight::open) | the peer's state and connection, the keys |
//! | initiator | [clears it](InFlight::close) | the peer's state again: in ERR, the peer may wait to be flushed |
//! | a process that changes to ERR or RESET, or invalidates a key | [changes, fences](ChangeFence::after_change) | the counter |
//!
//! All three are a store, a full fence, a load. So of an initiator that sets the marker and a process that changes a
//! state, at least one sees the other: the bytes do not move, or the counter is odd. The same holds for an initiator
//! that clears the marker and a process that fails its peer: the counter is even, or the initiator has the peer run.
//!
//! ```
//! use transport_rxe_loop::protocol::in_flight::{ChangeFence, InFlight};
//!
//! let in_flight = InFlight::default();
//! in_flight.open();
//! let fence = ChangeFence::after_change();
//! assert!(fence.is_open(&in_flight));
//! assert!(!fence.wait(&in_flight, || false)); // gave up
//! in_flight.close();
//! assert!(fence.wait(&in_flight, || true));
//! ```

use super::steps::{self, Step};
use crate::sync::{self, AtomicU64, Site};

/// The counter. The owner of the send queue writes it. Zero means that nothing is in flight.
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

    /// Sets the first of a queue pair's two markers; [`open`](Self::open) of the other follows, whose fence is for both.
    #[inline(always)]
    pub fn open_first(&self) {
        sync::store(&self.0, sync::load(&self.0) | 1);
    }

    /// Clears the marker; nothing is read after it.
    #[inline(always)]
    pub fn close_last(&self) {
        let odd = sync::load(&self.0) | 1;
        sync::release_at(&self.0, odd.wrapping_add(1), Site::CloseLast);
    }

    /// Clears a marker that another process has corrupted. For the owner of the send queue, while its marker
    /// is not set.
    #[inline(always)]
    pub fn correct(&self) {
        if is_odd(sync::load(&self.0)) {
            self.close();
        }
    }

    /// Clears the marker. The peer's state is read after this: in ERR, the peer has to be run.
    #[inline(always)]
    pub fn close(&self) {
        let odd = sync::load(&self.0) | 1;
        sync::store_fenced(&self.0, odd.wrapping_add(1), Site::CloseFence);
        steps::done(Step::Closed);
    }
}

/// A copy that a marker was seen set for. No other copy has the same, of that marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen(u64);

/// Proof that a state was changed, or a key invalidated, and a full fence followed. The counters of copies
/// that began before the change are read through it.
#[derive(Debug)]
pub struct ChangeFence(());

impl ChangeFence {
    /// To be called after the change, or after having seen that another process made it.
    #[must_use]
    pub fn after_change() -> Self {
        sync::full_fence_at(Site::ChangeFence);
        Self(())
    }

    /// Whether a copy that began before the change may still be running. If not, everything done by it can be seen.
    #[must_use]
    pub fn is_open(&self, in_flight: &InFlight) -> bool {
        is_odd(see(in_flight))
    }

    /// The copy that a marker is set for, if it is: one that may have begun before the change.
    #[must_use]
    pub fn seen(&self, in_flight: &InFlight) -> Option<Seen> {
        Some(see(in_flight)).filter(|&count| is_odd(count)).map(Seen)
    }

    /// Waits until every copy that began before the change is over. `wait_on` waits a little, and returns
    /// whether to continue: not if the initiator is dead. Returns false if it gave up.
    pub fn wait(&self, in_flight: &InFlight, mut wait_on: impl FnMut() -> bool) -> bool {
        let seen = see(in_flight);
        while is_odd(seen) && see(in_flight) == seen {
            if !wait_on() {
                return false;
            }
        }
        true
    }
}

fn see(in_flight: &InFlight) -> u64 {
    sync::acquire_at(&in_flight.0, Site::SeeClosed)
}

const fn is_odd(count: u64) -> bool {
    count & 1 == 1
}

#[cfg(test)]
mod tests;
