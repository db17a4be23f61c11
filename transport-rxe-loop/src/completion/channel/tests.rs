use std::collections::BTreeSet;

use rustix::io::read;

use super::*;
use crate::inside::prelude::*;

#[test]
fn every_source_has_a_number_and_a_node_of_its_own() {
    let (_context, device) = OpenOptions::new().alone();
    let all = (0..count(device.completions))
        .map(|number| (number, Source::from_number(number, device.completions)));
    let mut nodes = BTreeSet::new();
    for (number, source) in all {
        assert_eq!(source.to_number(device.completions), number, "{source:?}");
        assert!(nodes.insert(std::ptr::from_ref(source.node(device.completions))), "{source:?}");
    }
    let (cqs, srqs) = (device.completions.cqs().len(), device.engine.srqs().len());
    let qps = device.engine.qps().len();
    for source in [
        Source::Completion(CqIndex::new(cqs - 1)),
        Source::Overrun(CqIndex::new(0)),
        Source::Srq(SrqIndex::new(srqs - 1)),
        Source::Qp(QpIndex::new(0), 0),
        Source::Qp(QpIndex::new(qps - 1), KINDS - 1),
    ] {
        assert_eq!(
            Source::from_number(source.to_number(device.completions), device.completions),
            source
        );
    }
}

#[test]
fn x04_every_number_is_a_source() {
    let (_context, device) = OpenOptions::new().alone();
    for number in [count(device.completions), 1 << 31, u32::MAX, u32::MAX - 1] {
        let source = Source::from_number(number, device.completions);
        assert_eq!(source.to_number(device.completions), number % count(device.completions));
    }
}

fn is_readable(channel: &EventChannel) -> bool {
    channel.block(Some(Instant::now())) == Ok(Woken::Event)
}

#[test]
fn x03_an_event_that_a_dead_one_counted_and_did_not_tell_is_told() {
    let (_context, device) = OpenOptions::new().alone();
    let (channel, source) =
        (EventChannel::new(device.completions).unwrap(), Source::Srq(SrqIndex::new(5)));
    channel.attach(source);
    mark_again(device.completions);
    assert!(!is_readable(&channel), "there is nothing to tell");
    // As one leaves it that died before it wrote the descriptor.
    let _unwritten = channel.events().raise(source.to_number(device.completions), || true);
    assert!(!is_readable(&channel));
    mark_again(device.completions);
    assert!(is_readable(&channel));
    assert_eq!(channel.take(|source| source), Ok(Some(source)));
    assert!(!is_readable(&channel));
}

#[test]
fn x03_a_new_channel_has_nothing_of_a_dead_one() {
    for looks in [false, true] {
        let (_context, device) =
            OpenOptions::new().limits(Limits { channels: 2, ..Limits::default() }).alone();
        let index = (0..2)
            .find(|&index| {
                device.completions.channel(ChannelIndex::new(index)).life().attachment().is_none()
            })
            .unwrap();
        let source = Source::Srq(SrqIndex::new(5)).to_number(device.completions);
        events(device.completions, ChannelIndex::new(index)).attach(source);
        let unwritten =
            events(device.completions, ChannelIndex::new(index)).raise(source, || true).unwrap();
        events(device.completions, ChannelIndex::new(index)).written(unwritten);
        sync::release(&device.completions.channel(ChannelIndex::new(index)).unsignaled, 1);
        Source::Srq(SrqIndex::new(5)).node(device.completions).forget();
        let channel = EventChannel::new(device.completions).unwrap();
        assert_eq!(channel.index, ChannelIndex::new(index));
        signal_pending(device.completions);
        assert!(!is_readable(&channel));
        if looks {
            assert_eq!(channel.take(|source| source), Ok(None));
        }
        channel.attach(Source::Srq(SrqIndex::new(6)));
        raise(device.completions, Source::Srq(SrqIndex::new(6)), || true);
        assert!(is_readable(&channel));
    }
}

#[test]
fn n07_a_source_is_attached_while_nobody_takes_events() {
    let (_context, device) = OpenOptions::new().alone();
    let channel = EventChannel::new(device.completions).unwrap();
    let taking = channel.collected();
    thread::scope(|scope| {
        let attaches = Waiting::new(scope, || channel.attach(Source::Srq(SrqIndex::new(5))));
        assert!(attaches.has_to_wait());
        drop(taking);
        attaches.join().unwrap();
    });
}

#[test]
fn nobody_keeps_the_descriptor_of_a_channel_that_has_ended() {
    let (_context, device) = OpenOptions::new().alone();
    let channel = EventChannel::new(device.completions).unwrap();
    let fd = Arc::downgrade(&channel.fd);
    drop(channel);
    assert_eq!(fd.strong_count(), 0);
}

#[test]
fn n09_the_descriptor_is_written_for_the_first_of_several_events() {
    let (_context, device) = OpenOptions::new().alone();
    let (channel, source) =
        (EventChannel::new(device.completions).unwrap(), Source::Srq(SrqIndex::new(5)));
    channel.attach(source);
    for _ in 0..3 {
        raise(device.completions, source, || true);
    }
    assert_eq!(read(&channel.fd, &mut [0; 4]), Ok(1));
}

#[test]
fn n09_the_owner_is_called_to_ring_what_can_not_be_opened() {
    let (_context, device) = OpenOptions::new().alone();
    let (channel, source) =
        (EventChannel::new(device.completions).unwrap(), Source::Srq(SrqIndex::new(5)));
    channel.attach(source);
    // As a process finds it that has never rung this one, and may open no more.
    device.completions.fifos.forget(channel.index);
    remove(device.completions, channel.index);
    let calls = device.shm.calls().unwrap();
    let before = sync::load(calls);
    raise(device.completions, source, || true);
    assert!(!is_readable(&channel));
    assert_ne!(sync::load(calls), before);
    let (_, generation) = device.completions.channel(channel.index).life().holder().unwrap();
    device.completions.fifos.keep(channel.index, generation, Arc::clone(&channel.fd));
    signal_pending(device.completions);
    assert!(is_readable(&channel));
}

#[test]
fn n09_what_another_process_could_not_ring_is_rung_once() {
    let (_context, device) = OpenOptions::new().alone();
    let (channel, other) = (
        EventChannel::new(device.completions).unwrap(),
        EventChannel::new(device.completions).unwrap(),
    );
    sync::release(&device.completions.channel(channel.index).unsignaled, 1);
    signal_pending(device.completions);
    assert!(is_readable(&channel) && !is_readable(&other));
    fifo::empty(&channel.fd);
    signal_pending(device.completions);
    assert!(!is_readable(&channel));
}

#[test]
fn a_channel_without_a_descriptor_takes_no_entry() {
    let (_context, device) =
        OpenOptions::new().limits(Limits { channels: 2, ..Limits::default() }).alone();
    let index = (0..2)
        .find(|&index| {
            device.completions.channel(ChannelIndex::new(index)).life().attachment().is_none()
        })
        .unwrap();
    // What is no FIFO, and can't be removed as one is.
    let path = device.shm.path().fifo(index);
    std::fs::create_dir(&path).unwrap();
    for _ in 0..2 {
        let refused = EventChannel::new(device.completions).map(|_| ());
        assert!(matches!(refused, Err(CreateError::NoDescriptor { .. })), "{refused:?}");
    }
    std::fs::remove_dir(&path).unwrap();
    EventChannel::new(device.completions).unwrap();
}
