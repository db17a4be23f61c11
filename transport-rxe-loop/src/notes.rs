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
mod tests {
    use super::*;
    use crate::arena::Extent;
    use crate::execute;
    use crate::identity;
    use crate::open::OpenOptions;
    use crate::qp::QpInit;
    use crate::queue::Shape;
    use crate::state::QpState;
    use crate::sync;

    /// A place where nobody lives.
    const PLACE: u16 = 41;

    #[test]
    fn x03_a_queue_pair_of_another_process_is_not_run() {
        let fabric = Fabric::of_tests();
        let qps = &fabric.tables().qps;
        let (index, generation) = qps.claim(PLACE).unwrap();
        let slot = qps.at(index);
        let shape = Shape::of_sends(1, 1, 0);
        let extent = Extent::allocate(fabric, shape.bytes()).unwrap();
        shape.record(&slot.send_ring, extent.offset());
        identity::enter(slot, identity::number_of(qps, index, generation));
        assert!(identity::change(slot, identity::read(slot), QpState::Sqd));
        sync::store(&slot.send.report_drained, 1);
        execute::run(fabric, index);
        assert_eq!(sync::load(&slot.send.report_drained), 1, "that is its own process' to do");
        identity::vacate(slot);
        slot.life().end(PLACE);
    }

    #[test]
    fn x03_what_is_noted_is_run_once() {
        let (context, fabric) = OpenOptions::new().alone();
        let cq = context.create_cq(4, None).unwrap();
        let qp = context.alloc_pd().create_qp(&QpInit::new(&cq)).unwrap();
        assert!(!any(fabric));
        leave(fabric, qp.number());
        assert!(any(fabric));
        assert!(!any(fabric), "it is known by now");
        let taken = || {
            let mut all = Vec::new();
            take(fabric, |index| all.push(index));
            all
        };
        assert_eq!(taken(), [fabric.tables().qps.index(qp.number())]);
        assert_eq!(taken(), []);
    }

    #[test]
    fn x03_whoever_has_the_queue_pair_is_called() {
        let (_context, fabric) = OpenOptions::new().alone();
        let calls = || sync::load(&fabric.tables().processes[usize::from(PLACE)].calls);
        let qps = &fabric.tables().qps;
        let (index, _) = qps.claim(PLACE).unwrap();
        let before = calls();
        leave(fabric, index);
        assert_eq!(calls(), before + 1);
        fabric.die_at(PLACE);
        leave_all(fabric, PLACE + 1);
        assert_eq!(calls(), before + 2);
    }
}
