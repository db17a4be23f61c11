use super::*;
use crate::engine::ring::RingLayout;
use crate::inside::prelude::*;
use crate::shm::arena::Extent;

#[test]
fn x03_a_queue_pair_of_another_process_is_not_run_and_its_process_is_called() {
    let device = Fixture::new().device;
    let qps = &device.engine.qps;
    let (index, generation) = qps.claim(ANOTHER).unwrap();
    let slot = qps.at(index);
    let shape = RingLayout::of_sends(1, 1, 0);
    let extent = Extent::allocate(device.shm, shape.bytes()).unwrap();
    shape.record(&slot.send_ring, extent.offset());
    identity::enter(&slot.identity, identity::number_of(qps, index, generation));
    assert!(identity::change(&slot.identity, identity::read(&slot.identity), QpState::SQD));
    sync::store(&slot.send.report_drained, 1);
    send_queue::run(device.engine, index);
    assert_eq!(sync::load(&slot.send.report_drained), 1, "that is its own process' to do");
    let calls = || sync::load(device.shm.calls_of(ANOTHER));
    let before = calls();
    submit(device.engine, index);
    assert_eq!(calls(), before + 1);
    device.shm.die_at(ANOTHER);
    submit_all(device.engine, AttachmentId::new(ANOTHER.get() + 1));
    assert_eq!(calls(), before + 2);
}

#[test]
fn x03_a_remote_request_is_run_once() {
    let fixture = Fixture::new();
    let (engine, qp) = (fixture.device.engine, fixture.qp());
    assert!(!engine.reminder.take());
    submit(engine, qp.index());
    assert_eq!([engine.reminder.take(), engine.reminder.take()], [true, false], "then it is known");
    let taken = || {
        let mut all = Vec::new();
        take(engine, |index| all.push(index));
        all
    };
    assert_eq!(taken(), [qp.index()]);
    assert_eq!(taken(), []);
}
