//! What a flush finds that another one is in the middle of.

use super::*;
use crate::engine::srq::queue as pool_of;
use crate::inside::prelude::*;

/// An attachment that no process has.
const ANOTHER: AttachmentId = AttachmentId::new(33);

#[test]
fn c08_a_receive_whose_completion_a_dead_one_had_published_is_not_flushed() {
    let (context, device) = OpenOptions::new().alone();
    let mut cq = context.create_cq(8, None).unwrap();
    let mut qp = context.alloc_pd().unwrap().create_qp(&QpInit::new(&cq)).unwrap();
    qp.connect_to(qp.number()).unwrap();
    qp.post_recv(&[RecvWr::new(1, &[]), RecvWr::new(2, &[])]).unwrap();
    let slot = device.engine.qp(qp.qpn());
    let first = tag::of_recv(slot.recv.completed().next());
    let (index, wc) = (slot.recv_cq(), Wc::new(1, WcStatus::SUCCESS, qp.number()));
    // It has not settled it.
    push::die_pushing(device.completions, index, AttachmentKey::new(ANOTHER.get(), 1), &wc, first);
    qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
    let mut wcs = [Wc::default(); 4];
    assert_eq!(cq.poll(&mut wcs), Ok(2));
    let polled = [0, 1].map(|nth| (wcs[nth].wr_id(), wcs[nth].status()));
    assert_eq!(polled, [(1, WcStatus::SUCCESS), (2, WcStatus::WR_FLUSH_ERR)]);
}

#[test]
fn q09_the_last_receive_is_told_once_when_what_was_taken_has_completed() {
    let (mut context, device) = OpenOptions::new().alone();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let mut srq = pd.create_srq(&SrqInit { max_wr: 4, max_sge: 1 }).unwrap();
    let mut qp = pd.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(&cq) }).unwrap();
    qp.connect_to(qp.number()).unwrap();
    srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let (number, slot) = (qp.number(), device.engine.qp(qp.qpn()));
    let queue = pool_of(device.engine, device.engine.srq(slot.srq())).unwrap();
    let taken = queue.take(device.shm.attachment(), QpNumber::new(number)).unwrap();
    assert!(identity::fail(slot, QpNumber::new(number)));
    let mut told = || {
        last_receive(device.engine, slot, QpNumber::new(number), slot.srq());
        context.take_async_event().unwrap().map(|event| event.event_type)
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
    let (context, device) = OpenOptions::new().alone();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(64, None).unwrap());
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    let slot = device.engine.qp(qp.qpn());
    let ([posted, _], capacity) = (slot.recv.positions(), sync::load(&slot.recv_capacity));
    for (written, most) in [(capacity, capacity), (u32::MAX, MAX_QP_WR)] {
        qp.connect_to(qp.number()).unwrap();
        sync::store(&slot.recv_capacity, written);
        sync::store(posted, slot.recv.completed().plus(u64::from(most) + 1).get());
        qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
        assert_eq!(cq.poll(&mut [Wc::default(); 2]), Ok(0));
        sync::store(&slot.recv_capacity, capacity);
        qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    }
}

/// It waits once, as long as anybody does for a lock: two seconds.
#[test]
fn x07_a_flush_ends_though_somebody_suspended_has_the_lock_of_the_completion_queue() {
    let (context, device) = OpenOptions::new().alone();
    let cq = context.create_cq(8, None).unwrap();
    let mut qp = context.alloc_pd().unwrap().create_qp(&QpInit::new(&cq)).unwrap();
    qp.connect_to(qp.number()).unwrap();
    qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let slot = device.engine.qp(qp.qpn());
    thread::scope(|scope| {
        let _suspended = complete::lock(device.engine, slot.recv_cq()).unwrap();
        let fails = scope.spawn(|| qp.modify(&QpAttr::to(QpState::ERR)));
        until("it is flushed", || fails.is_finished());
    });
    assert_eq!(slot.recv.completed(), Position::new(1), "though nobody is told");
}
