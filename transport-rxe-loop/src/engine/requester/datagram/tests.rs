use crate::engine::in_flight;
use crate::inside::prelude::*;
use crate::memory::copier;
use crate::memory::region::{Kind, RegionEntry};

/// An attachment that no process has.
const ANOTHER: AttachmentId = AttachmentId::new(36);

#[test]
fn x07_datagrams_for_whom_somebody_suspended_keeps_are_lost_and_keep_nobody() {
    let (device, context) = (Device::of_tests(), Context::open("loop0").unwrap());
    let (here, pd) = (context.port(1).unwrap(), context.alloc_pd().unwrap());
    let mut cq = context.create_cq(64, None).unwrap();
    let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
    let (mut qp, mut receiver) = (pd.create_qp(&init).unwrap(), pd.create_qp(&init).unwrap());
    qp.activate(&Port::new(1), 1).unwrap();
    receiver.activate(&Port::new(1), 1).unwrap();
    let region = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
    receiver.post_recv(&[RecvWr::new(1, &[region.sge(0, 64).unwrap()])]).unwrap();
    let ah = pd.create_ah(&AddressVector::of(&here, here.gid, here.lid)).unwrap();
    let destination = Destination { ah: &ah, qp_num: receiver.number(), qkey: 1 };
    let wr = SendWr::send_inline(2, b"x").unsignaled();
    let suspended =
        device.memory.lock(&device.engine.qp(receiver.qpn()).receive_lock, || {}).unwrap();
    thread::scope(|scope| {
        let sends = scope.spawn(|| qp.to(&destination).post_send(&[wr; 64]));
        until("they are sent", || sends.is_finished());
        sends.join().unwrap().unwrap();
    });
    let mut wcs = [Wc::default(); 2];
    assert_eq!(cq.poll(&mut wcs), Ok(0), "they are lost");
    drop(suspended);
    qp.to(&destination).post_send(&[wr]).unwrap();
    assert_eq!(cq.poll(&mut wcs), Ok(1), "it is taken again");
}

#[test]
fn x07_a_receiver_is_not_reset_before_a_suspended_sender_is_through() {
    let (device, context) = (Device::of_tests(), Context::open("loop0").unwrap());
    let pd = context.alloc_pd().unwrap();
    let mut cq = context.create_cq(64, None).unwrap();
    let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
    let mut receiver = pd.create_qp(&init).unwrap();
    receiver.activate(&Port::new(1), 1).unwrap();
    receiver.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let suspended =
        device.memory.lock(&device.engine.qp(receiver.qpn()).receive_lock, || {}).unwrap();
    let reset = QpAttr::to(QpState::RESET);
    assert_eq!(receiver.modify(&reset), Err(ModifyError::PeerSuspended));
    assert_eq!(receiver.state().unwrap(), QpState::ERR, "it takes no more");
    assert_eq!(receiver.attributes().unwrap().qkey, Some(1), "it is not in RESET");
    let mut wcs = [Wc::default(); 2];
    assert_eq!(cq.poll(&mut wcs), Ok(0), "the sender may have taken the receive");
    drop(suspended);
    assert_eq!(receiver.modify(&reset), Ok(()));
    receiver.activate(&Port::new(1), 1).unwrap();
}

/// Each waits as long as any does for a lock: two seconds.
#[test]
fn x07_nobody_takes_receives_of_which_it_is_not_known_whether_they_have_completed() {
    let (context, device) = OpenOptions::new().alone();
    let cq = context.create_cq(64, None).unwrap();
    let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
    let mut receiver = context.alloc_pd().unwrap().create_qp(&init).unwrap();
    receiver.activate(&Port::new(1), 1).unwrap();
    receiver.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let slot = device.engine.qp(receiver.qpn());
    let (index, dead) = (cq.queue().index, AttachmentKey::new(ANOTHER.get(), 1));
    assert!(slot.receive_lock.try_enter(dead));
    let wc = Wc::new(1, WcStatus::SUCCESS, receiver.number());
    push::die_pushing(device.completions, index, dead, &wc, tag::of_recv(Position::new(1)));
    // Somebody who lives has inherited it, and is stopped before it has settled anything.
    let (lock, another) = (&device.completions.cq(index).fanin.lock, device.shm.allocates());
    let me = device.memory.lock(another, || {}).map(|_guard| another.holder().unwrap()).unwrap();
    assert!(lock.inherit(dead, me));
    for _ in 0..2 {
        assert!(in_flight::take_receives(device.engine, slot).is_err());
        assert_eq!((slot.receive_lock.holder(), slot.recv.completed().get()), (None, 0));
    }
    // It dies over this.
    lock.leave();
    assert!(lock.try_enter(dead));
    assert!(in_flight::take_receives(device.engine, slot).is_ok());
    assert_eq!(slot.recv.completed(), Position::new(1));
}

/// A receiver in a fabric of its own, with two receives, and who sends to it.
struct Scene {
    device: &'static Device,
    sender: QueuePair,
    receiver: QueuePair,
    ah: AddressHandle,
    cq: Cq,
    /// Where its receives are.
    _region: OwnedRegion,
    _context: Context,
}

impl Scene {
    fn new() -> Self {
        let (context, device) = OpenOptions::new().alone();
        let (here, pd) = (context.port(1).unwrap(), context.alloc_pd().unwrap());
        let cq = context.create_cq(4, None).unwrap();
        let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
        let [mut sender, mut receiver] = [(); 2].map(|()| pd.create_qp(&init).unwrap());
        sender.activate(&Port::new(1), 1).unwrap();
        receiver.activate(&Port::new(1), 1).unwrap();
        let region = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
        let sges = [region.sge(0, 64).unwrap()];
        receiver.post_recv(&[1, 2].map(|id| RecvWr::new(id, &sges))).unwrap();
        let ah = pd.create_ah(&AddressVector::of(&here, here.gid, here.lid)).unwrap();
        Self { device, sender, receiver, ah, cq, _region: region, _context: context }
    }

    /// A datagram with queue key 1.
    fn send(sender: &mut QueuePair, ah: &AddressHandle, qp_num: u32) {
        let destination = Destination { ah, qp_num, qkey: 1 };
        let wr = SendWr::send_inline(3, b"x").unsignaled();
        sender.to(&destination).post_send(&[wr]).unwrap();
    }
}

#[test]
fn q07_a_datagram_is_judged_by_the_queue_key_of_the_instant_at_which_it_is_taken() {
    let Scene { device, mut sender, mut receiver, ah, mut cq, .. } = Scene::new();
    let number = receiver.number();
    let stuck = &device.engine.own(QpIndex::new(number)).stuck;
    // As if another one had been waited for: who goes on to the lock forgets that.
    sync::store(stuck, u32::MAX);
    let another =
        device.memory.lock(&device.engine.qp(QpNumber::new(number)).receive_lock, || {}).unwrap();
    thread::scope(|scope| {
        let sends = scope.spawn(|| Scene::send(&mut sender, &ah, number));
        until("it has looked, and waits", || sync::load(stuck) == 0);
        receiver.modify(&QpAttr::to(QpState::RTS).qkey(2)).unwrap();
        drop(another);
        until("it is through", || sends.is_finished());
    });
    assert_eq!(cq.poll(&mut [Wc::default()]), Ok(0), "it had the key that was");
}

#[test]
fn x07_a_datagram_is_lost_while_the_receiver_writes_for_a_dead_sender() {
    let Scene { device, mut sender, receiver, ah, mut cq, _region, .. } = Scene::new();
    let (number, dead) = (receiver.number(), AttachmentKey::new(ANOTHER.get(), 1));
    let is_through = copier::carry_out_for(device.memory, ANOTHER);
    assert!(device.engine.qp(QpNumber::new(number)).receive_lock.try_enter(dead));
    let mut wcs = [Wc::default(); 3];
    for _ in 0..2 {
        Scene::send(&mut sender, &ah, number);
        assert_eq!(cq.poll(&mut wcs), Ok(0), "it would be written to by both");
    }
    is_through();
    Scene::send(&mut sender, &ah, number);
    assert_eq!(cq.poll(&mut wcs), Ok(1));
}

#[test]
fn x03_a_receive_that_a_dead_sender_had_completed_is_not_taken_again() {
    let Scene { device, mut sender, receiver, ah, mut cq, .. } = Scene::new();
    let (number, dead) = (receiver.number(), AttachmentKey::new(ANOTHER.get(), 1));
    let slot = device.engine.qp(QpNumber::new(number));
    assert!(slot.receive_lock.try_enter(dead));
    let wc = complete::failed(1, QpNumber::new(number), WcStatus::LOC_PROT_ERR);
    push::die_pushing(
        device.completions,
        slot.recv_cq(),
        dead,
        &wc,
        tag::of_recv(Position::new(1)),
    );
    Scene::send(&mut sender, &ah, number);
    let mut wcs = [Wc::default(); 4];
    assert_eq!(cq.poll(&mut wcs), Ok(2));
    assert_eq!([wcs[0].wr_id(), wcs[1].wr_id()], [1, 2]);
}

#[test]
fn q09_a_shared_receive_is_given_back_whose_process_does_not_answer() {
    let Scene { device, mut sender, ah, cq, _context: context, .. } = Scene::new();
    let pd = context.alloc_pd().unwrap();
    let mut srq = pd.create_srq(&SrqInit { max_wr: 1, max_sge: 1 }).unwrap();
    let init = QpInit { qp_type: QpType::Ud, srq: Some(&srq), ..QpInit::new(&cq) };
    let mut receiver = pd.create_qp(&init).unwrap();
    receiver.activate(&Port::new(1), 1).unwrap();
    // Memory of a process that is gone, and nobody has swept up after it.
    let (index, generation) = device.memory.mrs().claim(ANOTHER).unwrap();
    let (key, domain) = (Key::of(index, 6), pd.domain().number());
    let (base, len, access) = (1 << 20, 64, Access::LOCAL_WRITE);
    let entry = RegionEntry { key, access, domain, kind: Kind::Heap, base, len, bound: None };
    entry.write(device.memory.mr(index), (ANOTHER, generation));
    let sge = Sge { addr: base, length: len as u32, lkey: key.get() };
    srq.post_recv(&[RecvWr::new(1, &[sge])]).unwrap();
    Scene::send(&mut sender, &ah, receiver.number());
    let pool =
        crate::engine::srq::queue(device.engine, device.engine.srq(SrqNumber::new(srq.number())))
            .unwrap();
    assert!(pool.taken().next().is_none(), "nobody is at it any more");
    let again = pool.take(device.shm.attachment(), receiver.qpn()).expect("it is the next again");
    pool.settle(again.tag(), again.target());
}
