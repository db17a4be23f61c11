use super::*;
use crate::api::qp::setup;
use crate::engine::srq::queue as pool_of;
use crate::inside::prelude::*;

/// An attachment that no process has.
const ANOTHER: AttachmentId = AttachmentId::new(35);

#[test]
fn q07_who_waits_for_ever_fails_once_its_peer_is_destroyed() {
    let (context, _) = OpenOptions::new().alone();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let [mut waits, peer] = [(); 2].map(|()| pd.create_qp(&QpInit::new(&cq)).unwrap());
    let rts = QpAttr::rts().timeout(0);
    for step in [
        QpAttr::init(&Port::new(1), Access::empty()),
        QpAttr::rtr(&Port::new(1), &Endpoint::new(peer.number())),
        rts,
    ] {
        waits.modify(&step).unwrap();
    }
    waits.post_send(&[SendWr::send(1, &[])]).unwrap();
    let mut wcs = [Wc::default(); 2];
    assert_eq!(cq.poll(&mut wcs), Ok(0), "its peer is not connected");
    peer.destroy();
    assert_eq!(cq.poll(&mut wcs), Ok(1));
    assert_eq!(wcs[0].status(), WcStatus::RETRY_EXC_ERR);
}

#[test]
fn x03_what_a_dead_peer_had_completed_has_before_reset_forgets_the_rest() {
    let (context, _) = OpenOptions::new().alone();
    let device = context.device();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    qp.connect_to(qp.number()).unwrap();
    qp.post_recv(&[1, 2].map(|id| RecvWr::new(id, &[]))).unwrap();
    let index = device.engine.qp(qp.qpn()).recv_cq();
    let wc = complete::failed(1, qp.qpn(), WcStatus::LOC_PROT_ERR);
    push::die_pushing(
        device.completions,
        index,
        AttachmentKey::new(ANOTHER.get(), 1),
        &wc,
        tag::of_recv(Position::new(1)),
    );
    qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    // Whoever did that later might set the receives back that reset has forgotten.
    let fanin = &device.completions.cq(index).fanin;
    assert_eq!((fanin.lock.holder(), fanin.position()), (None, 1), "it is settled by now");
}

#[test]
fn q01_a_new_queue_pair_is_connected_to_nobody() {
    let (context, device) = OpenOptions::new().alone();
    // As earlier ones left their entries.
    device.engine.destinations.iter().for_each(|dest| sync::store(dest, 1));
    let cq = context.create_cq(4, None).unwrap();
    let qp = context.alloc_pd().unwrap().create_qp(&QpInit::new(&cq)).unwrap();
    assert_eq!(sync::load(device.engine.dest(qp.index())), 0);
}

#[test]
fn x03_a_destroyed_queue_pair_keeps_its_entry_while_its_peer_is_in_the_middle_of_a_request() {
    let (context, device) = OpenOptions::new().alone();
    let cq = context.create_cq(4, None).unwrap();
    let (pd, init) = (context.alloc_pd().unwrap(), QpInit::new(&cq));
    let mut peer = pd.create_qp(&init).unwrap();
    let mut claimed = ClaimedQp::new(device.engine, setup(pd.domain(), &init).unwrap()).unwrap();
    peer.connect_to(claimed.number.get()).unwrap();
    sync::store(device.engine.dest(claimed.queue.index), peer.number());
    let in_flight = &device.engine.qp(peer.qpn()).send.in_flight.owner;
    in_flight.open();
    device.engine.deferred().push(claimed.deferred.take().unwrap());
    tidy(device.engine);
    assert_eq!(claimed.queue.slot.life().attachment(), Some(device.shm.attachment()));
    in_flight.close();
    tidy(device.engine);
    assert_eq!(claimed.queue.slot.life().attachment(), None);
}

#[test]
fn x03_a_destroyed_queue_pair_keeps_its_entry_while_a_shared_receive_is_taken_for_it() {
    let (context, device) = OpenOptions::new().alone();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let mut srq = pd.create_srq(&SrqInit { max_wr: 1, max_sge: 1 }).unwrap();
    srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let init = QpInit { srq: Some(&srq), ..QpInit::new(&cq) };
    let mut claimed = ClaimedQp::new(device.engine, setup(pd.domain(), &init).unwrap()).unwrap();
    let queue = pool_of(device.engine, device.engine.srq(SrqNumber::new(srq.number()))).unwrap();
    let taken = queue.take(device.shm.attachment(), claimed.number).unwrap();
    device.engine.deferred().push(claimed.deferred.take().unwrap());
    tidy(device.engine);
    assert_eq!(claimed.queue.slot.life().attachment(), Some(device.shm.attachment()));
    queue.settle(taken.tag(), taken.target());
    // The sweeper does it.
    deaths::look(device);
    assert_eq!(claimed.queue.slot.life().attachment(), None);
}

#[test]
fn q07_who_waits_for_a_receive_for_ever_fails_once_its_peer_is_reset() {
    let (context, _) = OpenOptions::new().alone();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let [mut waits, mut peer] = [(); 2].map(|()| pd.create_qp(&QpInit::new(&cq)).unwrap());
    peer.connect_to(waits.number()).unwrap();
    let rts = QpAttr::rts().timeout(1).retry_cnt(0).rnr_retry(7);
    for step in [
        QpAttr::init(&Port::new(1), Access::empty()),
        QpAttr::rtr(&Port::new(1), &Endpoint::new(peer.number())),
        rts,
    ] {
        waits.modify(&step).unwrap();
    }
    waits.post_send(&[SendWr::send(1, &[])]).unwrap();
    let mut wcs = [Wc::default(); 2];
    assert_eq!(cq.poll(&mut wcs), Ok(0), "no receive is posted");
    peer.modify(&QpAttr::to(QpState::RESET)).unwrap();
    until("it is told", || cq.poll(&mut wcs) == Ok(1));
    assert_eq!(wcs[0].status(), WcStatus::RETRY_EXC_ERR);
}

#[test]
fn q07_sends_of_a_queue_pair_in_sqe_are_flushed_once_no_other_thread_is_at_them() {
    let (context, device) = OpenOptions::new().alone();
    let mut cq = context.create_cq(4, None).unwrap();
    let init = QpInit { qp_type: QpType::Uc, ..QpInit::new(&cq) };
    let mut qp = context.alloc_pd().unwrap().create_qp(&init).unwrap();
    qp.connect_to(qp.number()).unwrap();
    let (slot, ownership) = (device.engine.qp(qp.qpn()), device.engine.ownership(qp.index()));
    ownership.seize();
    qp.post_send(&[SendWr::send(1, &[])]).unwrap();
    assert!(identity::change(slot, identity::read(slot), QpState::SQE));
    thread::scope(|scope| {
        let resumes = scope.spawn(|| qp.modify(&QpAttr::to(QpState::RTS)));
        (0..200).for_each(|_| thread::yield_now());
        assert!(!resumes.is_finished(), "another thread is at them");
        ownership.abandon();
        resumes.join().unwrap().unwrap();
    });
    let mut wcs = [Wc::default(); 2];
    assert_eq!(cq.poll(&mut wcs), Ok(1));
    assert_eq!(wcs[0].status(), WcStatus::WR_FLUSH_ERR);
}
