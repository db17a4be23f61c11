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
    /// Looks; and what it has copied is not all: it closes its guard, and goes on as the owner.
    GoesOn,
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
    /// thread is the owner. `look` is called after each copy, and after a marker was set for nothing.
    pub fn post(&self, care: Care, mut copy: impl FnMut(), mut look: impl FnMut()) -> bool {
        let marker = &self.markers.poster;
        marker.open_first();
        if !self.ownership.try_enter_to_copy() {
            marker.close();
            look();
            return false;
        }
        if care != Care::DoesNotLook && !marker.is_open() {
            marker.open();
        }
        copy();
        marker.close_first();
        if care == Care::GoesOn {
            self.ownership.close();
            let _corrected = self.markers.correct();
            look();
        } else {
            let has_left = self.ownership.leave();
            look();
            if has_left {
                return true;
            }
        }
        self.hold(copy, look);
        true
    }

    /// The same for any other thread. If another is the owner, that one copies again.
    pub fn run(&self, copy: impl FnMut(), mut look: impl FnMut()) -> bool {
        if !self.ownership.enter() {
            return false;
        }
        if self.markers.correct() {
            look();
        }
        self.hold(copy, look);
        true
    }

    /// Copies as the owner, as long as it is rescheduled.
    fn hold(&self, mut copy: impl FnMut(), mut look: impl FnMut()) {
        loop {
            self.markers.owner.open_first();
            self.ownership.open();
            copy();
            self.markers.owner.close_first();
            self.ownership.close();
            look();
            if self.ownership.leave() {
                return;
            }
        }
    }
}
