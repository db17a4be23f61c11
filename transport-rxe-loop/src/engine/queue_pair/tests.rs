use super::*;
use crate::api::qp::setup;
use crate::engine::srq::queue as pool_of;
use crate::inside::prelude::*;

#[test]
fn x03_what_a_dead_peer_had_completed_has_before_reset_forgets_the_rest() {
    let fixture = Fixture::new();
    let mut qp = fixture.own_peer();
    qp.post_recv(&[1, 2].map(|id| RecvWr::new(id, &[]))).unwrap();
    let wc = Wc::poisoned(Failed::new(1, WcStatus::LOC_PROT_ERR, qp.number(), 0).unwrap());
    fixture.dies_pushing(&wc, tag::of_recv(Position::new(1)));
    qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
    // Whoever did that later might set the receives back that reset has forgotten.
    let fanin = &fixture.device.completions.cq(fixture.cq.handle.queue.index).fanin;
    assert_eq!((fanin.lock.holder(), fanin.position()), (None, 1), "it is settled by now");
}

#[test]
fn q01_a_new_queue_pair_is_connected_to_nobody() {
    let fixture = Fixture::new();
    let engine = fixture.device.engine;
    // As earlier ones left their entries.
    engine.destinations.iter().for_each(|dest| sync::store(dest, 1));
    assert_eq!(sync::load(engine.dest(fixture.qp().index())), 0);
}

/// A queue pair is destroyed while something is done for it. Its entry is kept until that is over.
#[track_caller]
fn keeps_its_entry(
    fixture: &Fixture,
    mut claimed: ClaimedQp,
    ends: impl FnOnce(),
    looks: impl FnOnce(&'static Device),
) {
    let engine = fixture.device.engine;
    sync::lock(&engine.deferred).push(claimed.deferred.take().unwrap());
    let owner = || claimed.queue.slot.life().attachment();
    tidy(engine);
    assert_eq!(owner(), Some(engine.shm.attachment()));
    ends();
    looks(fixture.device);
    assert_eq!(owner(), None);
}

#[test]
fn x03_a_destroyed_queue_pair_keeps_its_entry_while_its_peer_is_in_the_middle_of_a_request() {
    let fixture = Fixture::new();
    let (engine, init, mut peer) = (fixture.device.engine, fixture.init(QpType::RC), fixture.qp());
    let claimed = ClaimedQp::new(engine, setup(&fixture.pd.domain, &init).unwrap()).unwrap();
    peer.connect_to(claimed.number.get()).unwrap();
    sync::store(engine.dest(claimed.queue.index), peer.number());
    let in_flight = &fixture.slot(&peer).send.in_flight.owner;
    in_flight.open();
    keeps_its_entry(&fixture, claimed, || in_flight.close(), |device| tidy(device.engine));
}

#[test]
fn x03_a_destroyed_queue_pair_keeps_its_entry_while_a_shared_receive_is_taken_for_it() {
    let fixture = Fixture::new();
    let (engine, mut srq) = (fixture.device.engine, fixture.srq(1));
    srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let init = fixture.init(QpType::RC).srq(&srq);
    let claimed = ClaimedQp::new(engine, setup(&fixture.pd.domain, &init).unwrap()).unwrap();
    let queue = pool_of(engine, engine.srq(SrqNumber::new(srq.number()))).unwrap();
    let taken = queue.take(engine.shm.attachment(), claimed.number).unwrap();
    let settles = || queue.settle(taken.tag(), taken.target());
    // The sweeper does it.
    keeps_its_entry(&fixture, claimed, settles, |device| _ = deaths::look(device));
}

#[test]
fn q07_who_waits_for_a_receive_for_ever_fails_once_its_peer_is_reset() {
    let mut fixture = Fixture::new();
    let [mut waits, mut peer] = [(); 2].map(|()| fixture.qp());
    peer.connect_to(waits.number()).unwrap();
    let rts = QpAttr::rts().timeout(AckTimeout::from_number(1).unwrap()).retry_cnt(0).rnr_retry(7);
    connect_with(&mut waits, peer.number(), rts);
    waits.post_send(&[SendWr::send(1, &[])]).unwrap();
    assert_eq!(fixture.polled(), [], "no receive is posted");
    peer.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
    assert_eq!(fixture.next_wc(), (1, WcStatus::RETRY_EXC_ERR));
}

#[test]
fn q07_sends_of_a_queue_pair_in_sqe_are_flushed_once_no_other_thread_is_at_them() {
    let mut fixture = Fixture::new();
    let mut qp = fixture.own_peer_of(&fixture.init(QpType::UC));
    let (slot, ownership) = (fixture.slot(&qp), fixture.device.engine.ownership(qp.index()));
    ownership.seize();
    qp.post_send(&[SendWr::send(1, &[])]).unwrap();
    assert!(identity::change(&slot.identity, identity::read(&slot.identity), QpState::SQE));
    let rts = QpAttr::new().state(QpState::RTS);
    waits(|| qp.modify(&rts), || ownership.abandon()).unwrap();
    assert_eq!(fixture.polled(), [(1, WcStatus::WR_FLUSH_ERR)]);
}
