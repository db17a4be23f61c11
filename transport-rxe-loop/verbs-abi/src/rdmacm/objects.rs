//! Event channels, and the events that a program has taken, until it acknowledges them.

use std::mem::offset_of;
use std::ptr;

use transport_rxe_loop::cm::EventChannel;

use crate::errno::Errno;
use crate::raw::cm::Data;
use crate::raw::{Kind, Slot, Table};
use crate::rdmacm::id::{Id, Request};
use crate::sys::*;

/// An event channel, and its descriptor, which programs poll and make non-blocking.
pub struct Channel(pub EventChannel);

/// What programs see of it, aligned like other objects.
#[repr(C, align(8))]
pub struct Public(pub rdma_event_channel);

impl Kind for Channel {
    type Public = Public;
    type Face = rdma_event_channel;
    const HANDLE: Option<usize> = None;
    // It has no pointer.
    const STAYS: bool = false;
}

/// Those of this process.
pub static CHANNELS: Table<Channel> = Table::new();

/// An event that the program has taken, until it acknowledges it.
pub struct Taken {
    /// What [`rdma_cm_event::param`] points to.
    #[expect(dead_code, reason = "the program reads it")]
    pub private_data: Data,
    /// Whose it is: of a request, the listener's.
    pub of: &'static Slot<Id>,
    /// What a request brings: no event of it is taken before the program knows it.
    pub request: Option<Request>,
}

impl Kind for Taken {
    type Public = rdma_cm_event;
    type Face = rdma_cm_event;
    const HANDLE: Option<usize> = None;
}

/// Those of this process.
pub static EVENTS: Table<Taken> = Table::new();

/// Where a synchronous identifier has the event of its last call.
pub const EVENT: usize = offset_of!(rdma_cm_id, event);

/// `rdma_ack_cm_event(3)`. -1 with EINVAL, ENOENT: no event, or it was acknowledged.
pub fn ack_cm_event(event: *const rdma_cm_event) -> Result<(), Errno> {
    EVENTS.destroy(event, |taken| {
        if let Some(request) = taken.request {
            request.begin();
        }
        taken.of.side().reports.acknowledge(1);
        Ok(())
    })
}

/// Acknowledges the event of a synchronous identifier's last call.
pub fn forget_event(slot: &Slot<Id>) {
    let last = slot.load::<*mut rdma_cm_event>(EVENT);
    if !last.is_null() {
        slot.store(EVENT, ptr::null_mut::<rdma_cm_event>());
        // The program may have done it.
        let _ = ack_cm_event(last);
    }
}
