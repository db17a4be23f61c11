use super::*;
use crate::inside::prelude::*;

/// The responder of a queue pair that is its own peer.
fn own(fixture: &Fixture, qp: &QueuePair) -> Responder {
    Responder::new(fixture.device.engine, qp.qpn(), qp.qpn(), qp.qp_type())
}

#[test]
fn q07_the_target_of_a_request_that_it_refuses_fails_and_is_told_once() {
    let mut fixture = Fixture::new();
    let (engine, qp) = (fixture.device.engine, fixture.own_peer());
    let number = qp.number();
    let mut refuses = |from| {
        let mut peer = Responder::new(engine, qp.qpn(), QpNumber::new(from), QpType::RC);
        peer.refuse(WcStatus::REM_ACCESS_ERR);
        (qp.state().unwrap(), fixture.told().is_some())
    };
    assert_eq!(refuses(number + 1), (QpState::RTS, false), "of another's");
    assert_eq!(refuses(number), (QpState::ERR, true));
    assert_eq!(refuses(number), (QpState::ERR, false), "it has failed already");
}

#[test]
fn q07_a_datagram_is_for_its_queue_key_and_for_none_that_has_failed() {
    let fixture = Fixture::new();
    let mut qp = fixture.datagrams();
    let engine = fixture.device.engine;
    let mut peer = Responder::new(engine, qp.qpn(), QpNumber::NONE, QpType::UD);
    assert!(peer.takes(1) && !peer.takes(2));
    qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
    assert!(!peer.takes(1));
}

#[test]
fn q07_who_is_not_there_does_not_listen() {
    let fixture = Fixture::new();
    let (engine, qp) = (fixture.device.engine, fixture.own_peer());
    let listens = |number| Responder::new(engine, number, qp.qpn(), QpType::RC).listens();
    assert!(listens(qp.qpn()).is_ok());
    let of_another_life = QpNumber::new(qp.number() ^ 1 << 23);
    assert_eq!(engine.index(of_another_life), qp.index());
    assert!(matches!(listens(of_another_life), Err(Unavailable::Gone)));
    drop(qp);
    let free = QpNumber::NONE;
    assert_eq!(identity::read(&engine.qp(free).identity).number(), free, "it is free");
    let mut nobody = Responder::new(engine, free, QpNumber::new(1), QpType::RC);
    assert_eq!(nobody.listens(), Err(Unavailable::Gone));
}

#[test]
fn x04_more_receives_than_the_capacity_are_none() {
    let fixture = Fixture::new();
    let qp = fixture.own_peer_of(&fixture.init(QpType::UC));
    let slot = fixture.slot(&qp);
    let has = || own(&fixture, &qp).receive(0).is_ok();
    let most = u64::from(sync::load(&slot.recv_capacity));
    assert!(!slot.recv.post(Position::new(most)), "nobody waits");
    assert!(has());
    assert!(!slot.recv.post(Position::new(most + 1)));
    assert!(!has());
}

/// The first look waits as long as any does for a lock: two seconds.
#[test]
fn x03_x07_who_keeps_the_receives_from_all_others_is_remembered_and_inherited_once_it_is_dead() {
    let fixture = Fixture::new();
    let qp = fixture.own_peer();
    let (device, peer) = (fixture.device, own(&fixture, &qp));
    let (lock, stuck) = (&fixture.slot(&qp).receive_lock, &device.engine.own(qp.index()).stuck);
    let kept = device.memory.lock(lock, || {}).unwrap();
    for _ in 0..2 {
        assert_eq!(peer.take_receives().map(drop), Err(Stuck));
        assert_eq!(Some(sync::load(stuck)), lock.holder().map(AttachmentKey::to_word));
    }
    drop(kept);
    assert!(peer.take_receives().is_ok());
    assert_eq!(sync::load(stuck), 0);
    assert!(lock.try_enter(DEAD));
    sync::store(stuck, DEAD.to_word());
    assert!(peer.take_receives().is_ok());
    assert_eq!((lock.holder(), sync::load(stuck)), (None, 0));
}
