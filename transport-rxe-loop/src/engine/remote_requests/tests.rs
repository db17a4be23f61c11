use super::*;
use crate::lifecycle::Device;
use crate::api::open::OpenOptions;
use crate::api::qp::QpInit;
use crate::api::state::QpState;
use crate::engine::identity;
use crate::engine::ring::Shape;
use crate::engine::send_queue;
use crate::shm::arena::Extent;
use crate::sync;

/// A place where nobody lives.
const PLACE: u16 = 41;

#[test]
fn x03_a_queue_pair_of_another_process_is_not_run() {
    let fabric = Device::of_tests();
    let qps = &fabric.engine.qps();
    let (index, generation) = qps.claim(PLACE).unwrap();
    let slot = qps.at(index);
    let shape = Shape::of_sends(1, 1, 0);
    let extent = Extent::allocate(fabric.shm, shape.bytes()).unwrap();
    shape.record(&slot.send_ring, extent.offset());
    identity::enter(slot, identity::number_of(qps, index, generation));
    assert!(identity::change(slot, identity::read(slot), QpState::Sqd));
    sync::store(&slot.send.report_drained, 1);
    send_queue::run(fabric.engine, index);
    assert_eq!(sync::load(&slot.send.report_drained), 1, "that is its own process' to do");
    identity::vacate(slot);
    slot.life().end(PLACE);
}

#[test]
fn x03_what_is_noted_is_run_once() {
    let (context, fabric) = OpenOptions::new().alone();
    let cq = context.create_cq(4, None).unwrap();
    let qp = context.alloc_pd().create_qp(&QpInit::new(&cq)).unwrap();
    assert!(!any(fabric.engine));
    leave(fabric.engine, qp.number());
    assert!(any(fabric.engine));
    assert!(!any(fabric.engine), "it is known by now");
    let taken = || {
        let mut all = Vec::new();
        take(fabric.engine, |index| all.push(index));
        all
    };
    assert_eq!(taken(), [fabric.engine.qps().index(qp.number())]);
    assert_eq!(taken(), []);
}

#[test]
fn x03_whoever_has_the_queue_pair_is_called() {
    let (_context, fabric) = OpenOptions::new().alone();
    let calls = || sync::load(fabric.shm.calls_of(PLACE));
    let qps = &fabric.engine.qps();
    let (index, _) = qps.claim(PLACE).unwrap();
    let before = calls();
    leave(fabric.engine, index);
    assert_eq!(calls(), before + 1);
    fabric.shm.die_at(PLACE);
    leave_all(fabric.engine, PLACE + 1);
    assert_eq!(calls(), before + 2);
}
