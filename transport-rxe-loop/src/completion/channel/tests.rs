use std::collections::BTreeSet;
use std::thread;

use rustix::io::read;

use super::*;
use crate::api::open::OpenOptions;
use crate::inside::actor::Waiting;
use crate::api::limits::Limits;

#[test]
fn every_source_has_a_number_and_a_node_of_its_own() {
    let (_context, fabric) = OpenOptions::new().alone();
    let all = (0..count(fabric.completions)).map(|number| (number, Source::from_number(number, fabric.completions)));
    let mut nodes = BTreeSet::new();
    for (number, source) in all {
        assert_eq!(source.to_number(fabric.completions), number, "{source:?}");
        assert!(nodes.insert(std::ptr::from_ref(source.node(fabric.completions))), "{source:?}");
    }
    let (cqs, srqs) = (fabric.completions.cqs().len(), fabric.engine.srqs().len());
    let qps = fabric.engine.qps().len();
    for source in [
        Source::Completion(cqs - 1),
        Source::Overrun(0),
        Source::Srq(srqs - 1),
        Source::Qp(0, 0),
        Source::Qp(qps - 1, KINDS - 1),
    ] {
        assert_eq!(Source::from_number(source.to_number(fabric.completions), fabric.completions), source);
    }
}

#[test]
fn x04_every_number_is_a_source() {
    let (_context, fabric) = OpenOptions::new().alone();
    for number in [count(fabric.completions), 1 << 31, u32::MAX, u32::MAX - 1] {
        let source = Source::from_number(number, fabric.completions);
        assert_eq!(source.to_number(fabric.completions), number % count(fabric.completions));
    }
}

fn is_readable(bell: &EventChannel) -> bool {
    bell.block(Some(Instant::now())) == Ok(Woken::Event)
}

#[test]
fn x03_an_event_that_a_dead_one_counted_and_did_not_tell_is_told() {
    let (_context, fabric) = OpenOptions::new().alone();
    let (bell, source) = (EventChannel::new(fabric.completions).unwrap(), Source::Srq(5));
    bell.attach(source);
    remark(fabric.completions);
    assert!(!is_readable(&bell), "there is nothing to tell");
    // As one leaves it that died before it wrote the descriptor.
    let _unwritten = bell.events().raise(source.to_number(fabric.completions), || true);
    assert!(!is_readable(&bell));
    remark(fabric.completions);
    assert!(is_readable(&bell));
    assert_eq!(bell.take(|source| source), Ok(Some(source)));
    assert!(!is_readable(&bell));
}

#[test]
fn x03_a_new_channel_has_nothing_of_a_dead_one() {
    for looks in [false, true] {
        let (_context, fabric) =
            OpenOptions::new().limits(Limits { channels: 2, ..Limits::default() }).alone();
        let index = (0..2)
            .find(|&index| fabric.completions.channel(index).life().place().is_none())
            .unwrap();
        let source = Source::Srq(5).to_number(fabric.completions);
        events(fabric.completions, index).attach(source);
        let unwritten = events(fabric.completions, index).raise(source, || true).unwrap();
        events(fabric.completions, index).written(unwritten);
        sync::release(&fabric.completions.channel(index).unsignaled, 1);
        Source::Srq(5).node(fabric.completions).forget();
        let bell = EventChannel::new(fabric.completions).unwrap();
        assert_eq!(bell.index, index);
        signal_unsignaled(fabric.completions);
        assert!(!is_readable(&bell));
        if looks {
            assert_eq!(bell.take(|source| source), Ok(None));
        }
        bell.attach(Source::Srq(6));
        raise(fabric.completions, Source::Srq(6), || true);
        assert!(is_readable(&bell));
    }
}

#[test]
fn n07_a_source_is_attached_while_nobody_takes_events() {
    let (_context, fabric) = OpenOptions::new().alone();
    let bell = EventChannel::new(fabric.completions).unwrap();
    let taking = bell.collected();
    thread::scope(|scope| {
        let attaches = Waiting::new(scope, || bell.attach(Source::Srq(5)));
        assert!(attaches.has_to_wait());
        drop(taking);
        attaches.join().unwrap();
    });
}

#[test]
fn nobody_keeps_the_descriptor_of_a_channel_that_has_ended() {
    let (_context, fabric) = OpenOptions::new().alone();
    let bell = EventChannel::new(fabric.completions).unwrap();
    let fd = Arc::downgrade(&bell.fd);
    drop(bell);
    assert_eq!(fd.strong_count(), 0);
}

#[test]
fn n09_the_descriptor_is_written_for_the_first_of_several_events() {
    let (_context, fabric) = OpenOptions::new().alone();
    let (bell, source) = (EventChannel::new(fabric.completions).unwrap(), Source::Srq(5));
    bell.attach(source);
    for _ in 0..3 {
        raise(fabric.completions, source, || true);
    }
    assert_eq!(read(&bell.fd, &mut [0; 4]), Ok(1));
}

#[test]
fn n09_the_owner_is_called_to_ring_what_can_not_be_opened() {
    let (_context, fabric) = OpenOptions::new().alone();
    let (bell, source) = (EventChannel::new(fabric.completions).unwrap(), Source::Srq(5));
    bell.attach(source);
    // As a process finds it that has never rung this one, and may open no more.
    fabric.completions.fifos.forget(bell.index);
    remove(fabric.completions, bell.index);
    let calls = fabric.shm.calls().unwrap();
    let before = sync::load(calls);
    raise(fabric.completions, source, || true);
    assert!(!is_readable(&bell));
    assert_ne!(sync::load(calls), before);
    let (_, generation) = fabric.completions.channel(bell.index).life().holder().unwrap();
    fabric.completions.fifos.keep(bell.index, generation, Arc::clone(&bell.fd));
    signal_unsignaled(fabric.completions);
    assert!(is_readable(&bell));
}

#[test]
fn n09_what_another_process_could_not_ring_is_rung_once() {
    let (_context, fabric) = OpenOptions::new().alone();
    let (bell, other) = (EventChannel::new(fabric.completions).unwrap(), EventChannel::new(fabric.completions).unwrap());
    sync::release(&fabric.completions.channel(bell.index).unsignaled, 1);
    signal_unsignaled(fabric.completions);
    assert!(is_readable(&bell) && !is_readable(&other));
    fifo::empty(&bell.fd);
    signal_unsignaled(fabric.completions);
    assert!(!is_readable(&bell));
}

#[test]
fn a_channel_without_a_descriptor_takes_no_place() {
    let (_context, fabric) =
        OpenOptions::new().limits(Limits { channels: 2, ..Limits::default() }).alone();
    let index =
        (0..2).find(|&index| fabric.completions.channel(index).life().place().is_none()).unwrap();
    // What is no FIFO, and can't be removed as one is.
    let path = fabric.shm.path().bell(index);
    std::fs::create_dir(&path).unwrap();
    for _ in 0..2 {
        let refused = EventChannel::new(fabric.completions).map(|_| ());
        assert!(matches!(refused, Err(CreateError::NoDescriptor { .. })), "{refused:?}");
    }
    std::fs::remove_dir(&path).unwrap();
    EventChannel::new(fabric.completions).unwrap();
}
