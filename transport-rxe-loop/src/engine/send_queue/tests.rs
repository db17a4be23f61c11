use cq_verbs::fault::When;

use super::*;
use crate::inside::prelude::*;
use crate::policy::faults::Faults;
use crate::protocol::mode::CqFlag;

/// Does what there is to do, up to a position.
fn work(queue: SendQueue, limit: u64) -> bool {
    queue.work(&mut None, &mut Rescheduled::default(), None, Position::new(limit))
}

/// Works as the owner, and gives ownership back.
fn hold(queue: SendQueue) -> bool {
    queue.hold(&mut None, &mut Rescheduled::default(), None)
}

#[test]
fn c08_what_is_posted_while_another_thread_has_the_turn_completes_however_much_it_is() {
    const MANY: usize = 600;
    let mut fixture = Fixture::new();
    let device = fixture.device;
    let init = fixture.init(QpType::UD);
    let caps = init.caps.max_send_wr(1024);
    let [mut qp, receiver] = [(); 2].map(|()| fixture.datagrams_of(&init.caps(caps)));
    let (ah, index) = (fixture.ah(), qp.index());
    let destination = Destination::new(&ah, receiver.number(), 1);
    let wr = SendWr::send_inline(1, b"x");
    // It is posted, and nobody has carried it out.
    let ownership = device.engine.ownership(index);
    ownership.seize();
    qp.to(&destination).post_send(&[wr.unsignaled()]).unwrap();
    ownership.abandon();
    let kept = device.memory.lock(&fixture.slot(&receiver).receive_lock, || {}).unwrap();
    thread::scope(|scope| {
        let works = scope.spawn(move || run(device.engine, index));
        let fence = ChangeFence::after_change();
        until("it is at the first", || fence.is_open(device.memory.ownership(index)));
        let mut later = [wr.unsignaled(); MANY];
        later[MANY - 1] = wr;
        qp.to(&destination).post_send(&later).unwrap();
        drop(kept);
        until("it is not kept", || works.is_finished());
    });
    assert_eq!(fixture.next_wc(), (1, WcStatus::SUCCESS), "the last is sent");
}

#[test]
fn c08_work_is_over_at_its_limit_or_where_nothing_is_left() {
    let mut fixture = Fixture::new();
    let mut qp = fixture.own_peer();
    let queue = SendQueue::of(fixture.device.engine, qp.index());
    let SendQueue { slot, ownership, .. } = queue;
    qp.post_recv(&[1, 2, 3, 4, 5, 6].map(|id| RecvWr::new(id, &[]))).unwrap();
    qp.post_send(&[1, 2, 3].map(|id| SendWr::send(id, &[]))).unwrap();
    ownership.seize();
    qp.post_send(&[4, 5, 6].map(|id| SendWr::send(id, &[]))).unwrap();
    assert!(!work(queue, 5), "there is one more");
    assert_eq!(sync::load(&slot.send.done), 5);
    assert!(work(queue, 100));
    assert_eq!(fixture.polled().len(), 12);
    ownership.abandon();
    for state in [QpState::SQD, QpState::ERR, QpState::RESET] {
        qp.modify(&QpAttr::new().state(state)).unwrap();
        ownership.seize();
        assert!(work(queue, 100), "{state:?}");
        ownership.abandon();
    }
    assert!(identity::change(&slot.identity, identity::read(&slot.identity), QpState::SQE));
    assert!(work(queue, 100), "in SQE");
    sync::store(&slot.send_ring.offset, u32::MAX);
    assert!(work(queue, 100), "it has no ring");
}

/// The lock of a shared receive queue is waited for as long as any is: two seconds.
#[test]
fn c08_who_waited_for_one_that_does_not_answer_hands_over() {
    let mut fixture = Fixture::new();
    let (device, mut srq) = (fixture.device, fixture.srq(1));
    let mut qp = fixture.create(&fixture.init(QpType::RC).srq(&srq));
    let peer = qp.number();
    connect_with(&mut qp, peer, QpAttr::rts().timeout(AckTimeout::UNLIMITED));
    srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let queue = SendQueue::of(device.engine, qp.index());
    queue.ownership.seize();
    // The holder is to look once more after this.
    qp.post_send(&[SendWr::send(1, &[])]).unwrap();
    let lock = device.engine.srq(SrqNumber::new(srq.number())).pool.lock();
    let kept = device.memory.lock(lock, || {}).unwrap();
    assert!(hold(queue), "it is handed over");
    assert_eq!(fixture.polled(), [], "nobody has carried it out");
    drop(kept);
    assert_eq!(fixture.next_wc().1, WcStatus::SUCCESS, "the service thread sends it");
}

#[test]
fn x03_who_waits_for_a_completion_queue_s_lock_keeps_nobody_waiting_for_its_copies() {
    let fixture = Fixture::new();
    let (device, mut qp, region) = (fixture.device, fixture.own_peer(), fixture.region(8));
    let slot = device.completions.cq(fixture.cq.handle.queue.index);
    let marker = device.engine.ownership(qp.index());
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
fn c08_what_has_no_answer_now_is_handed_over_and_what_had_none_before_is_not() {
    let fixture = Fixture::new();
    let qp = fixture.own_peer();
    let queue = SendQueue::of(fixture.device.engine, qp.index());
    let SendQueue { engine, slot, own, ownership, .. } = queue;
    let seizes = || {
        sync::store(&own.unanswered, 1);
        ownership.seize();
        assert!(!ownership.enter(), "the holder looks once more");
    };
    seizes();
    assert!(hold(queue));
    assert!(ownership.is_free());

    let before = identity::read(&slot.identity);
    let mut known = Connection::new(engine, slot, before);
    // The next thread that reads it finds another epoch.
    identity::changed(&slot.identity, qp.qpn());
    seizes();
    let why = Halt::Waits(WaitsFor::Answer);
    let halted = Halted { position: slot.send.done(), wr_id: 1, why };
    assert!(queue.hold(&mut known, &mut Rescheduled::default(), Some(halted)));
    assert_eq!(known.map(|known| known.me), Some(before), "it is not tried again at once");
}

#[test]
fn x04_a_peer_that_fails_while_a_marker_is_corrupted_is_flushed_by_who_posts_next() {
    for is_posters in [true, false] {
        let mut fixture = Fixture::new();
        let [mut qp, mut peer] = fixture.pair();
        peer.post_recv(&[1, 2].map(|id| RecvWr::new(id, &[]))).unwrap();
        qp.post_send(&[SendWr::send(3, &[])]).unwrap();
        assert_eq!(fixture.polled().len(), 2);
        let markers = &fixture.slot(&qp).send.in_flight;
        let marker = if is_posters { &markers.poster } else { &markers.owner };
        marker.open();
        assert!(identity::fail(&fixture.slot(&peer).identity, peer.qpn()));
        run(fixture.device.engine, peer.index());
        assert_eq!(fixture.polled(), [], "something may be in flight");
        qp.post_send(&[SendWr::send(4, &[])]).unwrap();
        assert_eq!(fixture.polled(), [(2, WcStatus::WR_FLUSH_ERR)]);
    }
}

#[test]
fn q02_a_peer_that_fails_while_a_fault_looks_at_it_is_flushed_after_that() {
    let faults = Faults::seeded(1).fail(When::nth(1), WcStatus::REM_OP_ERR);
    let mut fixture = Fixture::of(OpenOptions::new().faults(faults));
    let [mut qp, mut peer] = fixture.pair();
    let engine = fixture.device.engine;
    peer.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let ownership = engine.ownership(qp.index());
    ownership.seize();
    qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    ownership.abandon();
    assert!(identity::fail(&fixture.slot(&peer).identity, peer.qpn()));
    run(engine, qp.index());
    assert_eq!(fixture.polled(), [(1, WcStatus::WR_FLUSH_ERR)]);
}
