use crate::conditions::PEER_SUSPENDED;
use crate::engine::in_flight;
use crate::engine::srq::queue as pool_of;
use crate::inside::prelude::*;
use crate::memory::copier;
use crate::memory::region::{Kind, RegionEntry};

/// Two that send datagrams; the second has two receives.
struct Scene {
    fixture: Fixture,
    sender: QueuePair,
    receiver: QueuePair,
    ah: AddressHandle,
    /// Where its receives are.
    _region: OwnedRegion,
}

impl Scene {
    fn new() -> Self {
        let fixture = Fixture::new();
        let [sender, mut receiver] = [(); 2].map(|()| fixture.datagrams());
        let region = fixture.region(64);
        let sges = [region.sge(..64).unwrap()];
        receiver.post_recv(&[1, 2].map(|id| RecvWr::new(id, &sges))).unwrap();
        let ah = fixture.ah();
        Self { fixture, sender, receiver, ah, _region: region }
    }

    /// The lock of the receiver's receives.
    fn lock(&self) -> &'static Lock {
        &self.fixture.slot(&self.receiver).receive_lock
    }

    /// Sends so many datagrams to it, with queue key 1.
    fn send(&mut self, count: usize) {
        send(&mut self.sender, &self.ah, self.receiver.number(), count);
    }
}

fn send(sender: &mut QueuePair, ah: &AddressHandle, qp_num: u32, count: usize) {
    let destination = Destination::new(ah, qp_num, 1);
    let list = vec![SendWr::send_inline(3, b"x").unsignaled(); count];
    sender.to(&destination).post_send(&list).unwrap();
}

#[test]
fn x07_datagrams_for_whom_somebody_suspended_keeps_are_lost_and_keep_nobody() {
    let mut scene = Scene::new();
    let suspended = scene.fixture.device.memory.lock(scene.lock(), || {}).unwrap();
    thread::scope(|scope| {
        let sends = scope.spawn(|| scene.send(64));
        until("they are sent", || sends.is_finished());
    });
    assert_eq!(scene.fixture.polled(), [], "they are lost");
    drop(suspended);
    scene.send(1);
    assert_eq!(scene.fixture.polled().len(), 1, "it is taken again");
}

#[test]
fn x07_a_receiver_is_not_reset_before_a_suspended_sender_is_through() {
    let mut scene = Scene::new();
    let suspended = scene.fixture.device.memory.lock(scene.lock(), || {}).unwrap();
    let reset = QpAttr::new().state(QpState::RESET);
    assert_eq!(scene.receiver.modify(&reset), Err(PEER_SUSPENDED.into()));
    assert_eq!(scene.receiver.state().unwrap(), QpState::ERR, "it takes no more");
    assert_eq!(scene.receiver.attributes().unwrap().qkey, Some(1), "it is not in RESET");
    assert_eq!(scene.fixture.polled(), [], "the sender may have taken the receive");
    drop(suspended);
    assert_eq!(scene.receiver.modify(&reset), Ok(()));
    scene.receiver.activate(&Port::new(1), 1).unwrap();
}

/// Each waits as long as any does for a lock: two seconds.
#[test]
fn x07_nobody_takes_receives_of_which_it_is_not_known_whether_they_have_completed() {
    let Scene { fixture, receiver, .. } = Scene::new();
    let (device, slot) = (fixture.device, fixture.slot(&receiver));
    assert!(slot.receive_lock.try_enter(DEAD));
    let wc = Wc::new(1, WcStatus::SUCCESS, receiver.number());
    fixture.dies_pushing(&wc, tag::of_recv(Position::new(1)));
    // Somebody who lives has inherited it, and is stopped before it has settled anything.
    let lock = &device.completions.cq(fixture.cq.handle.queue.index).fanin.lock;
    assert!(lock.inherit(DEAD, device.shm.me));
    for _ in 0..2 {
        assert!(in_flight::take_receives(device.engine, slot).is_err());
        assert_eq!((slot.receive_lock.holder(), slot.recv.completed().get()), (None, 0));
    }
    // It dies over this.
    lock.leave();
    assert!(lock.try_enter(DEAD));
    assert!(in_flight::take_receives(device.engine, slot).is_ok());
    assert_eq!(slot.recv.completed(), Position::new(1));
}

#[test]
fn q07_a_datagram_is_judged_by_the_queue_key_of_the_instant_at_which_it_is_taken() {
    let mut scene = Scene::new();
    let (device, number, lock) = (scene.fixture.device, scene.receiver.number(), scene.lock());
    let Scene { sender, receiver, ah, .. } = &mut scene;
    // As if another one had been waited for: who goes on to the lock forgets that.
    let stuck = &device.engine.own(receiver.index()).stuck;
    sync::store(stuck, u32::MAX);
    let another = device.memory.lock(lock, || {}).unwrap();
    thread::scope(|scope| {
        let sends = scope.spawn(|| send(sender, ah, number, 1));
        until("it has looked, and waits", || sync::load(stuck) == 0);
        receiver.modify(&QpAttr::new().state(QpState::RTS).qkey(2)).unwrap();
        drop(another);
        until("it is through", || sends.is_finished());
    });
    assert_eq!(scene.fixture.polled(), [], "it had the key that was");
}

#[test]
fn x07_a_datagram_is_lost_while_the_receiver_writes_for_a_dead_sender() {
    let mut scene = Scene::new();
    let is_through = copier::carry_out_for(scene.fixture.device.memory, ANOTHER);
    assert!(scene.lock().try_enter(DEAD));
    for _ in 0..2 {
        scene.send(1);
        assert_eq!(scene.fixture.polled(), [], "it would be written to by both");
    }
    is_through();
    until("a datagram arrives", || {
        scene.send(1);
        !scene.fixture.polled().is_empty()
    });
}

#[test]
fn x03_a_receive_that_a_dead_sender_had_completed_is_not_taken_again() {
    let mut scene = Scene::new();
    assert!(scene.lock().try_enter(DEAD));
    let wc =
        Wc::poisoned(Failed::new(1, WcStatus::LOC_PROT_ERR, scene.receiver.number(), 0).unwrap());
    scene.fixture.dies_pushing(&wc, tag::of_recv(Position::new(1)));
    scene.send(1);
    assert!(scene.fixture.polled().into_iter().map(|(id, _)| id).eq([1, 2]));
}

#[test]
fn q09_a_shared_receive_is_given_back_whose_process_does_not_answer() {
    let Scene { fixture, mut sender, ah, .. } = Scene::new();
    let (device, mut srq) = (fixture.device, fixture.srq(1));
    let receiver = fixture.datagrams_of(&fixture.init(QpType::UD).srq(&srq));
    // Memory of a process that is gone, and nobody has swept up after it.
    let (index, generation) = device.memory.mrs.claim(ANOTHER).unwrap();
    let (key, domain) = (Key::of(index, 6), fixture.pd.domain.number);
    let (base, len, access) = (1 << 20, 64, Access::LOCAL_WRITE);
    let entry = RegionEntry { key, access, domain, kind: Kind::Heap, base, len, bound: None };
    entry.write(device.memory.mrs.at(index), (ANOTHER, generation));
    let sge = Sge { addr: base, length: len as u32, lkey: key.get() };
    srq.post_recv(&[RecvWr::new(1, &[sge])]).unwrap();
    send(&mut sender, &ah, receiver.number(), 1);
    let engine = device.engine;
    let pool = pool_of(engine, engine.srq(SrqNumber::new(srq.number()))).unwrap();
    assert!(pool.taken().next().is_none(), "nobody is at it any more");
    let again = pool.take(device.shm.attachment(), receiver.qpn()).expect("it is the next again");
    pool.settle(again.tag(), again.target());
}

#[test]
fn n06_each_receiver_is_woken_of_datagrams_that_are_carried_out_together() {
    let Scene { fixture, mut sender, ah, .. } = Scene::new();
    let region = fixture.region(64);
    let sges = [region.sge(..64).unwrap()];
    let mut channel = fixture.context.create_channel().unwrap();
    let mut cqs = [(); 2].map(|()| fixture.context.cq(4).channel(&channel).create().unwrap());
    let engine = fixture.device.engine;
    let ownership = engine.ownership(sender.index());
    ownership.seize();
    let receivers = cqs.each_mut().map(|cq| {
        let init = fixture.pd.qp(cq).qp_type(QpType::UD);
        let mut receiver = fixture.datagrams_of(&init);
        receiver.post_recv(&[RecvWr::new(1, &sges)]).unwrap();
        assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
        send(&mut sender, &ah, receiver.number(), 1);
        receiver
    });
    ownership.abandon();
    send_queue::run(engine, sender.index());
    let events = [(); 3].map(|()| channel.take_event().unwrap());
    assert_eq!(events, [Some(cqs[0].key()), Some(cqs[1].key()), None]);
    drop(receivers);
}
