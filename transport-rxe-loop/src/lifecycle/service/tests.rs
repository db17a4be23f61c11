use super::*;
use crate::completion::channel::{EventChannel, Source};
use crate::inside::prelude::*;
use crate::memory::region::{Kind, RegionEntry};
use crate::protocol::number::SrqIndex;

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn x03_the_thread_is_there_once_a_queue_pair_may_be_reached_by_others() {
    let fixture = Fixture::new();
    let watches = || fixture.device.shm.thread.is_started();
    // Its index is 0, as is the destination that nobody names.
    fixture.device.engine.qps.go_on_at(QpIndex::new(0));
    let mut ud = fixture.create(&fixture.init(QpType::UD));
    let _rc = fixture.own_peer();
    assert!(!watches(), "it is its own peer");
    ud.activate(&Port::new(1), 1).unwrap();
    assert!(watches(), "anybody can send to it");

    let fixture = Fixture::new();
    let watches = || fixture.device.shm.thread.is_started();
    let mut rc = fixture.qp();
    rc.modify(&QpAttr::init(&Port::new(1), Access::empty())).unwrap();
    assert!(!watches(), "it is not connected");
    rc.modify(&QpAttr::rtr(&Port::new(1), &Endpoint::new(rc.number() + 1))).unwrap();
    assert!(watches(), "that is not its own");
}

/// What the thread does when it is time to look after others, without it: how long there is nothing to do, and
/// whether it will look at them again.
fn look(device: &'static Device) -> (Option<Duration>, bool) {
    let mut watch = Some(0);
    let left = device.watch(&mut watch);
    (left, watch.is_some())
}

#[test]
fn x03_others_are_looked_after_as_long_as_there_are_any() {
    let (_context, device) = OpenOptions::new().alone();
    let alarms = &device.engine.alarms;
    assert_eq!(look(device), (None, false), "there is nobody else");
    let in_an_hour = alarms.now() + HOUR.as_nanos() as u64;
    assert!(alarms.set(QpIndex::new(0), in_an_hour));
    device.shm.die_at(ANOTHER);
    let sweeping = device.shm.try_lock(device.shm.frees()).unwrap();
    let (left, again) = look(device);
    drop(sweeping);
    assert!(again && left <= Some(WATCH), "somebody died, and another one sweeps: {left:?}");
    let (left, again) = look(device);
    assert!(!again && left > Some(HOUR / 2), "there is nothing but the alarm: {left:?}");
}

#[test]
fn x05_what_another_process_deregistered_is_looked_at_until_it_is_forgotten() {
    let (_context, device) = OpenOptions::new().alone();
    let (index, generation) = device.memory.mrs.claim(ANOTHER).unwrap();
    let (slot, key, domain) = (device.memory.mrs.at(index), Key::of(index, 6), 1);
    let (access, kind) = (Access::empty(), Kind::Heap);
    let entry = RegionEntry { key, access, domain, kind, base: 0, len: 64, bound: None };
    entry.write(slot, (ANOTHER, generation));
    let in_flight = InFlight::default();
    let copies = copy_guard(device, &in_flight, 0);
    assert!(copies.knows(KeyUser::local(domain), key, Access::empty()));
    RegionEntry::erase(slot);
    assert!(look(device).1, "somebody may copy to it");
    drop(copies);
    assert_eq!(look(device), (None, false));
}

#[test]
fn x06_a_channel_that_another_process_could_not_ring_is_rung() {
    let (_context, device) = OpenOptions::new().alone();
    let channel = EventChannel::new(device.completions).unwrap();
    let source = Source::Srq(SrqIndex::new(5));
    channel.attach(source);
    channel.park(source);
    let calls = || sync::load(device.shm.calls().unwrap());
    let before = calls();
    device.shm.watch().unwrap();
    assert_ne!(calls(), before, "the thread is woken");
    until("it is rung", || channel.block(Some(Instant::now())) == Ok(Woken::Event));
}

#[test]
fn n12_an_event_is_held_back_no_longer_though_nothing_else_is_to_be_done_for_an_hour() {
    let (context, device) = OpenOptions::new().alone();
    let mut channel = context.create_channel().unwrap();
    let mut cq = context.cq(4).channel(&channel).create().unwrap();
    let mut qp = context.alloc_pd().unwrap().qp(&cq).create().unwrap();
    qp.connect_to(qp.number()).unwrap();
    let alarms = &device.engine.alarms;
    let in_an_hour = alarms.now() + HOUR.as_nanos() as u64;
    alarms.wake_at(device.engine.qps.index(qp.number()), in_an_hour).unwrap();
    cq.moderate(100, 20_000).unwrap();
    let _armed = cq.arm(Notify::Next).unwrap();
    qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    until("it is raised", || channel.take_event().unwrap() == Some(cq.key()));
}
