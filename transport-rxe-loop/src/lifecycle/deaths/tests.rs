use super::*;
use crate::completion::channel::{EventChannel, Source};
use crate::engine::entry::{QpSlot, SrqSlot};
use crate::engine::recovery::QueuePairs;
use crate::engine::srq;
use crate::inside::prelude::*;
use crate::protocol::life::Life;
use crate::protocol::mode::CqFlag;
use crate::protocol::pool::Queue;
use crate::shm::arena::Extent;

/// A queue pair of one who will die, which has a number.
fn its_queue_pair(device: &'static Device) -> (&'static QpSlot, QpIndex, QpNumber) {
    let qps = &device.engine.qps;
    let (index, generation) = qps.claim(ANOTHER).unwrap();
    let number = identity::number_of(qps, index, generation);
    identity::enter(&qps.at(index).identity, number);
    (qps.at(index), index, number)
}

/// Whose an entry is, and who of the others is there.
fn left(device: &'static Device, life: &Life) -> (Option<AttachmentId>, Option<AttachmentKey>) {
    (life.attachment(), device.shm.others().next())
}

#[test]
fn x03_who_waits_for_a_dead_one_is_told_though_its_sweeper_died_over_that() {
    let mut fixture = Fixture::new();
    let (device, mut qp) = (fixture.device, fixture.qp());
    let (slot, index, number) = its_queue_pair(device);
    assert!(identity::change(&slot.identity, identity::read(&slot.identity), QpState::RTR));
    sync::store(device.engine.dest(index), qp.number());
    qp.connect_to(number.get()).unwrap();
    qp.post_send(&[SendWr::send(1, &[])]).unwrap();
    assert_eq!(fixture.polled(), [], "it waits for a receive, for ever");
    // As far as one sweeper got.
    identity::vacate(&slot.identity);
    device.shm.die_at(ANOTHER);
    recover_all(device);
    assert_eq!(fixture.next_wc(), (1, WcStatus::RETRY_EXC_ERR));
    assert_eq!(slot.life().attachment(), None);
}

#[test]
fn x03_who_comes_late_to_a_dead_one_frees_nothing_of_its_successor() {
    let fixture = Fixture::new();
    let device = fixture.device;
    let dead = device.shm.die_at(ANOTHER);
    recover_all(device);
    // The next process with this id has a completion queue, before a survivor that saw the dead one goes on.
    let cqs = &device.completions.cqs;
    let (cq, _) = cqs.claim(ANOTHER).unwrap();
    assert!(after(device.shm, &device.tables, dead));
    assert_eq!(cqs.at(cq).life().attachment(), Some(ANOTHER));
}

#[test]
fn x03_the_locks_of_a_dead_one_are_inherited() {
    let fixture = Fixture::new();
    let (device, qp) = (fixture.device, fixture.qp());
    let locks = [
        &device.completions.cq(fixture.cq.handle.queue.index).fanin.lock,
        &fixture.slot(&qp).receive_lock,
        &device.memory.stripes[3],
        device.shm.allocates(),
    ];
    let dead = device.shm.die_at(ANOTHER);
    assert!(locks.iter().all(|lock| lock.try_enter(dead)));
    recover_all(device);
    assert_eq!(locks.map(|lock| lock.holder()), [None; 4]);
}

#[test]
fn x03_who_needs_a_lock_inherits_that_of_a_dead_process() {
    let mut fixture = Fixture::new();
    let Device { shm, completions, engine, .. } = *fixture.device;
    let (mut srq, fanin) = (fixture.srq(1), &completions.cq(fixture.cq.handle.queue.index).fanin);
    let pool = engine.srq(SrqNumber::new(srq.number())).pool.lock();
    let needs: [(&str, &Lock, &mut dyn FnMut()); 3] = [
        ("moderating", &fanin.lock, &mut || fixture.cq.moderate(2, u16::MAX).unwrap()),
        ("setting a limit", pool, &mut || srq.arm_limit(1).unwrap()),
        ("allocating", shm.allocates(), &mut || drop(Extent::allocate(shm, 1).unwrap())),
    ];
    for (what, lock, need) in needs {
        assert!(lock.try_enter(DEAD));
        need();
        assert_eq!(lock.holder(), None, "{what}");
    }
    assert_eq!(srq.limit().unwrap(), 1);
}

#[test]
fn x03_the_next_process_of_an_attachment_finds_nothing_of_the_dead_one() {
    let (_context, device) = OpenOptions::new().alone();
    let Device { engine, completions, .. } = *device;
    let bell = EventChannel::new(completions).unwrap();
    let (qp, _) = engine.qps.claim(ANOTHER).unwrap();
    let (cq, _) = completions.cqs.claim(ANOTHER).unwrap();
    let (srq, _) = engine.srqs.claim(ANOTHER).unwrap();
    let sources =
        [Source::Completion(cq), Source::Overrun(cq), Source::Srq(srq), Source::Qp(qp, 0)];
    sources.into_iter().for_each(|source| bell.attach(source));
    let slot = engine.qps.at(qp);
    sync::store(&slot.send.posted, 5);
    sync::store(engine.dest(qp), 7);
    // Others would wait for the next in its place, which may never do anything.
    let in_flight = &slot.send.in_flight.poster;
    in_flight.open();
    let word = &device.memory.stages.at(0).head.word;
    word.claim(ANOTHER, device.shm.attachment()).unwrap();
    device.shm.die_at(ANOTHER);
    recover_all(device);
    assert_eq!(word.seen().state(), None);
    assert!(sources.into_iter().all(|source| source.node(completions).channel().is_none()));
    let send = [slot.send.done().get(), slot.send.freed().get()];
    assert_eq!((send, sync::load(engine.dest(qp))), ([5; 2], 0));
    assert!(!ChangeFence::after_change().is_open(in_flight));
}

#[test]
fn x03_what_a_dead_one_had_stays_while_somebody_is_in_the_middle_of_a_request_for_it() {
    let fixture = Fixture::new();
    let (device, mut qp) = (fixture.device, fixture.qp());
    let (slot, index, number) = its_queue_pair(device);
    sync::store(device.engine.dest(index), qp.number());
    qp.connect_to(number.get()).unwrap();
    let (in_flight, ownership) =
        (&fixture.slot(&qp).send.in_flight.owner, device.engine.ownership(qp.index()));
    ownership.seize();
    in_flight.open();
    let dead = device.shm.die_at(ANOTHER);
    let mut found = Vec::new();
    for _ in 0..3 {
        look(device);
        found.push((left(device, slot.life()), identity::read(&slot.identity).number()));
    }
    in_flight.close();
    ownership.abandon();
    // Its number is gone, so that nobody else begins one.
    assert_eq!(found, [((Some(ANOTHER), Some(dead)), QpNumber::NONE); 3]);
    recover_all(device);
    assert_eq!(slot.life().attachment(), None);
}

#[test]
fn x03_a_late_recovery_leaves_the_next_process_alone() {
    let (_context, device) = OpenOptions::new().alone();
    let (slot, _, number) = its_queue_pair(device);
    let (cq, _) = device.completions.cqs.claim(ANOTHER).unwrap();
    assert!(!QueuePairs(device.engine).revoke(DEAD), "another one lives there");
    assert_eq!(identity::read(&slot.identity).number(), number);
    let (next, swept) = (device.shm.die_at(ANOTHER), AttachmentKey::new(ANOTHER.get(), 1000));
    assert_ne!(next, swept);
    after(device.shm, &device.tables, swept);
    assert_eq!(device.completions.cq(cq).life().attachment(), Some(ANOTHER));
}

#[test]
fn x03_what_a_dead_one_had_is_there_for_who_needs_it() {
    let limits = Limits::default().completion_queues(1);
    let (context, device) = OpenOptions::new().limits(limits).alone();
    device.completions.cqs.claim(ANOTHER).unwrap();
    device.shm.die_at(ANOTHER);
    context.cq(4).create().unwrap();
}

/// A shared receive queue with one receive, of one who will die.
fn pool(device: &'static Device) -> (&'static SrqSlot, Queue<'static>, Extent) {
    let srqs = &device.engine.srqs;
    let (index, generation) = srqs.claim(ANOTHER).unwrap();
    let (slot, extent) = (srqs.at(index), Extent::allocate(device.shm, srq::bytes(1)).unwrap());
    sync::store(&slot.slots_at, extent.offset());
    sync::store(&slot.capacity, 1);
    slot.pool.begin();
    sync::release(&slot.number, identity::number_of(srqs, index, generation));
    let queue = srq::queue(device.engine, slot).unwrap();
    queue.put(0, Position::new(0));
    assert!(!queue.post(Position::new(1)), "nobody waits");
    (slot, queue, extent)
}

#[test]
fn x03_a_shared_receive_queue_of_a_dead_one_stays_while_others_take_or_have_something_of_it() {
    let (_context, device) = OpenOptions::new().alone();
    let (slot, queue, _extent) = pool(device);
    let taken = queue.take(device.shm.attachment(), QpNumber::new(1)).unwrap();
    let dead = device.shm.die_at(ANOTHER);
    let stays = || {
        look(device);
        assert_eq!(left(device, slot.life()), (Some(ANOTHER), Some(dead)));
    };
    (0..3).for_each(|_| stays());
    let suspended = device.memory.lock(slot.pool.lock(), || {}).unwrap();
    queue.settle(taken.tag(), taken.target());
    stays();
    drop(suspended);
    recover_all(device);
    assert_eq!((slot.life().attachment(), sync::load(&slot.number)), (None, 0));
}

/// Somebody dies while this process watches over others, as one does that is connected to another.
fn die_watched(device: &'static Device) {
    device.shm.die_at(ANOTHER);
    device.shm.watch().unwrap();
}

#[test]
fn n06_who_sleeps_is_woken_after_a_death_though_there_may_be_nothing() {
    let Fixture { context, device, .. } = Fixture::new();
    let mut channel = context.create_channel().unwrap();
    let cqs = [(); 3].map(|()| context.cq(4).channel(&channel).create().unwrap());
    die_watched(device);
    let mut woken = Vec::new();
    until("everybody is told", || {
        woken.extend(channel.take_event().unwrap());
        cqs.iter().all(|cq| woken.contains(&cq.key()))
    });
}

#[test]
fn o04_an_overrun_that_a_dead_one_told_nobody_of_is_told() {
    let mut fixture = Fixture::new();
    let qp = fixture.own_peer();
    let queue = fixture.device.completions.cq(fixture.cq.handle.queue.index);
    queue.mode.set(CqFlag::Overran, true);
    assert_eq!((fixture.told(), qp.state().unwrap()), (None, QpState::RTS));
    die_watched(fixture.device);
    let mut told = Vec::new();
    until("it is told, and its queue pair fails", || {
        told.extend(fixture.told());
        told.len() == 2
    });
    told.sort_by_key(|event| event.0);
    assert_eq!(told, [AsyncEventType::CQ_ERR, AsyncEventType::QP_FATAL]);
    assert_eq!(qp.state().unwrap(), QpState::ERR);
}

#[test]
fn x03_a_queue_pair_that_a_dead_one_had_failed_is_flushed() {
    let mut fixture = Fixture::new();
    let mut qp = fixture.own_peer();
    qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    // As far as the dead one got.
    assert!(identity::fail(&fixture.slot(&qp).identity, qp.qpn()));
    assert_eq!(fixture.polled(), []);
    die_watched(fixture.device);
    assert_eq!(fixture.next_wc(), (1, WcStatus::WR_FLUSH_ERR));
}
