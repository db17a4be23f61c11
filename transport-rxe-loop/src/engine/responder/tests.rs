use super::*;
use crate::inside::prelude::*;

/// An attachment that no process has.
const ANOTHER: AttachmentId = AttachmentId::new(33);

/// A queue pair that is its own peer.
fn connected(context: &Context) -> (QueuePair, Cq) {
    let cq = context.create_cq(4, None).unwrap();
    let mut qp = context.alloc_pd().unwrap().create_qp(&QpInit::new(&cq)).unwrap();
    qp.connect_to(qp.number()).unwrap();
    (qp, cq)
}

#[test]
fn q07_the_target_of_a_request_that_it_refuses_fails_and_is_told_once() {
    let (mut context, device) = OpenOptions::new().alone();
    let (qp, _cq) = connected(&context);
    let (number, state) = (qp.number(), || identity::read(device.engine.qp(qp.qpn())).state());
    let of = |from| Responder::new(device.engine, QpNumber::new(number), from, QpType::Rc);
    of(QpNumber::new(number + 1)).refuse(WcStatus::REM_ACCESS_ERR);
    assert_eq!((state(), context.take_async_event()), (QpState::RTS, Ok(None)), "of another's");
    of(QpNumber::new(number)).refuse(WcStatus::REM_ACCESS_ERR);
    assert_eq!(state(), QpState::ERR);
    assert!(context.take_async_event().unwrap().is_some());
    of(QpNumber::new(number)).refuse(WcStatus::REM_ACCESS_ERR);
    assert_eq!(context.take_async_event(), Ok(None), "it has failed already");
}

#[test]
fn q07_a_queue_pair_that_failed_takes_no_datagrams() {
    let (context, device) = OpenOptions::new().alone();
    let cq = context.create_cq(4, None).unwrap();
    let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
    let mut qp = context.alloc_pd().unwrap().create_qp(&init).unwrap();
    qp.activate(&Port::new(1), 1).unwrap();
    let mut peer = Responder::new(device.engine, qp.qpn(), QpNumber::new(0), QpType::Ud);
    assert!(peer.takes(1) && !peer.takes(2));
    qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
    assert!(!peer.takes(1));
}

#[test]
fn q07_a_receive_is_of_whom_a_datagram_is_for_whatever_another_has() {
    let (context, device) = OpenOptions::new().alone();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
    let [mut has, mut has_none] = [(); 2].map(|()| pd.create_qp(&init).unwrap());
    has.activate(&Port::new(1), 1).unwrap();
    has_none.activate(&Port::new(1), 1).unwrap();
    has.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let of = |qp: &QueuePair| {
        let mut peer = Responder::new(device.engine, qp.qpn(), QpNumber::new(0), QpType::Ud);
        peer.receive(0).map(|receive| receive.request.wr_id)
    };
    assert_eq!(of(&has), Ok(1));
    assert_eq!(of(&has_none), Err(Unavailable::NoReceive));
}

#[test]
fn q07_a_free_entry_is_no_queue_pair() {
    let (context, device) = OpenOptions::new().alone();
    drop(connected(&context));
    assert_eq!(
        identity::read(device.engine.qp(QpNumber::new(0))).number(),
        QpNumber::new(0),
        "it is free"
    );
    let mut nobody = Responder::new(device.engine, QpNumber::new(0), QpNumber::new(1), QpType::Rc);
    assert_eq!(nobody.listens(), Err(Unavailable::Gone));
}

#[test]
fn x04_more_receives_than_the_capacity_are_none() {
    let (context, device) = OpenOptions::new().alone();
    let cq = context.create_cq(4, None).unwrap();
    let init = QpInit { qp_type: QpType::Uc, ..QpInit::new(&cq) };
    let mut qp = context.alloc_pd().unwrap().create_qp(&init).unwrap();
    qp.connect_to(qp.number()).unwrap();
    let slot = device.engine.qp(qp.qpn());
    let peer = || Responder::new(device.engine, qp.qpn(), qp.qpn(), QpType::Uc);
    let has = || peer().receive(0).is_ok();
    let most = u64::from(sync::load(&slot.recv_capacity));
    assert!(!slot.recv.post(Position::new(most)), "nobody waits");
    assert!(has());
    assert!(!slot.recv.post(Position::new(most + 1)));
    assert!(!has());
}

#[test]
fn q07_a_shared_receive_that_is_not_used_is_there_for_the_next_message() {
    let (context, device) = OpenOptions::new().alone();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let mut srq = pd.create_srq(&SrqInit { max_wr: 1, max_sge: 1 }).unwrap();
    let mut qp = pd.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(&cq) }).unwrap();
    qp.connect_to(qp.number()).unwrap();
    srq.post_recv(&[RecvWr::new(7, &[])]).unwrap();
    let mut peer = Responder::new(device.engine, qp.qpn(), qp.qpn(), QpType::Rc);
    let taken = peer.receive(0).unwrap();
    assert_eq!(peer.receive(0).map(|_| ()), Err(Unavailable::NoReceive));
    peer.give_back(&taken);
    let again = peer.receive(0).unwrap();
    assert_eq!(again.request.wr_id, 7);
    peer.give_back(&again);
}

#[test]
fn x03_the_receives_that_a_dead_process_kept_from_all_others_can_be_taken() {
    let (context, device) = OpenOptions::new().alone();
    let (qp, _cq) = connected(&context);
    let peer = Responder::new(device.engine, qp.qpn(), qp.qpn(), QpType::Rc);
    let (taking, dead) =
        (&device.engine.qp(qp.qpn()).receive_lock, AttachmentKey::new(ANOTHER.get(), 1));
    let stuck = &device.engine.own(qp.index()).stuck;
    assert!(taking.try_enter(dead));
    sync::store(stuck, dead.to_word());
    assert!(peer.take_receives().is_ok());
    assert_eq!((taking.holder(), sync::load(stuck)), (None, 0));
}

/// The first look waits as long as any does for a lock: two seconds.
#[test]
fn x07_who_keeps_the_receives_from_all_others_is_remembered() {
    let (context, device) = OpenOptions::new().alone();
    let (qp, _cq) = connected(&context);
    let peer = Responder::new(device.engine, qp.qpn(), qp.qpn(), QpType::Rc);
    let (slot, stuck) = (device.engine.qp(qp.qpn()), &device.engine.own(qp.index()).stuck);
    let kept = device.memory.lock(&slot.receive_lock, || {}).unwrap();
    assert_eq!(peer.take_receives().map(drop), Err(Stuck));
    assert_eq!(Some(sync::load(stuck)), slot.receive_lock.holder().map(AttachmentKey::to_word));
    assert_eq!(peer.take_receives().map(drop), Err(Stuck));
    drop(kept);
    assert!(peer.take_receives().is_ok());
    assert_eq!(sync::load(stuck), 0);
}

#[test]
fn q07_a_queue_pair_in_the_place_of_one_that_is_gone_is_not_that_one() {
    let (context, device) = OpenOptions::new().alone();
    let (qp, _cq) = connected(&context);
    let listens = |number| {
        Responder::new(device.engine, QpNumber::new(number), qp.qpn(), QpType::Rc).listens()
    };
    assert!(listens(qp.number()).is_ok());
    let of_another_life = qp.number() ^ 1 << 23;
    assert_eq!(device.engine.index(QpNumber::new(of_another_life)), qp.index());
    assert!(matches!(listens(of_another_life), Err(Unavailable::Gone)));
}
