//! A channel's marks, count and descriptor, without a lock: whoever stops or is killed at any step of raising an
//! event, the events of all others wake the reader (N6, N9), its own comes once somebody sweeps up after it, and none
//! comes twice. An event is not told of the next object in the place of the one that it speaks of (N7).

use std::sync::Arc;

use loom::thread;
use transport_rxe_loop::protocol::channel::{Board, Collected, Descriptor, EventNode, Events};
use transport_rxe_loop::protocol::number::ChannelIndex;
use transport_rxe_loop::sync::{self, AtomicU32, Site, death};
use verify_loom::harness::model;
use verify_loom::threads::{Monitor, spawn};

const LOST: &str = "lost or doubled";
const ASLEEP: &str = "an event waits, and its reader sleeps";
const CHANNEL: u32 = 5;
const SOURCES: u32 = 3;

/// A descriptor, and those who will still write to it.
struct Fifo(Monitor<State>);

struct State {
    readable: bool,
    raisers: u32,
}

impl Fifo {
    /// Sleeps until it is readable; false if nobody is left who would write.
    fn sleep(&self) -> bool {
        self.0.wait(|state| (state.readable || state.raisers == 0).then_some(state.readable))
    }

    fn leave(&self) {
        self.0.update(|state| state.raisers -= 1);
    }
}

impl Descriptor for Fifo {
    fn write(&self) {
        if death::step() {
            self.0.update(|state| state.readable = true);
        }
    }

    fn empty(&self) {
        self.0.update(|state| state.readable = false);
    }
}

/// What of the protocol is left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Says that the descriptor is written, and then writes it.
    WritesLast,
    SweepsNothing,
}

struct Channel {
    board: Board,
    nodes: [EventNode; SOURCES as usize],
    fifo: Fifo,
}

impl Channel {
    /// All sources come here, and so many raise events. And what its owner keeps to itself.
    fn new(raisers: u32) -> (Arc<Self>, Collected) {
        let fifo = Fifo(Monitor::new(State { readable: false, raisers }));
        let channel = Self { board: Board::default(), nodes: Default::default(), fifo };
        let mut collected = Collected::default();
        (0..SOURCES).for_each(|source| channel.events().attach(source, &mut collected));
        (Arc::new(channel), collected)
    }

    fn events<'a>(&'a self) -> Events<'a, impl Fn(u32) -> &'a EventNode> {
        Events::new(&self.board, ChannelIndex::new(CHANNEL), SOURCES, |source| {
            &self.nodes[(source % SOURCES) as usize]
        })
    }

    fn raise(&self, source: u32, fault: Fault) {
        let Some(unwritten) = self.events().raise(source, || true) else { return };
        if fault == Fault::WritesLast {
            self.events().written(unwritten);
            self.fifo.write();
        } else {
            self.fifo.write();
            self.events().written(unwritten);
        }
    }

    /// Takes events until none is left and nobody will raise any.
    fn read(&self, collected: &mut Collected) -> Vec<u32> {
        let mut taken = Vec::new();
        loop {
            match self.events().take(collected, &self.fifo) {
                Some(source) => taken.push(source),
                None if self.fifo.sleep() => {}
                None => return taken,
            }
        }
    }

    /// What is done for a process that is dead.
    fn recover(&self) {
        for source in 0..SOURCES {
            if let Some(unwritten) = self.events().mark_again(source) {
                self.fifo.write();
                self.events().written(unwritten);
            }
        }
    }
}

fn count(taken: &[u32], source: u32) -> usize {
    taken.iter().filter(|&&taken| taken == source).count()
}

fn raiser(channel: &Arc<Channel>, source: u32) -> thread::JoinHandle<()> {
    spawn(channel, move |channel| {
        channel.raise(source, Fault::None);
        channel.fifo.leave();
    })
}

const MINE: u32 = 0;
/// The first step of raising counts the event. The next ones give it its place in the order, mark the source, write
/// the descriptor and say so.
const COUNTED: u32 = 1;
const STEPS: u32 = 5;
/// Changes of a count by others: one is raised, one taken.
const OTHERS: u32 = 2;

/// The victim raises an event, and goes no further than a step of that; the survivor raises one of `source`. The reader
/// sleeps until the survivor's has come, or one of two of the same that wait; then somebody sweeps up.
fn stop_at(step: u32, source: u32, fault: Fault) {
    let (channel, mut collected) = Channel::new(1);
    let victim =
        spawn(&channel, move |channel| death::killed_at(step, || channel.raise(MINE, fault)));
    let survivor = raiser(&channel, source);
    let mut taken = channel.read(&mut collected);
    assert!(count(&taken, source) >= 1, "{ASLEEP}");
    survivor.join().unwrap();
    victim.join().unwrap();
    if fault != Fault::SweepsNothing {
        channel.recover();
    }
    taken.extend(channel.read(&mut collected));
    let mine = taken.len() - 1;
    assert_eq!(count(&taken, MINE), mine + usize::from(source == MINE), "{LOST}");
    // It may have tried to count it, and found that others had changed the count.
    let surely = if source == MINE { COUNTED + OTHERS + 1 } else { COUNTED };
    assert!(if step < surely { mine <= 1 } else { mine == 1 }, "{LOST}");
    assert!(mine == 0 || step >= COUNTED, "{LOST}");
    assert_eq!(channel.nodes[MINE as usize].unread(), 0, "{LOST}");
}

#[test]
fn n06_who_stops_at_any_step_of_raising_keeps_no_other_event_back() {
    let of_another = (0..=STEPS).map(|step| (step, 1));
    for (step, source) in of_another.chain([(COUNTED, MINE), (STEPS - 2, MINE)]) {
        let run = move |fault| stop_at(step, source, fault);
        let name = format!("stopped at step {step} of raising, besides an event of {source}");
        let model = model(name, move || run(Fault::None));
        if source != MINE && (1..=2).contains(&step) {
            model.must_fail_as("sweeping", LOST, move || run(Fault::SweepsNothing));
        }
        if step == 4 {
            model.must_fail_as("writing first", ASLEEP, move || run(Fault::WritesLast));
        }
    }
}

#[test]
fn n06_every_event_wakes_and_comes_once() {
    model("two raise, one reads", || {
        let (channel, mut collected) = Channel::new(2);
        let raisers = [raiser(&channel, 0), raiser(&channel, 1)];
        let taken = channel.read(&mut collected);
        for source in 0..2 {
            assert!(count(&taken, source) >= 1, "{ASLEEP}");
            assert_eq!(count(&taken, source), 1, "{LOST}");
        }
        raisers.into_iter().for_each(|raiser| raiser.join().unwrap());
    })
    .must_fail_without([Site::RaiseFence, Site::EmptyFence, Site::CollectAgain], ASLEEP);
}

const GONE: u32 = 1;
const NEXT: u32 = 2;

/// An event of an object is raised while that goes and the next one comes in its place.
fn replace(looks_late: bool) {
    let (channel, mut collected) = Channel::new(0);
    let object = Arc::new(AtomicU32::new(GONE));
    let raiser = spawn((&channel, &object), move |(channel, object)| {
        let is_there = || sync::acquire(&*object) == GONE;
        let was_there = is_there();
        let _ = channel.events().raise(MINE, || if looks_late { is_there() } else { was_there });
    });
    channel.events().detach(MINE, &mut collected, &channel.fifo);
    sync::release(&*object, NEXT);
    channel.events().attach(MINE, &mut collected);
    raiser.join().unwrap();
    assert_eq!(channel.nodes[MINE as usize].unread(), 0, "an event of what is gone");
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

/// Somebody is late to write the descriptor for an event that is read meanwhile; then another event is raised.
fn late() {
    let (channel, mut collected) = Channel::new(2);
    let late = raiser(&channel, 0);
    for _ in 0..2 {
        while channel.events().take(&mut collected, &channel.fifo).is_some() {}
    }
    late.join().unwrap();
    channel.raise(1, Fault::None);
    channel.fifo.leave();
    assert!(channel.fifo.sleep(), "{ASLEEP}");
}

#[test]
fn n06_who_is_late_to_write_for_an_event_that_was_read_hides_none_that_comes_then() {
    model("late to write for an event that was read", late)
        .must_fail_without([Site::EmptyFirst], ASLEEP);
}
