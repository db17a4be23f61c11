//! A channel's list under a lock whose holder may be killed at any step: no event is lost, and while some
//! wait the descriptor is readable (N9). Who is killed as it leaves the channel may leave its events, until
//! somebody has it leave again (N7).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool as Unseen, Ordering::SeqCst};

use loom::thread;
use transport_rxe_loop::protocol::channel::{EventNode, Events};
use transport_rxe_loop::protocol::list::List;
use transport_rxe_loop::protocol::lock::{Lock, Owner};
use transport_rxe_loop::sync::{Site, death};
use verify_loom::harness::{Model, model};
use verify_loom::mortal::{Mortal, VICTIM};

const LOST: &str = "lost or doubled";
const SILENT: &str = "events wait, and the descriptor is not readable";
const CHANNEL: u32 = 5;
const SOURCES: u32 = 3;
const SURVIVOR: Owner = Owner::new(1, 1);
const READER: Owner = Owner::new(2, 1);

#[derive(Default)]
struct Channel {
    lock: Lock,
    list: List,
    nodes: [EventNode; SOURCES as usize],
    /// The descriptor. Loom does not see it: the system keeps it.
    readable: Unseen,
    victim: Mortal,
}

impl Channel {
    /// All sources come here.
    fn new() -> Arc<Self> {
        let channel = Self::default();
        (0..SOURCES).for_each(|source| channel.events().attach(source));
        Arc::new(channel)
    }

    fn events<'a>(&'a self) -> Events<'a, impl Fn(u32) -> &'a EventNode> {
        Events::new(&self.list, CHANNEL, SOURCES, |source| &self.nodes[source as usize])
    }

    fn enter(&self, me: Owner) {
        if self.victim.enter(&self.lock, me) {
            self.ring_if(self.events().rebuild(0..SOURCES));
        }
    }

    fn leave(&self) {
        self.victim.leave(&self.lock);
    }

    fn ring_if(&self, asked: bool) {
        if asked && death::step() {
            self.readable.store(true, SeqCst);
        }
    }

    fn hush_if_empty(&self) {
        if self.events().is_empty() && death::step() {
            self.readable.store(false, SeqCst);
        }
    }

    fn raise(&self, source: u32) {
        self.ring_if(self.events().raise(source));
        self.leave();
    }

    fn detach(&self, source: u32) {
        self.events().detach(source);
        self.hush_if_empty();
        self.leave();
    }

    fn take(&self) -> Option<u32> {
        self.enter(READER);
        let taken = self.events().take();
        self.hush_if_empty();
        self.leave();
        taken
    }

    /// What is done for a process that is dead.
    fn sweep(&self) {
        self.enter(READER);
        let is_told = self.events().is_empty() || self.readable.load(SeqCst);
        assert!(is_told, "{SILENT}");
        self.leave();
    }

    /// Counts the events that were taken, and those that are left, by their sources.
    fn drain(&self, taken: Vec<u32>) -> [usize; SOURCES as usize] {
        let mut all = taken;
        all.extend(std::iter::from_fn(|| self.take()).take(10));
        assert!(!self.readable.load(SeqCst) || self.events().is_empty(), "{SILENT}");
        std::array::from_fn(|source| all.iter().filter(|&&taken| taken == source as u32).count())
    }
}

/// The victim has the lock, does its part, and is killed at a step of it; or after it. Meanwhile the survivor
/// raises an event of `source`, and the reader takes one, if there is any.
fn race(
    channel: &Arc<Channel>,
    source: u32,
    step: u32,
    part: impl FnOnce(&Channel) + Send + 'static,
) -> Vec<u32> {
    channel.enter(VICTIM);
    let victim = thread::spawn({
        let channel = Arc::clone(channel);
        move || channel.victim.live(step, || part(&channel))
    });
    let survivor = thread::spawn({
        let channel = Arc::clone(channel);
        move || {
            channel.enter(SURVIVOR);
            channel.raise(source);
        }
    });
    let taken = channel.take().into_iter().collect();
    victim.join().unwrap();
    survivor.join().unwrap();
    channel.sweep();
    taken
}

/// The first step of raising is to count the event. Three link the source, if it is not in the list; then the
/// descriptor is written, if it was empty; the last gives the lock back.
const COUNT: u32 = 0;
const STEPS: u32 = 6;

/// The victim raises an event of its source, the survivor one of `source`, and one of that may wait already.
fn raise_and_die(step: u32, source: u32, waits: bool) {
    const MINE: u32 = 1;
    let channel = Channel::new();
    if waits {
        channel.enter(READER);
        channel.raise(source);
    }
    let taken = race(&channel, source, step, |channel| channel.raise(MINE));
    let mut raised = [0; SOURCES as usize];
    raised[source as usize] += 1 + usize::from(waits);
    raised[MINE as usize] += usize::from(step > COUNT);
    assert_eq!(channel.drain(taken), raised, "{LOST}");
}

/// The victim takes its source, which has an event, out of the channel, where another one waits before it.
fn detach_and_die(step: u32) {
    const FIRST: u32 = 0;
    const MINE: u32 = 1;
    const OTHER: u32 = 2;
    let channel = Channel::new();
    for source in [FIRST, MINE] {
        channel.enter(READER);
        channel.raise(source);
    }
    let taken = race(&channel, OTHER, step, |channel| channel.detach(MINE));
    channel.enter(READER);
    channel.detach(MINE);
    let left = channel.drain(Vec::new());
    assert_eq!(left[MINE as usize], 0, "an event of what is gone");
    for source in [FIRST, OTHER] {
        let before = taken.iter().filter(|&&taken| taken == source).count();
        assert_eq!(before + left[source as usize], 1, "{LOST}");
    }
}

fn raise_at(step: u32, source: u32, waits: bool) -> Model {
    let besides = if waits { "two" } else { "one" };
    let name = format!("killed at step {step} of raising, besides {besides} of {source}");
    model(name, move || raise_and_die(step, source, waits))
}

#[test]
fn n09_no_event_is_lost_whenever_who_raises_one_is_killed() {
    for step in COUNT..=STEPS {
        let raise = raise_at(step, 2, false);
        match step {
            1..4 => _ = raise.must_fail_without(Site::Rebuild, LOST),
            4 => _ = raise.must_fail_without(Site::RingAgain, SILENT),
            _ => {}
        }
    }
}

#[test]
fn n09_nor_those_that_others_raised() {
    for step in COUNT + 1..STEPS - 1 {
        raise_at(step, 1, false);
        raise_at(step, 2, true);
    }
}

#[test]
fn n07_what_is_gone_has_no_events_whenever_who_detaches_it_is_killed() {
    for step in 0..=STEPS {
        let name = format!("killed at step {step} of detaching");
        let detach = model(name, move || detach_and_die(step));
        if step == 2 {
            detach.must_fail_without(Site::Rebuild, LOST);
        }
    }
}
