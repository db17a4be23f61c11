use std::collections::BTreeSet;

use super::*;
use crate::inside::prelude::*;

/// A channel in a fabric of its own, with a source.
struct Scene {
    channel: EventChannel,
    source: Source,
    completions: &'static Completions,
    device: &'static Device,
    _context: Context,
}

impl Scene {
    fn new() -> Self {
        let (context, device) = OpenOptions::new().alone();
        let completions = device.completions;
        let channel = EventChannel::new(completions).unwrap();
        let source = Source::Srq(SrqIndex::new(5));
        channel.attach(source);
        Self { channel, source, completions, device, _context: context }
    }

    fn raise(&self) {
        raise(self.completions, self.source, || true);
    }

    fn is_readable(&self) -> bool {
        is_readable(&self.channel)
    }
}

fn is_readable(channel: &EventChannel) -> bool {
    channel.block(Some(Instant::now())) == Ok(Woken::Event)
}

#[test]
fn every_source_has_a_number_and_a_node_of_its_own() {
    let Scene { completions, device, .. } = Scene::new();
    let mut nodes = BTreeSet::new();
    for number in 0..count(completions) {
        let source = Source::from_number(number, completions);
        assert_eq!(source.to_number(completions), number, "{source:?}");
        assert!(nodes.insert(std::ptr::from_ref(source.node(completions))), "{source:?}");
    }
    let (cqs, srqs, qps) =
        (completions.cqs().len(), device.engine.srqs().len(), device.engine.qps().len());
    for source in [
        Source::Completion(CqIndex::new(cqs - 1)),
        Source::Overrun(CqIndex::new(0)),
        Source::Srq(SrqIndex::new(srqs - 1)),
        Source::Qp(QpIndex::new(0), 0),
        Source::Qp(QpIndex::new(qps - 1), KINDS - 1),
    ] {
        assert_eq!(Source::from_number(source.to_number(completions), completions), source);
    }
    for number in [count(completions), 1 << 31, u32::MAX, u32::MAX - 1] {
        let source = Source::from_number(number, completions);
        assert_eq!(source.to_number(completions), number % count(completions), "any is one (X4)");
    }
}

#[test]
fn x03_an_event_that_a_dead_one_counted_and_did_not_tell_is_told() {
    let scene = Scene::new();
    let (channel, source, completions) = (&scene.channel, scene.source, scene.completions);
    mark_again(completions);
    assert!(!scene.is_readable(), "there is nothing to tell");
    // As one leaves it that died before it wrote the descriptor.
    let _unwritten = channel.events().raise(source.to_number(completions), || true);
    assert!(!scene.is_readable());
    mark_again(completions);
    assert!(scene.is_readable());
    assert_eq!(channel.take(|source| source), Ok(Some(source)));
    assert!(!scene.is_readable());
}

/// A device with one free entry for channels, and its index.
fn with_one_free() -> (Context, &'static Completions, ChannelIndex) {
    let limits = Limits { channels: 2, ..Limits::default() };
    let (context, Device { completions, .. }) = OpenOptions::new().limits(limits).alone();
    let is_free = |&index: &ChannelIndex| completions.channel(index).life().attachment().is_none();
    let index = [0, 1].map(ChannelIndex::new).into_iter().find(is_free).unwrap();
    (context, completions, index)
}

#[test]
fn x03_a_new_channel_has_nothing_of_a_dead_one() {
    for looks in [false, true] {
        let (_context, completions, index) = with_one_free();
        let [source, other] = [5, 6].map(|nth| Source::Srq(SrqIndex::new(nth)));
        let (its, number) = (events(completions, index), source.to_number(completions));
        its.attach(number, &mut Collected::default());
        its.written(its.raise(number, || true).unwrap());
        sync::release(&completions.channel(index).unsignaled, 1);
        source.node(completions).forget();
        let channel = EventChannel::new(completions).unwrap();
        assert_eq!(channel.index, index);
        signal_pending(completions);
        assert!(!is_readable(&channel));
        if looks {
            assert_eq!(channel.take(|source| source), Ok(None));
        }
        channel.attach(other);
        raise(completions, other, || true);
        assert!(is_readable(&channel));
    }
}

#[test]
fn n07_a_source_is_attached_while_nobody_takes_events() {
    let scene = Scene::new();
    let taking = scene.channel.collected();
    waits(|| scene.channel.attach(Source::Srq(SrqIndex::new(6))), || drop(taking));
}

#[test]
fn nobody_keeps_the_descriptor_of_a_channel_that_has_ended() {
    let scene = Scene::new();
    let fd = Arc::downgrade(&scene.channel.fd);
    drop(scene.channel);
    assert_eq!(fd.strong_count(), 0);
}

/// The descriptors of this process that are FIFOs of a fabric.
fn open_fifos(completions: &Completions) -> usize {
    let prefix = format!("{}.fifo.", completions.shm.path().file().display());
    let fds = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with(&prefix)).count()
}

#[test]
fn n06_the_descriptor_of_another_process_s_channel_is_closed_once_that_has_ended() {
    let Scene { channel, device, completions, .. } = &Scene::new();
    let source = Source::Srq(SrqIndex::new(6));
    // One stays, and keeps its descriptor.
    let ring_another = || {
        let (index, _) = completions.channels.claim(ANOTHER).unwrap();
        let fd = fifo::make(&completions.shm.path().fifo(index.get())).unwrap();
        events(completions, index).begin();
        events(completions, index).attach(source.to_number(completions), &mut Collected::default());
        raise(completions, source, || true);
        source.node(completions).forget();
        (index, fd)
    };
    let end = |(index, _): (ChannelIndex, KeptFd)| {
        remove(completions, index);
        completions.channel(index).life().end(ANOTHER);
    };
    let (_stays, before) = (ring_another(), open_fifos(completions));
    assert_eq!(
        before, 4,
        "of this process' channel, of its asynchronous events, and two ends of another one"
    );
    for _ in 0..100 {
        end(ring_another());
        assert!(open_fifos(completions) <= before + 1);
    }
    deaths::look(device);
    assert_eq!(open_fifos(completions), before);
    raise(completions, Source::Srq(SrqIndex::new(5)), || true);
    assert!(is_readable(channel));
}

#[test]
fn n09_the_owner_is_called_to_ring_what_can_not_be_opened() {
    let scene = Scene::new();
    let (channel, completions, shm) = (&scene.channel, scene.completions, scene.device.shm);
    // As a process finds it that has never rung this one, and may open no more.
    completions.fifos.forget(channel.index);
    remove(completions, channel.index);
    let calls = shm.calls().unwrap();
    let before = sync::load(calls);
    scene.raise();
    assert!(!scene.is_readable());
    assert_ne!(sync::load(calls), before);
    let (_, generation) = completions.channel(channel.index).life().holder().unwrap();
    completions.fifos.keep(channel.index, generation, Arc::clone(&channel.fd));
    signal_pending(completions);
    assert!(scene.is_readable());
}

#[test]
fn n09_what_another_process_could_not_ring_is_rung_once() {
    let scene = Scene::new();
    let other = EventChannel::new(scene.completions).unwrap();
    sync::release(&scene.completions.channel(scene.channel.index).unsignaled, 1);
    signal_pending(scene.completions);
    assert!(scene.is_readable() && !is_readable(&other));
    fifo::empty(scene.channel.fd.unchecked());
    signal_pending(scene.completions);
    assert!(!scene.is_readable());
}

#[test]
fn a_channel_without_a_descriptor_takes_no_entry() {
    let (_context, completions, index) = with_one_free();
    // What is no FIFO, and can't be removed as one is.
    let path = completions.shm.path().fifo(index.get());
    std::fs::create_dir(&path).unwrap();
    for _ in 0..2 {
        let refused = EventChannel::new(completions).map(|_| ());
        let exists = |error: &SystemError| error.errno == cq_core::setup::Errno::EEXIST;
        assert!(
            matches!(&refused, Err(ChannelError::System(error)) if exists(error)),
            "{refused:?}"
        );
    }
    std::fs::remove_dir(&path).unwrap();
    EventChannel::new(completions).unwrap();
}
