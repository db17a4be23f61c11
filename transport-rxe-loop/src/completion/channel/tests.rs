use std::collections::BTreeSet;

use super::source::KINDS;
use super::*;
use crate::inside::prelude::*;
use crate::protocol::channel::{Token, Unwritten};
use crate::protocol::number::{CqIndex, QpIndex, SrqIndex};

mod torn;

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

    /// Counts an event, as a process leaves it that dies then.
    fn count(&self) {
        let events = self.channel.events();
        let number = self.source.to_number(self.completions);
        events.raise(number, || true, &Void).unwrap();
    }
}

/// Takes tokens and has none.
struct Void;

impl Pipe for Void {
    fn write(&self, _: Token) -> Result<(), Unwritten> {
        Ok(())
    }

    fn read(&self) -> Option<Token> {
        None
    }

    fn len(&self) -> usize {
        0
    }

    fn wait(&self, _: u32) -> bool {
        false
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
        (completions.cqs.len(), device.engine.srqs.len(), device.engine.qps.len());
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
    recover(completions);
    assert!(!scene.is_readable(), "there is nothing to tell");
    scene.count();
    assert!(!scene.is_readable());
    recover(completions);
    for _ in 0..2 {
        assert!(scene.is_readable());
        assert_eq!(channel.take(|source| source), Ok(Some(source)));
        assert!(!scene.is_readable());
        scene.raise();
        recover(completions);
    }
    assert_eq!(channel.take(|source| source), Ok(Some(source)));
    assert_eq!(channel.take(|source| source), Ok(None), "what is written is not written again");
}

#[test]
fn x03_the_owner_is_called_to_tell_what_a_dead_one_did_not() {
    let scene = Scene::new();
    let (channel, completions) = (&scene.channel, scene.completions);
    let slot = completions.channels.at(channel.index);
    scene.count();
    // As another process finds it.
    let owned = sync::lock(&completions.registered).remove(&channel.index).unwrap();
    recover(completions);
    assert!(!scene.is_readable());
    sync::lock(&completions.registered).insert(channel.index, owned);
    call(completions, channel.index, UNSURE);
    call(completions, channel.index, PARKED);
    signal_pending(completions);
    assert!(scene.is_readable());
    assert_eq!(sync::load(&slot.owed), 0);
}

#[test]
fn x03_nothing_is_restored_for_a_channel_that_has_ended() {
    let scene = Scene::new();
    let (completions, index) = (scene.completions, scene.channel.index);
    let owned = Arc::clone(&sync::lock(&completions.registered)[&index]);
    let is_there = || lock_registered(completions, index, &owned).is_some();
    assert!(is_there());
    // Another one comes to the index.
    sync::lock(&completions.registered).insert(index, Arc::default());
    assert!(!is_there());
    sync::lock(&completions.registered).remove(&index);
    assert!(!is_there());
}

#[test]
fn x03_a_channel_ends_while_nobody_does_what_is_owed_to_it() {
    let Scene { channel, completions, source, device, _context } = Scene::new();
    channel.detach(source);
    let (index, owned) = (channel.index, Arc::clone(&channel.owned));
    let restoring = sync::lock(&owned);
    waits(
        move || drop(channel),
        || {
            assert!(sync::lock(&completions.registered).contains_key(&index));
            drop(restoring);
        },
    );
    assert!(!sync::lock(&device.completions.registered).contains_key(&index));
}

/// A descriptor that the program has closed, and whose number is another file's by now.
fn closed() -> Arc<KeptFd> {
    let [file, other] = ["/dev/null", "/dev/zero"].map(|path| File::open(path).unwrap());
    let id = (&rustix::fs::fstat(&file).unwrap()).into();
    Arc::new(KeptFd::of(other.into(), id))
}

#[test]
fn n09_a_descriptor_that_the_program_has_closed_is_opened_again_with_its_events() {
    for (is_empty, waits) in [(false, false), (true, false), (true, true)] {
        let scene = Scene::new();
        let Scene { channel, source, completions, .. } = &scene;
        (0..3).for_each(|_| scene.raise());
        assert_eq!(channel.take(|source| source), Ok(Some(*source)));
        completions.fifos.keep(channel.index, channel.generation, closed());
        // What nobody else has open is lost.
        let fifo = Fifo::new(|| Some(Arc::clone(&channel.fd)));
        while is_empty && fifo.read().is_some() {}
        if waits {
            assert!(scene.is_readable());
        }
        let take = || channel.take(|source| source).unwrap();
        assert_eq!([take(), take(), take()], [Some(*source), Some(*source), None]);
        scene.raise();
        assert_eq!([take(), take()], [Some(*source), None]);
    }
}

/// One that takes events alone, each time that the descriptor is readable, while others raise them.
#[test]
fn n14_it_is_readable_while_there_is_an_event_and_no_longer() {
    const EACH: usize = 20_000;
    let scene = Scene::new();
    let Scene { channel, completions, .. } = &scene;
    let completions = *completions;
    let sources = [6, 7].map(|nth| Source::Srq(SrqIndex::new(nth)));
    sources.into_iter().for_each(|source| channel.attach(source));
    let raiser = |source| {
        thread::spawn(move || {
            for _ in 0..EACH {
                raise(completions, source, || true);
                while source.node(completions).unread() > 3 {
                    thread::yield_now();
                }
            }
        })
    };
    let raisers = sources.map(raiser);
    let deadline = Instant::now() + Duration::from_secs(60);
    for nth in 0..2 * EACH {
        assert_eq!(channel.block(Some(deadline)), Ok(Woken::Event));
        assert!(channel.take(|_| ()).unwrap().is_some(), "the {nth}th");
    }
    assert!(!scene.is_readable());
    raisers.into_iter().for_each(|raiser| raiser.join().unwrap());
}

#[test]
fn n14_a_source_that_goes_while_its_events_are_raised_leaves_none() {
    let scene = Scene::new();
    let Scene { channel, completions, .. } = &scene;
    let (completions, source) = (*completions, Source::Srq(SrqIndex::new(6)));
    let is_over = Arc::new(sync::AtomicU32::new(0));
    let ends = Arc::clone(&is_over);
    let raiser = thread::spawn(move || {
        while sync::load(&*ends) == 0 {
            raise(completions, source, || true);
        }
    });
    for _ in 0..2_000 {
        channel.attach(source);
        until("there is an event", || scene.is_readable());
        channel.detach(source);
        assert!(!scene.is_readable());
    }
    sync::store(&*is_over, 1);
    raiser.join().unwrap();
}

/// A device with one free entry for channels, and its index.
fn with_one_free() -> (Context, &'static Completions, ChannelIndex) {
    let limits = Limits::default().channels(2);
    let (context, Device { completions, .. }) = OpenOptions::new().limits(limits).alone();
    let is_free =
        |&index: &ChannelIndex| completions.channels.at(index).life().attachment().is_none();
    let index = [0, 1].map(ChannelIndex::new).into_iter().find(is_free).unwrap();
    (context, completions, index)
}

#[test]
fn x03_a_new_channel_has_nothing_of_a_dead_one() {
    for looks in [false, true] {
        let (_context, completions, index) = with_one_free();
        let [source, other] = [5, 6].map(|nth| Source::Srq(SrqIndex::new(nth)));
        let (its, number) = (events(completions, index), source.to_number(completions));
        its.attach(number, &mut Owned::default());
        its.raise(number, || true, &Fifo::new(|| None)).unwrap_err();
        sync::release(&completions.channels.at(index).owed, PARKED | UNSURE);
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
    let taking = scene.channel.hold();
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
        events(completions, index).attach(source.to_number(completions), &mut Owned::default());
        raise(completions, source, || true);
        source.node(completions).forget();
        (index, fd)
    };
    let end = |(index, _): (ChannelIndex, KeptFd)| {
        remove(completions, index);
        completions.channels.at(index).life().end(ANOTHER);
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
    let (_, generation) = completions.channels.at(channel.index).life().holder().unwrap();
    completions.fifos.keep(channel.index, generation, Arc::clone(&channel.fd));
    let other = EventChannel::new(completions).unwrap();
    signal_pending(completions);
    assert!(scene.is_readable() && !is_readable(&other));
    assert_eq!(channel.take(|source| source), Ok(Some(scene.source)));
    signal_pending(completions);
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
        let exists = |error: &SystemError| error.errno == cq_verbs::setup::Errno::EEXIST;
        assert!(
            matches!(&refused, Err(ChannelError::System(error)) if exists(error)),
            "{refused:?}"
        );
    }
    std::fs::remove_dir(&path).unwrap();
    EventChannel::new(completions).unwrap();
}
