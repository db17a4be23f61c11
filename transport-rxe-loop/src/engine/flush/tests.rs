//! What a flush finds that another one is in the middle of.

use super::*;
use crate::engine::srq::queue as pool_of;
use crate::inside::prelude::*;

#[test]
fn c08_a_receive_whose_completion_a_dead_one_had_published_is_not_flushed() {
    let mut fixture = Fixture::new();
    let mut qp = fixture.own_peer();
    qp.post_recv(&[1, 2].map(|id| RecvWr::new(id, &[]))).unwrap();
    // It has not settled it.
    fixture
        .dies_pushing(&Wc::new(1, WcStatus::SUCCESS, qp.number()), tag::of_recv(Position::new(1)));
    qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
    assert_eq!(fixture.polled(), [(1, WcStatus::SUCCESS), (2, WcStatus::WR_FLUSH_ERR)]);
}

#[test]
fn q09_the_last_receive_is_told_once_when_what_was_taken_has_completed() {
    let mut fixture = Fixture::new();
    let (mut srq, device) = (fixture.srq(4), fixture.device);
    let qp = fixture.own_peer_of(&fixture.init(QpType::RC).srq(&srq));
    srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let (number, slot) = (qp.qpn(), fixture.slot(&qp));
    let queue = pool_of(device.engine, device.engine.srq(slot.srq())).unwrap();
    let taken = queue.take(device.shm.attachment(), number).unwrap();
    assert!(identity::fail(&slot.identity, number));
    let mut told = || {
        last_receive(device.engine, slot, number, slot.srq());
        fixture.told()
    };
    assert_eq!(told(), None, "it is taken");
    queue.settle(taken.tag(), taken.target());
    assert_eq!([told(), told()], [Some(AsyncEventType::QP_LAST_WQE_REACHED), None]);
    // A corrupted word reports nothing, or every flush would.
    sync::store(&slot.report_last, 2);
    assert_eq!(told(), None);
}

#[test]
fn x04_no_more_is_flushed_than_the_queue_holds_however_its_capacity_is_corrupted() {
    let mut fixture = Fixture::new();
    let mut qp = fixture.qp();
    let slot = fixture.slot(&qp);
    let ([posted, _], capacity) = (slot.recv.positions(), sync::load(&slot.recv_capacity));
    for (written, most) in [(capacity, capacity), (u32::MAX, MAX_QP_WR)] {
        qp.connect_to(qp.number()).unwrap();
        sync::store(&slot.recv_capacity, written);
        sync::store(posted, slot.recv.completed().plus(u64::from(most) + 1).get());
        qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
        assert_eq!(fixture.polled(), []);
        sync::store(&slot.recv_capacity, capacity);
        qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
    }
}

/// It waits once, as long as anybody does for a lock: two seconds.
#[test]
fn x07_a_flush_ends_though_somebody_suspended_has_the_lock_of_the_completion_queue() {
    let fixture = Fixture::new();
    let (mut qp, other) = (fixture.own_peer(), fixture.own_peer());
    qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let slot = fixture.slot(&qp);
    thread::scope(|scope| {
        let _suspended = complete::lock(fixture.device.engine, slot.recv_cq()).unwrap();
        let fails = scope.spawn(|| qp.modify(&QpAttr::new().state(QpState::ERR)));
        until("it is flushed", || fails.is_finished());
    });
    assert_eq!(slot.recv.completed(), Position::new(1), "though nobody is told");
    assert_eq!(other.state(), Ok(QpState::ERR), "the queue is given up");
}
