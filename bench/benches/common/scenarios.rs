//! What can be asked, and of which queues: the rows of both benches.

use bench::cores::Cores;
use bench::turns::{Kind, Row, Sample, Scenario};

use super::peer::Peer;
#[cfg(feature = "dpdk")]
use super::peers::RteRing;
use super::peers::{
    Crossbeam, Gil, Heapless, Raw, Rigtorp, Ringbuf, RtrbChunks, RtrbSingle, Shared, Soft,
};
use super::runs::Setting;
use super::runs::limits::{one_load, two_lines};
use super::runs::producers::two_producers;
use super::runs::sleep::{bare_event, bare_trip, soft_event, soft_trip};
use super::runs::spsc::{EmptyPoll, PushPop, RoundTrip, Run, Stream};

/// The capacity where none is named.
pub const USUAL: usize = 1024;

/// The largest capacity.
pub const MANY: usize = 65536;

/// One thread pushes `N` entries, then pops them.
pub fn one_thread<const N: usize>(cores: Cores, capacity: usize) -> Scenario {
    let name = format!("one thread, n = {N}, capacity {capacity}, ns/entry");
    Scenario { name, cores: 1, rows: rows::<PushPop<N>>(Setting { cores, capacity }) }
}

/// One thread pushes by `TX`, another pops by up to `RX`.
pub fn two_threads<const TX: usize, const RX: usize>(cores: Cores, capacity: usize) -> Scenario {
    let name = format!("two threads, {TX}:{RX}, capacity {capacity}, ns/entry");
    Scenario { name, cores: 2, rows: rows::<Stream<TX, RX>>(Setting { cores, capacity }) }
}

/// Two threads push by `N`.
pub fn producers<const N: usize>(cores: Cores, capacity: usize) -> Scenario {
    let name = format!("two producers, n = {N}, capacity {capacity}, ns/entry");
    let setting = Setting { cores, capacity };
    let rows = Vec::from([
        row(ours(Shared::NAME), Kind::Ours, setting, two_producers::<Shared, N>),
        row(Crossbeam::NAME, Kind::Peer, setting, two_producers::<Crossbeam, N>),
        #[cfg(feature = "dpdk")]
        row(RteRing::<true>::NAME, Kind::Peer, setting, two_producers::<RteRing<true>, N>),
    ]);
    Scenario { name, cores: 2, rows }
}

/// What is asked whatever the batch and the capacity:
/// - one thread polls an empty queue, and polls one by a call;
/// - one thread arms, pushes, and takes the event;
/// - an entry goes to another thread and back, both of which spin, or sleep, meanwhile.
pub fn others(cores: Cores) -> [Scenario; 5] {
    let [usual, small] = [USUAL, 64].map(|capacity| Setting { cores, capacity });
    let mut polls = rows::<EmptyPoll<32, false>>(usual);
    polls.push(row("a load and a comparison", Kind::Limit, usual, one_load));
    let mut trips = rows::<RoundTrip>(usual);
    trips.push(row("two bare cache lines", Kind::Limit, usual, two_lines));
    let sleeper = |soft_run: Measure, bare_run: Measure| {
        let bare = row("bare eventfd", Kind::Limit, small, bare_run);
        vec![row(ours("queue, eventfd"), Kind::Ours, small, soft_run), bare]
    };
    [
        ("empty poll, inlined, ns/poll", 1, polls),
        ("empty poll, called, ns/poll", 1, rows::<EmptyPoll<32, true>>(usual)),
        ("one thread, arm, push, event, ns", 1, sleeper(soft_event, bare_event)),
        ("two threads, round trip, ns", 2, trips),
        ("two threads, sleeping round trip, ns", 2, sleeper(soft_trip, bare_trip)),
    ]
    .map(|(name, cores, rows)| Scenario { name: name.to_owned(), cores, rows })
}

/// Measures about as many entries, polls or round trips as it is told.
type Measure = fn(Setting, u64) -> Sample;

fn row(name: impl Into<String>, kind: Kind, setting: Setting, run: Measure) -> Row {
    Row::new(name, kind, move |count| run(setting, count))
}

fn ours(name: &str) -> String {
    format!("cq-core {name}")
}

/// The queues.
fn rows<R: Run>(setting: Setting) -> Vec<Row> {
    fn our<R: Run, P: Peer>(setting: Setting) -> Row {
        row(ours(P::NAME), Kind::Ours, setting, R::run::<P>)
    }
    fn other<R: Run, P: Peer>(setting: Setting) -> Row {
        row(P::NAME, Kind::Peer, setting, R::run::<P>)
    }
    Vec::from([
        our::<R, Soft<false>>(setting),
        our::<R, Soft<true>>(setting),
        our::<R, Raw>(setting),
        other::<R, RtrbSingle>(setting),
        other::<R, RtrbChunks>(setting),
        other::<R, Gil>(setting),
        other::<R, Rigtorp>(setting),
        other::<R, Heapless>(setting),
        other::<R, Ringbuf>(setting),
        other::<R, Crossbeam>(setting),
        #[cfg(feature = "dpdk")]
        other::<R, RteRing<false>>(setting),
    ])
}
