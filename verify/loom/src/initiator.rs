//! A queue pair that carries requests out: the order in which copy guards and owners of a send queue use its words.

use transport_rxe_loop::protocol::in_flight::SharedMarkers;
use transport_rxe_loop::protocol::ownership::Ownership;

/// What the thread that posts does once it has entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Looks at its marker once more, as it should.
    Looks,
    /// Relies on it.
    DoesNotLook,
}

/// The words of a queue pair.
#[derive(Debug, Default)]
pub struct Initiator {
    /// In shared memory.
    pub markers: SharedMarkers,
    /// In private memory.
    pub ownership: Ownership,
}

impl Initiator {
    /// The thread that posts copies, and copies again for each thread that found it at that; false if it does not, since another
    /// thread is the owner.
    pub fn post(&self, care: Care, mut copy: impl FnMut()) -> bool {
        let marker = &self.markers.poster;
        marker.open_first();
        if !self.ownership.try_enter_to_copy() {
            marker.close();
            return false;
        }
        if care == Care::Looks && !marker.is_open() {
            marker.open();
        }
        copy();
        marker.close_first();
        while !self.ownership.leave() {
            self.copy_as_owner(&mut copy);
        }
        true
    }

    /// The same for any other thread. If another is the owner, that one copies again.
    pub fn run(&self, mut copy: impl FnMut()) -> bool {
        if !self.ownership.enter() {
            return false;
        }
        self.markers.correct();
        loop {
            self.copy_as_owner(&mut copy);
            if self.ownership.leave() {
                return true;
            }
        }
    }

    /// Up to where the owner leaves.
    fn copy_as_owner(&self, copy: &mut impl FnMut()) {
        self.markers.owner.open_first();
        self.ownership.open();
        copy();
        self.markers.owner.close_first();
    }
}
