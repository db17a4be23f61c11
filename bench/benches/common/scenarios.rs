//! Which queue is asked what: the rows of both benches.

use std::fmt;

use super::peer::{CAPACITY, Peer};
use super::peers::{Heapless, Ring, RtrbChunks, RtrbSingle, SLACK, Soft, Windowed};
pub use super::runs::Sample;
use super::runs::{EmptyPoll, PushPop, RoundTrip, Run, Stream};
use bench::cores::Cores;

/// One thing asked of every queue.
pub struct Scenario {
    /// What it is, with its unit.
    pub name: &'static str,
    /// How many cores it takes.
    pub cores: usize,
    /// The queues it is asked of.
    pub rows: Vec<Row>,
}

impl Scenario {
    /// Why it can't be measured on these cores, if so.
    pub fn why_not(&self, cores: Cores) -> Option<&'static str> {
        (self.cores > 1 && cores.shared()).then_some("this process may use one core only")
    }
}

/// One queue.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name.
    pub peer: &'static str,
    /// Whether it is of this workspace.
    pub ours: bool,
    /// Measures about as many entries, polls or round trips as it is told.
    pub run: fn(Cores, u64) -> Sample,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.ours { "cq-core " } else { "" }, self.peer)
    }
}

/// Everything that is measured.
pub fn all() -> Vec<Scenario> {
    let one = |name, rows| Scenario { name, cores: 1, rows };
    let two = |name, rows| Scenario { name, cores: 2, rows };
    vec![
        one("one thread, n = 1, ns/entry", bounded::<PushPop<1>>()),
        one("one thread, n = 32, ns/entry", bounded::<PushPop<32>>()),
        one("empty poll, inlined, ns/poll", bounded::<EmptyPoll<32>>()),
        two("two threads, 1:1, ns/entry", flooded::<Stream<1, 1>>()),
        two("two threads, 1:32, ns/entry", flooded::<Stream<1, 32>>()),
        two("two threads, 32:32, ns/entry", flooded::<Stream<32, 32>>()),
        two("two threads, round trip, ns", bounded::<RoundTrip>()),
    ]
}

/// The queues for a run that never sends more than there is room for.
fn bounded<R: Run>() -> Vec<Row> {
    rows::<R, Soft<CAPACITY>, Soft<SLACK>>()
}

/// The queues for a run whose sender goes on until the queue holds it back.
fn flooded<R: Run>() -> Vec<Row> {
    rows::<R, Windowed<Soft<CAPACITY>>, Windowed<Soft<SLACK>>>()
}

fn rows<R: Run, S: Peer, SlackS: Peer>() -> Vec<Row> {
    vec![
        ours::<R, Ring<CAPACITY>>(),
        ours::<R, Ring<SLACK>>(),
        ours::<R, S>(),
        ours::<R, SlackS>(),
        other::<R, RtrbSingle>(),
        other::<R, RtrbChunks>(),
        other::<R, Heapless>(),
    ]
}

fn ours<R: Run, P: Peer>() -> Row {
    Row { ours: true, ..other::<R, P>() }
}

fn other<R: Run, P: Peer>() -> Row {
    Row { peer: P::NAME, ours: false, run: R::run::<P> }
}
