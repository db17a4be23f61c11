//! Queue pairs that are to be run by somebody else: by another process, which runs its own alone, or by
//! whoever of this process has given a turn back. Each is a bit in the device's memory: see
//! [`requests`](crate::protocol::requests).

use crate::fabric::Fabric;
use crate::layout::Entry;
use crate::protocol::requests::Requests;

/// Has the queue pair with this number run by its process: soon, but not by this call.
#[cold]
pub fn leave(fabric: &'static Fabric, number: u32) {
    let qps = &fabric.tables().qps;
    let Some(place) = qps.at(number).life().place() else { return };
    requests(fabric).leave(qps.index(number));
    if place == fabric.place() {
        fabric.noted().set();
    } else {
        fabric.call(place);
    }
}

const fn requests(fabric: &'static Fabric) -> Requests<'static> {
    Requests::new(fabric.tables().noted)
}

/// Has every queue pair run by its process, but for those of the process at a place, which is dead.
#[cold]
pub fn leave_all(fabric: &'static Fabric, dead: u16) {
    for (index, slot) in (0..).zip(fabric.tables().qps.all()) {
        if slot.life().place().is_some_and(|place| place != dead) {
            requests(fabric).leave(index);
        }
    }
    // Of this process, too, no thread need come by on its own.
    fabric.call(fabric.place());
    fabric.others().for_each(|other| fabric.call(other.place()));
}

/// Whether any of this process may have been noted by itself; after this it has not, until it is again.
#[inline]
pub fn any(fabric: &'static Fabric) -> bool {
    fabric.noted().take()
}

/// Takes those of this process; says each by its index.
#[cold]
pub fn take(fabric: &'static Fabric, mut each: impl FnMut(u32)) {
    let qps = &fabric.tables().qps;
    let mine = |index| qps.at(index).life().place().is_none_or(|place| place == fabric.place());
    requests(fabric).take(mine, |index| {
        // Its place may be another process' by now, and the request that one's.
        if fabric.is_mine(index) {
            each(index);
        } else {
            leave(fabric, index);
        }
    });
}

#[cfg(test)]
mod tests;
