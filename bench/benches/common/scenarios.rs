//! What can be asked, and of which queues: the rows of both benches.

use std::fmt;

use super::peer::Peer;
#[cfg(feature = "dpdk")]
use super::peers::RteRing;
use super::peers::{
    Crossbeam, Gil, Heapless, Raw, Rigtorp, Ringbuf, RtrbChunks, RtrbSingle, Shared, Soft,
};
use super::runs::limits::{one_load, two_lines};
use super::runs::producers::two_producers;
use super::runs::sleep::{bare_event, bare_trip, soft_event, soft_trip};
use super::runs::spsc::{EmptyPoll, PushPop, RoundTrip, Run, Stream};
pub use super::sample::{Sample, Setting};
use bench::cores::Cores;

/// One thing asked of every queue.
pub struct Scenario {
    /// What it is, with its unit.
    pub name: String,
    /// How many cores it takes.
    pub cores: usize,
    /// How many entries each queue is made for.
    pub capacity: usize,
    /// The queues it is asked of.
    pub rows: Vec<Row>,
}

impl Scenario {
    /// Why it can't be measured on these cores, if so.
    pub fn why_not(&self, cores: Cores) -> Option<&'static str> {
        (self.cores > 1 && cores.shared()).then_some("this process may use one core only")
    }

    /// Measures a queue.
    pub fn run(&self, row: &Row, cores: Cores, count: u64) -> Sample {
        (row.run)(Setting { cores, capacity: self.capacity }, count)
    }
}

/// One queue.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name.
    pub peer: &'static str,
    /// Whose it is.
    pub kind: Kind,
    run: Measure,
}

/// Whose a row is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A queue of this workspace.
    Ours,
    /// Another queue.
    Peer,
    /// No queue: what the machine or the system allows.
    Limit,
}

/// Measures about as many entries, polls or round trips as it is told.
type Measure = fn(Setting, u64) -> Sample;

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.kind == Kind::Ours { "cq-core " } else { "" }, self.peer)
    }
}

/// The capacity where none is named.
pub const USUAL: usize = 1024;

/// The largest capacity.
pub const MANY: usize = 65536;

/// One thread pushes `N` entries, then pops them.
pub fn one_thread<const N: usize>(capacity: usize) -> Scenario {
    let name = format!("one thread, n = {N}, capacity {capacity}, ns/entry");
    Scenario { name, cores: 1, capacity, rows: rows::<PushPop<N>>() }
}

/// One thread pushes by `TX`, another pops by up to `RX`.
pub fn two_threads<const TX: usize, const RX: usize>(capacity: usize) -> Scenario {
    let name = format!("two threads, {TX}:{RX}, capacity {capacity}, ns/entry");
    Scenario { name, cores: 2, capacity, rows: rows::<Stream<TX, RX>>() }
}

/// One thread polls an empty queue.
pub fn empty_poll() -> Scenario {
    let mut rows = rows::<EmptyPoll<32, false>>();
    rows.push(limit("a load and a comparison", one_load));
    Scenario { name: "empty poll, inlined, ns/poll".into(), cores: 1, capacity: USUAL, rows }
}

/// One thread polls an empty queue by a call.
pub fn empty_call() -> Scenario {
    let (name, rows) = ("empty poll, called, ns/poll".into(), rows::<EmptyPoll<32, true>>());
    Scenario { name, cores: 1, capacity: USUAL, rows }
}

/// An entry goes to another thread and back.
pub fn round_trip() -> Scenario {
    let mut rows = rows::<RoundTrip>();
    rows.push(limit("two bare cache lines", two_lines));
    Scenario { name: "two threads, round trip, ns".into(), cores: 2, capacity: USUAL, rows }
}

/// One thread arms, pushes, and takes the event.
pub fn event() -> Scenario {
    let rows = sleepers(soft_event, bare_event);
    Scenario { name: "one thread, arm, push, event, ns".into(), cores: 1, capacity: 64, rows }
}

/// An entry goes to another thread and back, both of which sleep meanwhile.
pub fn sleeping_trip() -> Scenario {
    let rows = sleepers(soft_trip, bare_trip);
    Scenario { name: "two threads, sleeping round trip, ns".into(), cores: 2, capacity: 64, rows }
}

/// The queue that is slept on, and what it sleeps by.
fn sleepers(soft: Measure, bare: Measure) -> Vec<Row> {
    vec![Row { peer: "queue, eventfd", kind: Kind::Ours, run: soft }, limit("bare eventfd", bare)]
}

/// Two threads push by `N`.
pub fn producers<const N: usize>(capacity: usize) -> Scenario {
    let name = format!("two producers, n = {N}, capacity {capacity}, ns/entry");
    let rows = Vec::from([
        Row { peer: Shared::NAME, kind: Kind::Ours, run: two_producers::<Shared, N> },
        Row { peer: Crossbeam::NAME, kind: Kind::Peer, run: two_producers::<Crossbeam, N> },
        #[cfg(feature = "dpdk")]
        Row {
            peer: RteRing::<true>::NAME,
            kind: Kind::Peer,
            run: two_producers::<RteRing<true>, N>,
        },
    ]);
    Scenario { name, cores: 2, capacity, rows }
}

/// The queues.
fn rows<R: Run>() -> Vec<Row> {
    Vec::from([
        ours::<R, Soft<false>>(),
        ours::<R, Soft<true>>(),
        ours::<R, Raw>(),
        other::<R, RtrbSingle>(),
        other::<R, RtrbChunks>(),
        other::<R, Gil>(),
        other::<R, Rigtorp>(),
        other::<R, Heapless>(),
        other::<R, Ringbuf>(),
        other::<R, Crossbeam>(),
        #[cfg(feature = "dpdk")]
        other::<R, RteRing<false>>(),
    ])
}

fn ours<R: Run, P: Peer>() -> Row {
    Row { kind: Kind::Ours, ..other::<R, P>() }
}

fn other<R: Run, P: Peer>() -> Row {
    Row { peer: P::NAME, kind: Kind::Peer, run: R::run::<P> }
}

const fn limit(peer: &'static str, run: Measure) -> Row {
    Row { peer, kind: Kind::Limit, run }
}
