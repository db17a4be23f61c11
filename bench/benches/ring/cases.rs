//! What is asked, and of which queues: the rows of the table.

use bench::cores::Cores;
use bench::turns::{Kind, Row, Sample, Scenario};
use cq_core::wc::Wc;

use crate::entries::{Item, Spare};
use crate::peer::{Peer, Reader};
#[cfg(any(feature = "dpdk", feature = "rigtorp"))]
use crate::peers::Foreign;
#[cfg(feature = "rigtorp")]
use crate::peers::RigtorpCpp;
use crate::peers::{
    Crossbeam, Gil, Heapless, Kanal, Raw, Rigtorp, Ringbuf, RtrbChunks, RtrbSingle, Shared, Soft,
};
#[cfg(feature = "dpdk")]
use crate::peers::{RteRing, RteRingMp, RteRingZc};
use crate::runs::Setting;
use crate::runs::limits::{bare_copies, bare_lines, one_load, two_lines};
use crate::runs::producers::two_producers;
use crate::runs::sleep::{bare_event, bare_trip, soft_event, soft_trip};
use crate::runs::spsc::{
    Busy, Called, EmptyPoll, Inlined, PushPop, RoundTrip, Run, Stream, push_read, work_alone,
};

/// What is asked of all queues.
pub struct Case {
    /// What is measured, and of whom.
    pub scenario: Scenario,
    /// What it is like in practice.
    pub like: &'static str,
    /// The most that our time should be, as a multiple of the best peer's; in place where the case has that.
    pub goal: Option<f64>,
}

/// The capacity where none is named.
const USUAL: usize = 1024;

/// The other capacity.
const MANY: usize = 65536;

/// What the row is called in which entries are read where they lie.
pub const IN_PLACE: &str = ", in place";

/// All of them.
pub fn all(cores: Cores) -> Vec<Case> {
    let (usual, many) = (Setting { cores, capacity: USUAL }, Setting { cores, capacity: MANY });
    let limit = |name, run: Measure| row(name, Kind::Limit, usual, run);
    let and = |mut rows: Vec<Row>, limits| {
        rows.extend(limits);
        rows
    };
    let one = |name, rows, goal| Case::new(name, 1, rows, "", goal);
    let two = |name, rows, like, goal| Case::new(name, 2, rows, like, Some(goal));
    vec![
        Case::new(
            "one thread, n = 1",
            1,
            and(rows::<PushPop<1>>(usual), copies::<1>(usual)),
            "a program that is its own device: it pushes n, and polls n",
            Some(1.1),
        ),
        one("one thread, n = 8", with_in_place::<8>(usual), Some(1.0)),
        one("one thread, n = 32", with_in_place::<32>(usual), Some(1.0)),
        two(
            "1:1",
            rows::<Stream<Inlined, 1, 1>>(usual),
            "a device pushes one at a time, and the application polls one at a time",
            0.8,
        ),
        two(
            "1:32, inlined",
            rows::<Stream<Inlined, 1, 32>>(usual),
            "the device is faster than the application: the queue is full, and a poll finds 32",
            0.6,
        ),
        two(
            "1:32, busy",
            and(rows::<Stream<Busy, 1, 32>>(usual), vec![limit("the 60 ns alone", work_alone)]),
            "the device works 60 ns for each, as on a packet or a request: the queue is empty, and a poll finds one",
            0.9,
        ),
        two(
            "1:32, called",
            rows::<Stream<Called, 1, 32>>(usual),
            "a device behind a function call pushes back to back, and the application keeps up: it reads what is being written",
            0.8,
        ),
        two("1:8, called", rows::<Stream<Called, 1, 8>>(usual), "", 0.8),
        two("1:4, called", rows::<Stream<Called, 1, 4>>(usual), "", 0.9),
        two("16:16", batches::<16>(usual), "", 0.75),
        two(
            "32:32",
            batches::<32>(usual),
            "a device completes requests in lists, and the application polls as many",
            0.75,
        ),
        two(
            "round trip",
            and(rows::<RoundTrip<1>>(usual), vec![limit("two bare cache lines", two_lines)]),
            "a request, and its answer by another thread; both spin",
            0.78,
        ),
        Case::new(
            "empty poll, called",
            1,
            rows::<EmptyPoll<32, true>>(usual),
            "a transport that is called, as through a trait object",
            Some(1.2),
        ),
        one(
            "empty poll, inlined",
            and(
                rows::<EmptyPoll<32, false>>(usual),
                vec![limit("a load and a comparison", one_load)],
            ),
            Some(1.0),
        ),
        two(
            "two producers, n = 1",
            producers::<1>(usual),
            "two devices fill half of a queue at once, n at a time; nobody polls meanwhile",
            1.0,
        ),
        two("two producers, n = 16", producers::<16>(usual), "", 1.0),
        two("two producers, n = 32", producers::<32>(usual), "", 1.0),
        two("two producers, n = 1, of 65536", producers::<1>(many), "", 0.6),
        two("two producers, n = 16, of 65536", producers::<16>(many), "", 0.4),
        two("two producers, n = 32, of 65536", producers::<32>(many), "", 0.4),
    ]
}

/// What else there is, with `--full`.
pub fn more(cores: Cores) -> Vec<Case> {
    let [usual, small] = [USUAL, 64].map(|capacity| Setting { cores, capacity });
    let sleeper = |name, cores, soft: Measure, bare: Measure| {
        let bare = row("bare eventfd", Kind::Limit, small, bare);
        Case::new(
            name,
            cores,
            vec![row(ours("queue, eventfd"), Kind::Ours, small, soft), bare],
            "",
            None,
        )
    };
    vec![
        Case::new("round trip, polled by up to 32", 2, rows::<RoundTrip<32>>(usual), "", None),
        Case::new("one thread, n = 1, 8 bytes", 1, eight_bytes::<1>(usual), "", None),
        Case::new("one thread, n = 32, 8 bytes", 1, eight_bytes::<32>(usual), "", None),
        sleeper("arm, push, event", 1, soft_event, bare_event),
        sleeper("sleeping round trip", 2, soft_trip, bare_trip),
    ]
}

impl Case {
    fn new(
        name: &str,
        cores: usize,
        rows: Vec<Row>,
        like: &'static str,
        goal: Option<f64>,
    ) -> Self {
        Self { scenario: Scenario { name: name.to_owned(), cores, rows }, like, goal }
    }
}

/// Measures about as many entries, polls or round trips as it is told.
type Measure = fn(Setting, u64) -> Sample;

fn row(name: impl Into<String>, kind: Kind, setting: Setting, run: Measure) -> Row {
    Row::new(name, kind, move |count| run(setting, count))
}

fn ours(name: &str) -> String {
    format!("cq-core {name}")
}

/// A peer's row.
fn other<R: Run<E>, P: Peer<E>, E: Item>(setting: Setting) -> Row {
    row(P::NAME, Kind::Peer, setting, R::run::<P>)
}

/// The queues with one producer.
fn rows<R: Run>(setting: Setting) -> Vec<Row> {
    fn our<R: Run, P: Peer>(setting: Setting) -> Row {
        row(ours(P::NAME), Kind::Ours, setting, R::run::<P>)
    }
    Vec::from([
        our::<R, Soft>(setting),
        our::<R, Raw>(setting),
        other::<R, RtrbSingle, Wc>(setting),
        other::<R, RtrbChunks, Wc>(setting),
        other::<R, Gil, Wc>(setting),
        other::<R, Rigtorp, Wc>(setting),
        #[cfg(feature = "rigtorp")]
        other::<R, Foreign<RigtorpCpp>, Wc>(setting),
        other::<R, Heapless, Wc>(setting),
        other::<R, Ringbuf, Wc>(setting),
        other::<R, Crossbeam, Wc>(setting),
        #[cfg(feature = "dpdk")]
        other::<R, Foreign<RteRing>, Wc>(setting),
        #[cfg(feature = "dpdk")]
        other::<R, Foreign<RteRingZc>, Wc>(setting),
    ])
}

/// One thread sends by `N`, another receives by `N`.
fn batches<const N: usize>(setting: Setting) -> Vec<Row> {
    let mut all = rows::<Stream<Inlined, N, N>>(setting);
    all.push(row("bare cache lines", Kind::Limit, setting, bare_lines::<N>));
    all
}

/// One thread pushes `N` entries, then pops them, or reads them where they lie.
fn with_in_place<const N: usize>(setting: Setting) -> Vec<Row> {
    fn of<P: Peer, const N: usize>(name: String, kind: Kind, setting: Setting) -> Row
    where
        for<'a> P::Receiver<'a>: Reader,
    {
        row(name + IN_PLACE, kind, setting, push_read::<P, N>)
    }
    let mut all = rows::<PushPop<N>>(setting);
    all.push(of::<Soft, N>(ours(<Soft as Peer>::NAME), Kind::Ours, setting));
    all.push(of::<RtrbChunks, N>(<RtrbChunks as Peer>::NAME.to_owned(), Kind::Peer, setting));
    all.push(of::<Gil, N>(<Gil as Peer>::NAME.to_owned(), Kind::Peer, setting));
    #[cfg(feature = "dpdk")]
    all.push(of::<Foreign<RteRingZc>, N>(
        Foreign::<RteRingZc>::NAME.to_owned(),
        Kind::Peer,
        setting,
    ));
    all.extend(copies::<N>(setting));
    all
}

/// What the copies of `N` entries take, without a queue.
fn copies<const N: usize>(setting: Setting) -> Vec<Row> {
    let limit = |name, run: Measure| row(name, Kind::Limit, setting, run);
    vec![
        limit("bare copies", bare_copies::<N, false>),
        limit("bare copies, marked and checked", bare_copies::<N, true>),
    ]
}

/// One thread pushes `N` entries of 8 bytes, then pops them.
fn eight_bytes<const N: usize>(setting: Setting) -> Vec<Row> {
    let (array, spare) = (ours("queue"), ours("queue, spare bits"));
    Vec::from([
        row(array, Kind::Ours, setting, <PushPop<N> as Run<u64>>::run::<Soft>),
        row(spare, Kind::Ours, setting, <PushPop<N> as Run<Spare>>::run::<Soft>),
        other::<PushPop<N>, RtrbSingle, u64>(setting),
        other::<PushPop<N>, RtrbChunks, u64>(setting),
        other::<PushPop<N>, Gil, u64>(setting),
        other::<PushPop<N>, Heapless, u64>(setting),
    ])
}

/// Two threads push by `N`.
fn producers<const N: usize>(setting: Setting) -> Vec<Row> {
    Vec::from([
        row(ours(Shared::NAME), Kind::Ours, setting, two_producers::<Shared, N>),
        row(Crossbeam::NAME, Kind::Peer, setting, two_producers::<Crossbeam, N>),
        row(Kanal::NAME, Kind::Peer, setting, two_producers::<Kanal, N>),
        #[cfg(feature = "dpdk")]
        row(
            Foreign::<RteRingMp>::NAME,
            Kind::Peer,
            setting,
            two_producers::<Foreign<RteRingMp>, N>,
        ),
    ])
}
