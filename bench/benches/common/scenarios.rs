//! What can be asked, and of which queues: the rows of both benches.

use bench::cores::Cores;
use bench::turns::{Kind, Row, Sample, Scenario};
use cq_core::wc::Wc;

use super::entries::{Item, Spare};
use super::peer::{Peer, Reader};
#[cfg(feature = "dpdk")]
use super::peers::RteRing;
use super::peers::{
    Crossbeam, Gil, Heapless, Raw, Rigtorp, Ringbuf, RtrbChunks, RtrbSingle, Shared, Soft,
};
use super::runs::Setting;
use super::runs::limits::{one_load, two_lines};
use super::runs::producers::two_producers;
use super::runs::sleep::{bare_event, bare_trip, soft_event, soft_trip};
use super::runs::spsc::{EmptyPoll, PushPop, RoundTrip, Run, Stream, push_read};

/// The capacity where none is named.
pub const USUAL: usize = 1024;

/// The largest capacity.
pub const MANY: usize = 65536;

/// One thread pushes `N` entries, then pops them.
pub fn one_thread<const N: usize>(cores: Cores, capacity: usize) -> Scenario {
    let name = format!("one thread, n = {N}, capacity {capacity}, ns/entry");
    Scenario { name, cores: 1, rows: rows::<PushPop<N>>(Setting { cores, capacity }) }
}

/// One thread pushes `N` entries, then reads them where they lie.
pub fn in_place<const N: usize>(cores: Cores, capacity: usize) -> Scenario {
    fn of<P: Peer, const N: usize>(name: String, kind: Kind, setting: Setting) -> Row
    where
        for<'a> P::Receiver<'a>: Reader,
    {
        row(name, kind, setting, push_read::<P, N>)
    }
    let (setting, ours) = (Setting { cores, capacity }, ours("queue, in place"));
    let rows = Vec::from([
        of::<Soft<false>, N>(ours, Kind::Ours, setting),
        of::<RtrbChunks, N>(<RtrbChunks as Peer>::NAME.to_owned(), Kind::Peer, setting),
        of::<Gil, N>(<Gil as Peer>::NAME.to_owned(), Kind::Peer, setting),
    ]);
    Scenario {
        name: format!("one thread, n = {N}, in place, capacity {capacity}, ns/entry"),
        cores: 1,
        rows,
    }
}

/// One thread pushes `N` entries of 8 bytes, then pops them.
pub fn eight_bytes<const N: usize>(cores: Cores, capacity: usize) -> Scenario {
    let setting = Setting { cores, capacity };
    let (array, spare) = (ours("queue"), ours("queue, spare bits"));
    let rows = Vec::from([
        row(array, Kind::Ours, setting, <PushPop<N> as Run<u64>>::run::<Soft<false>>),
        row(spare, Kind::Ours, setting, <PushPop<N> as Run<Spare>>::run::<Soft<false>>),
        other::<PushPop<N>, RtrbSingle, u64>(setting),
        other::<PushPop<N>, RtrbChunks, u64>(setting),
        other::<PushPop<N>, Gil, u64>(setting),
        other::<PushPop<N>, Heapless, u64>(setting),
    ]);
    Scenario {
        name: format!("one thread, n = {N}, 8 bytes, capacity {capacity}, ns/entry"),
        cores: 1,
        rows,
    }
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

/// A peer's row.
fn other<R: Run<E>, P: Peer<E>, E: Item>(setting: Setting) -> Row {
    row(P::NAME, Kind::Peer, setting, R::run::<P>)
}

/// The queues.
fn rows<R: Run>(setting: Setting) -> Vec<Row> {
    fn our<R: Run, P: Peer>(setting: Setting) -> Row {
        row(ours(P::NAME), Kind::Ours, setting, R::run::<P>)
    }
    Vec::from([
        our::<R, Soft<false>>(setting),
        our::<R, Soft<true>>(setting),
        our::<R, Raw>(setting),
        other::<R, RtrbSingle, Wc>(setting),
        other::<R, RtrbChunks, Wc>(setting),
        other::<R, Gil, Wc>(setting),
        other::<R, Rigtorp, Wc>(setting),
        other::<R, Heapless, Wc>(setting),
        other::<R, Ringbuf, Wc>(setting),
        other::<R, Crossbeam, Wc>(setting),
        #[cfg(feature = "dpdk")]
        other::<R, RteRing<false>, Wc>(setting),
    ])
}
