//! A channel's counts and tokens, without a lock: the descriptor is readable exactly while an event can be taken (N14); if a
//! process stops or is killed at any step of raising an event, the events of all others wake the reader (N6, N9), its own comes
//! once somebody recovers from its death, and none comes twice. An event is not reported of the next object in the place of the
//! one that it is about (N7).

use std::collections::VecDeque;
use std::sync::Arc;

use loom::thread;
use transport_rxe_loop::protocol::channel::{
    Board, EventNode, Events, Owned, Pipe, Token, Unwritten,
};
use transport_rxe_loop::protocol::number::ChannelIndex;
use transport_rxe_loop::sync::{self, AtomicU32, death};
use verify_loom::harness::model;
use verify_loom::threads::{Monitor, spawn};

const LOST: &str = "lost or doubled";
const ASLEEP: &str = "an event waits, and its reader sleeps";
const NOTHING: &str = "readable without an event";
const CHANNEL: u32 = 5;
const SOURCES: u32 = 2;

/// A descriptor, and those who will still write to it.
struct Fifo(Monitor<State>);

struct State {
    tokens: VecDeque<Token>,
    space: usize,
    raisers: u32,
}

impl Fifo {
    /// Sleeps until it is readable; false if nobody is left who would write.
    fn sleep(&self) -> bool {
        self.0.wait(|state| {
            let is_readable = !state.tokens.is_empty();
            (is_readable || state.raisers == 0).then_some(is_readable)
        })
    }

    fn leave(&self) {
        self.0.update(|state| state.raisers -= 1);
    }
}

impl Pipe for Fifo {
    fn write(&self, token: Token) -> Result<(), Unwritten> {
        if !death::step() {
            return Ok(());
        }
        self.0.update(|state| {
            if state.tokens.len() == state.space {
                return Err(Unwritten::Full);
            }
            state.tokens.push_back(token);
            Ok(())
        })
    }

    fn read(&self) -> Option<Token> {
        self.0.update(|state| state.tokens.pop_front())
    }

    fn len(&self) -> usize {
        self.0.update(|state| state.tokens.len())
    }

    /// Until something is written, or nobody is left who would.
    fn wait(&self, _: u32) -> bool {
        self.sleep()
    }
}

struct Channel {
    board: Board,
    nodes: [EventNode; SOURCES as usize],
    fifo: Fifo,
}

impl Channel {
    /// All sources come here, so many raise events, and there is space for so many tokens. And what its owner keeps to itself.
    fn new(raisers: u32, space: usize) -> (Arc<Self>, Owned) {
        let fifo = Fifo(Monitor::new(State { tokens: VecDeque::new(), space, raisers }));
        let channel = Self { board: Board::default(), nodes: Default::default(), fifo };
        let mut owned = Owned::default();
        (0..SOURCES).for_each(|source| channel.events().attach(source, &mut owned));
        (Arc::new(channel), owned)
    }

    fn events<'a>(&'a self) -> Events<'a, impl Fn(u32) -> &'a EventNode> {
        Events::new(&self.board, ChannelIndex::new(CHANNEL), |source| {
            &self.nodes[(source % SOURCES) as usize]
        })
    }

    fn raise(&self, source: u32) {
        self.events().raise(source, || true, &self.fifo).unwrap();
    }

    /// Takes an event, and those behind it, whenever the descriptor is readable, until nobody will raise any.
    fn read(&self, owned: &Owned) -> Vec<u32> {
        let mut taken = Vec::new();
        let take = || self.events().take(owned, &self.fifo);
        while self.fifo.sleep() {
            taken.push(take().expect(NOTHING));
            taken.extend(std::iter::from_fn(take));
        }
        taken
    }

    /// What is done for a process that is dead.
    fn recover(&self, owned: &Owned) {
        let missing = self.events().missing(owned, &self.fifo);
        self.events().restore(&missing, owned, &self.fifo);
    }

    fn unread(&self) -> u32 {
        self.nodes.iter().map(EventNode::unread).sum()
    }
}

fn count(taken: &[u32], source: u32) -> usize {
    taken.iter().filter(|&&taken| taken == source).count()
}

fn raiser(channel: &Arc<Channel>, source: u32) -> thread::JoinHandle<()> {
    spawn(channel, move |channel| {
        channel.raise(source);
        channel.fifo.leave();
    })
}

const MINE: u32 = 0;
/// The first step of raising counts the event, the next one writes its token.
const COUNTED: u32 = 1;
const STEPS: u32 = 2;
/// Changes of a count by others: one is raised, one taken.
const OTHERS: u32 = 2;

/// The victim raises an event, and goes no further than a step of that; the survivor raises one of `source`. The reader
/// sleeps until the survivor's has come, or one of two of the same that wait; then somebody recovers.
fn stop_at(step: u32, source: u32, recovers: bool) {
    let (channel, owned) = Channel::new(1, 4);
    let victim = spawn(&channel, move |channel| death::killed_at(step, || channel.raise(MINE)));
    let survivor = raiser(&channel, source);
    let mut taken = channel.read(&owned);
    assert!(count(&taken, source) >= 1, "{ASLEEP}");
    survivor.join().unwrap();
    victim.join().unwrap();
    if recovers {
        channel.recover(&owned);
    }
    taken.extend(channel.read(&owned));
    let mine = taken.len() - 1;
    assert_eq!(count(&taken, MINE), mine + usize::from(source == MINE), "{LOST}");
    // It may have tried to count it, and found that others had changed the count.
    let surely = if source == MINE { COUNTED + OTHERS + 1 } else { COUNTED };
    assert!(if step < surely { mine <= 1 } else { mine == 1 }, "{LOST}");
    assert!(mine == 0 || step >= COUNTED, "{LOST}");
    assert_eq!(channel.unread(), 0, "{LOST}");
}

#[test]
fn n06_who_stops_at_any_step_of_raising_keeps_no_other_event_back() {
    let of_another = (0..=STEPS).map(|step| (step, 1));
    let of_the_same = (0..=STEPS).map(|step| (step, MINE));
    for (step, source) in of_another.chain(of_the_same) {
        let name = format!("stopped at step {step} of raising, besides an event of {source}");
        let model = model(name, move || stop_at(step, source, true));
        if step == COUNTED {
            model.must_fail_as("recovering", LOST, move || stop_at(step, source, false));
        }
    }
}

#[test]
fn n06_every_event_wakes_and_comes_once() {
    for space in [4, 1] {
        model(format!("two raise, one reads, space for {space}"), move || {
            let (channel, owned) = Channel::new(2, space);
            let raisers = [raiser(&channel, 0), raiser(&channel, 1)];
            let taken = channel.read(&owned);
            for source in 0..2 {
                assert!(count(&taken, source) >= 1, "{ASLEEP}");
                assert_eq!(count(&taken, source), 1, "{LOST}");
            }
            raisers.into_iter().for_each(|raiser| raiser.join().unwrap());
            assert_eq!(channel.unread(), 0, "{LOST}");
        });
    }
}

#[test]
fn n06_an_event_that_is_parked_is_written_when_there_is_space() {
    model("one raises twice, another one once, space for 1", || {
        let (channel, owned) = Channel::new(2, 1);
        let twice = spawn(&channel, |channel| {
            (0..2).for_each(|_| channel.raise(MINE));
            channel.fifo.leave();
        });
        let once = raiser(&channel, 1);
        let taken = channel.read(&owned);
        assert!(taken.len() >= 3, "{ASLEEP}");
        assert_eq!([count(&taken, MINE), count(&taken, 1)], [2, 1], "{LOST}");
        [twice, once].into_iter().for_each(|raiser| raiser.join().unwrap());
    });
}

/// Somebody recovers from a death while another process raises an event: that comes once, even if its token was written for
/// it, too.
fn recover_meanwhile() {
    let (channel, owned) = Channel::new(1, 4);
    death::killed_at(COUNTED, || channel.raise(MINE));
    let other = raiser(&channel, 1);
    channel.recover(&owned);
    let mut taken = Vec::new();
    while channel.fifo.sleep() {
        taken.extend(channel.events().take(&owned, &channel.fifo));
    }
    other.join().unwrap();
    for source in 0..2 {
        assert_eq!(count(&taken, source), 1, "{LOST}");
    }
}

#[test]
fn n09_who_is_recovered_for_too_early_raises_nothing_twice() {
    model("recovering while another one raises", recover_meanwhile);
}

const GONE: u32 = 1;
const NEXT: u32 = 2;

/// An event of an object is raised while that goes and the next one comes in its place.
fn replace(looks_late: bool) {
    let (channel, mut owned) = Channel::new(1, 4);
    let object = Arc::new(AtomicU32::new(GONE));
    let raiser = spawn((&channel, &object), move |(channel, object)| {
        let is_there = || sync::acquire(&*object) == GONE;
        let was_there = is_there();
        let is_meant = || if looks_late { is_there() } else { was_there };
        channel.events().raise(MINE, is_meant, &channel.fifo).unwrap();
        channel.fifo.leave();
    });
    let gone = channel.events().detach(MINE, &mut owned, &channel.fifo).unwrap();
    channel.events().read_away(gone, || &owned, &channel.fifo);
    sync::release(&*object, NEXT);
    channel.events().attach(MINE, &mut owned);
    raiser.join().unwrap();
    assert_eq!(channel.unread(), 0, "an event of what is gone");
    assert!(channel.fifo.is_empty(), "{NOTHING}");
}

#[test]
fn n07_the_next_object_has_no_event_of_the_one_that_is_gone() {
    let looks_first = || replace(false);
    model("an object goes while its event is raised", || replace(true)).must_fail_as(
        "looking at the object last",
        "an event of what is gone",
        looks_first,
    );
}

/// A source is detached while an event of it is raised, and one of another source is unread.
fn detach(waits: bool) {
    let (channel, mut owned) = Channel::new(1, 4);
    let raiser = raiser(&channel, MINE);
    let gone = channel.events().detach(MINE, &mut owned, &channel.fifo).unwrap();
    if waits {
        channel.events().read_away(gone, || &owned, &channel.fifo);
    }
    assert!(channel.fifo.is_empty(), "{NOTHING}");
    raiser.join().unwrap();
    assert!(channel.fifo.is_empty(), "{NOTHING}");
}

#[test]
fn n14_what_is_detached_makes_nothing_readable() {
    model("a source goes while its event is raised", || detach(true)).must_fail_as(
        "waiting for it",
        NOTHING,
        || detach(false),
    );
}

#[test]
fn n14_it_is_readable_throughout_while_there_is_an_event() {
    model("a source goes, and another one has an event", || {
        let (channel, mut owned) = Channel::new(0, 4);
        channel.raise(MINE);
        channel.raise(1);
        let poller = spawn(&channel, |channel| {
            (0..2).for_each(|_| assert!(!channel.fifo.is_empty(), "{ASLEEP}"));
        });
        let gone = channel.events().detach(MINE, &mut owned, &channel.fifo).unwrap();
        channel.events().read_away(gone, || &owned, &channel.fifo);
        poller.join().unwrap();
        assert_eq!(channel.read(&owned), [1]);
    });
}
