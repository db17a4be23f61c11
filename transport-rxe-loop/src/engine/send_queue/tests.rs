use cq_core::testing::fault::When;

use super::*;
use crate::inside::prelude::*;
use crate::policy::faults::Faults;
use crate::protocol::mode::CqFlag;

/// Does what there is to do, up to a position.
fn work(queue: SendQueue, limit: Position) -> bool {
    queue.work(&mut None, &mut Rescheduled::default(), None, limit)
}

/// Works as the owner, and gives ownership back.
fn hold(queue: SendQueue) -> bool {
    queue.hold(&mut None, &mut Rescheduled::default(), None)
}

#[test]
fn c08_what_is_posted_while_another_thread_has_the_turn_completes_however_much_it_is() {
    const MANY: usize = 600;
    let (context, device) = OpenOptions::new().alone();
    let (here, pd) = (context.port(1).unwrap(), context.alloc_pd().unwrap());
    let mut cq = context.create_cq(4, None).unwrap();
    let caps = QpCaps { max_send_wr: 1024, ..QpInit::new(&cq).caps };
    let init = QpInit { qp_type: QpType::Ud, caps, ..QpInit::new(&cq) };
    let [mut qp, mut receiver] = [(); 2].map(|()| pd.create_qp(&init).unwrap());
    qp.activate(&Port::new(1), 1).unwrap();
    receiver.activate(&Port::new(1), 1).unwrap();
    let ah = pd.create_ah(&AddressVector::of(&here, here.gid, here.lid)).unwrap();
    let number = qp.number();
    let destination = Destination { ah: &ah, qp_num: receiver.number(), qkey: 1 };
    let wr = SendWr::send_inline(1, b"x");
    let ownership = device.engine.ownership(QpIndex::new(number));
    // It is posted, and nobody has carried it out.
    ownership.seize();
    qp.to(&destination).post_send(&[wr.unsignaled()]).unwrap();
    ownership.abandon();
    let kept = device.memory.lock(&device.engine.qp(receiver.qpn()).receive_lock, || {}).unwrap();
    thread::scope(|scope| {
        let works = scope.spawn(move || run(device.engine, QpIndex::new(number)));
        let fence = ChangeFence::after_change();
        until("it is at the first", || fence.is_open(device.memory.ownership(qp.index())));
        let mut later = [wr.unsignaled(); MANY];
        later[MANY - 1] = wr;
        qp.to(&destination).post_send(&later).unwrap();
        drop(kept);
        until("it is not kept", || works.is_finished());
    });
    until("the last is sent", || cq.poll(&mut [Wc::default()]) == Ok(1));
}

#[test]
fn c08_work_is_over_at_its_limit_or_where_nothing_is_left() {
    let (context, device) = OpenOptions::new().alone();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(16, None).unwrap());
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    let number = qp.number();
    let queue = SendQueue::of(device.engine, qp.index());
    let SendQueue { slot, ownership, .. } = queue;
    let is_over = |limit| work(queue, limit);
    qp.connect_to(number).unwrap();
    qp.post_recv(&[1, 2, 3, 4, 5, 6].map(|id| RecvWr::new(id, &[]))).unwrap();
    qp.post_send(&[1, 2, 3].map(|id| SendWr::send(id, &[]))).unwrap();
    ownership.seize();
    qp.post_send(&[4, 5, 6].map(|id| SendWr::send(id, &[]))).unwrap();
    assert!(!is_over(Position::new(5)), "there is one more");
    assert_eq!(sync::load(&slot.send.done), 5);
    assert!(is_over(Position::new(100)));
    assert_eq!(cq.poll(&mut [Wc::default(); 16]), Ok(12));
    ownership.abandon();
    for state in [QpState::SQD, QpState::ERR, QpState::RESET] {
        qp.modify(&QpAttr::to(state)).unwrap();
        ownership.seize();
        assert!(is_over(Position::new(100)), "{state:?}");
        ownership.abandon();
    }
    assert!(identity::change(slot, identity::read(slot), QpState::SQE));
    assert!(is_over(Position::new(100)), "in SQE");
    sync::store(&slot.send_ring.offset, u32::MAX);
    assert!(is_over(Position::new(100)), "it has no ring");
}

#[test]
fn c08_what_was_not_answered_before_is_nothing_to_hand_over_for() {
    let (context, device) = OpenOptions::new().alone();
    let cq = context.create_cq(4, None).unwrap();
    let qp = context.alloc_pd().unwrap().create_qp(&QpInit::new(&cq)).unwrap();
    let queue = SendQueue::of(device.engine, qp.index());
    let ownership = queue.ownership;
    sync::store(&queue.own.unanswered, 1);
    ownership.seize();
    assert!(!ownership.enter(), "the holder looks once more");
    assert!(hold(queue));
    assert!(ownership.is_free());
}

/// The lock of a shared receive queue is waited for as long as any is: two seconds.
#[test]
fn c08_who_waited_for_one_that_does_not_answer_hands_over() {
    let (context, device) = OpenOptions::new().alone();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let mut srq = pd.create_srq(&SrqInit { max_wr: 1, max_sge: 1 }).unwrap();
    let mut qp = pd.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(&cq) }).unwrap();
    let rts = QpAttr::rts().timeout(0);
    for step in [
        QpAttr::init(&Port::new(1), Access::REMOTE),
        QpAttr::rtr(&Port::new(1), &Endpoint::new(qp.number())),
        rts,
    ] {
        qp.modify(&step).unwrap();
    }
    srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let queue = SendQueue::of(device.engine, qp.index());
    let ownership = queue.ownership;
    ownership.seize();
    // The holder is to look once more after this.
    qp.post_send(&[SendWr::send(1, &[])]).unwrap();
    let kept = device
        .memory
        .lock(device.engine.srq(SrqNumber::new(srq.number())).pool.lock(), || {})
        .unwrap();
    assert!(hold(queue), "it is handed over");
    assert_eq!(cq.poll(&mut [Wc::default(); 2]), Ok(0), "nobody has carried it out");
    drop(kept);
    until("the service thread sends it", || cq.poll(&mut [Wc::default()]) == Ok(1));
}

#[test]
fn x03_who_waits_for_a_completion_queue_s_lock_keeps_nobody_waiting_for_its_copies() {
    let (context, device) = OpenOptions::new().alone();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    qp.connect_to(qp.number()).unwrap();
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
    let region = pd.allocate(8, access).unwrap();
    let (slot, marker) =
        (device.completions.cq(cq.queue().index), device.engine.ownership(qp.index()));
    let word = |region: &OwnedRegion| {
        let mut bytes = [0; 8];
        region.read(0, &mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    };
    // A process that was stopped in a push.
    let kept = device.memory.lock(&slot.fanin.lock, || {}).unwrap();
    thread::scope(|scope| {
        let target = region.remote(0).unwrap();
        scope.spawn(move || {
            qp.post_send(&[SendWr::write_inline(1, &7_u64.to_ne_bytes(), target)]).unwrap();
        });
        until("the bytes are there", || word(&region) == 7);
        until("the copy is over", || !ChangeFence::after_change().is_open(marker));
        assert!(!slot.mode.has(CqFlag::GivenUp), "it waited for the lock with its guard open");
        drop(kept);
    });
}

#[test]
fn c08_a_request_whose_usual_run_found_no_answer_is_not_tried_again_at_once() {
    let (context, device) = OpenOptions::new().alone();
    let cq = context.create_cq(4, None).unwrap();
    let mut qp = context.alloc_pd().unwrap().create_qp(&QpInit::new(&cq)).unwrap();
    qp.connect_to(qp.number()).unwrap();
    let queue = SendQueue::of(device.engine, qp.index());
    let SendQueue { engine, slot, own, ownership, .. } = queue;
    let before = identity::read(slot);
    let mut known = Connection::new(engine, slot, before);
    // The next thread that reads it finds another epoch.
    identity::changed(slot, qp.qpn());
    sync::store(&own.unanswered, 1);
    ownership.seize();
    assert!(!ownership.enter(), "the holder looks once more");
    let why = Halt::Waits(WaitsFor::Answer);
    let halted = Halted { position: slot.send.done(), wr_id: 1, why };
    assert!(queue.hold(&mut known, &mut Rescheduled::default(), Some(halted)));
    assert_eq!(known.map(|known| known.me), Some(before), "it is handed over");
}

#[test]
fn x04_a_peer_that_fails_while_a_marker_is_corrupted_is_flushed_by_who_posts_next() {
    for is_posters in [true, false] {
        let (context, device) = OpenOptions::new().alone();
        let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(16, None).unwrap());
        let [mut qp, mut peer] = [(); 2].map(|()| pd.create_qp(&QpInit::new(&cq)).unwrap());
        qp.connect_to(peer.number()).unwrap();
        peer.connect_to(qp.number()).unwrap();
        peer.post_recv(&[RecvWr::new(1, &[]), RecvWr::new(2, &[])]).unwrap();
        qp.post_send(&[SendWr::send(3, &[])]).unwrap();
        let mut wcs = [Wc::default(); 8];
        assert_eq!(cq.poll(&mut wcs), Ok(2));
        let markers = &device.engine.qp(qp.qpn()).send.in_flight;
        let marker = if is_posters { &markers.poster } else { &markers.owner };
        marker.open();
        assert!(identity::fail(device.engine.qp(peer.qpn()), peer.qpn()));
        run(device.engine, peer.index());
        assert_eq!(cq.poll(&mut wcs), Ok(0), "something may be in flight");
        qp.post_send(&[SendWr::send(4, &[])]).unwrap();
        assert_eq!(cq.poll(&mut wcs), Ok(1));
        assert_eq!((wcs[0].wr_id(), wcs[0].status()), (2, WcStatus::WR_FLUSH_ERR));
    }
}

#[test]
fn q02_a_peer_that_fails_while_a_fault_looks_at_it_is_flushed_after_that() {
    let faults = Faults::seeded(1).fail(When::nth(1), WcStatus::REM_OP_ERR);
    let (context, device) = OpenOptions::new().faults(faults).alone();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(16, None).unwrap());
    let [mut qp, mut peer] = [(); 2].map(|()| pd.create_qp(&QpInit::new(&cq)).unwrap());
    qp.connect_to(peer.number()).unwrap();
    peer.connect_to(qp.number()).unwrap();
    peer.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let ownership = device.engine.ownership(qp.index());
    ownership.seize();
    qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    ownership.abandon();
    assert!(identity::fail(device.engine.qp(peer.qpn()), peer.qpn()));
    run(device.engine, qp.index());
    let mut wcs = [Wc::default(); 4];
    assert_eq!(cq.poll(&mut wcs), Ok(1));
    assert_eq!((wcs[0].wr_id(), wcs[0].status()), (1, WcStatus::WR_FLUSH_ERR));
}
