//! What is measured, and how each row does it.

use std::cell::RefCell;
use std::rc::Rc;

use bench::cores::Cores;
use bench::turns::{Kind, Row, Sample, Scenario};

use crate::bare;
use crate::crowd::Crowd;
use crate::end::{BATCH, Direction, End};
use crate::far::{Near, Order};
use crate::ucx::{self, Test};

/// Bytes of a WRITE or READ.
const SIZES: [usize; 4] = [64, 4 << 10, LARGE, 1 << 20];
/// What an aim is set for.
const LARGE: usize = 64 << 10;

/// What the ratio to the other's is to be.
pub struct Aim {
    /// Of the ratio of times: 1, or for one of rates -1.
    pub exponent: i32,
    /// As the table has it.
    pub text: String,
}

impl Aim {
    /// Of times: at most this.
    fn time(most: f64) -> Self {
        Self { exponent: 1, text: format!("time ≤ {most}") }
    }

    /// Of rates: at least this, if there is an aim.
    fn rate(least: Option<f64>) -> Self {
        let least = least.map_or_else(String::new, |least| format!(" ≥ {least}"));
        Self { exponent: -1, text: format!("rate{least}") }
    }
}

/// The two processes of ours.
struct Rig {
    cores: Cores,
    small: End,
    tiny: End,
    far_heap: u64,
    // Last: the far process ends after its pairs.
    near: Near,
}

impl Rig {
    fn new(cores: Cores) -> Self {
        let mut near = Near::start(move || cores.settle(1));
        let (small, _) = near.pair(64, false);
        let (tiny, far) = near.pair(8, false);
        Self { cores, small, tiny, far_heap: far.heap(), near }
    }

    /// `here` on this core, which does the thing `count` times, while the far process does what is ordered on the other.
    fn both(&mut self, count: u64, order: Order, here: impl FnOnce(&mut End, &mut End)) -> Sample {
        let Self { cores, small, tiny, near, .. } = self;
        Sample::both(*cores, count, || here(small, tiny), || near.order(order))
    }
}

/// Everything that aims are set for, and the aim.
pub fn all(cores: Cores) -> Vec<(Scenario, Aim)> {
    let rig = Rc::new(RefCell::new(Rig::new(cores)));
    let ours = |run: fn(&mut Rig, u64) -> Sample| row(&rig, "rxe-loop", Kind::Ours, run);
    let latency = ours(|rig, count| {
        let count = count.div_ceil(2);
        rig.both(2 * count, Order::Pong { end: 0, count }, |small, _| small.ping(count, true))
    });
    let writes = ours(|rig, count| {
        let count = count.div_ceil(2);
        let order = Order::Exchange { end: 1, count };
        rig.both(2 * count, order, |_, tiny| tiny.exchange(count, true))
    });
    let rate = ours(|rig, count| {
        let count = count.next_multiple_of(BATCH as u64);
        rig.both(count, Order::Drain { end: 1, count }, |_, tiny| tiny.stream(count))
    });
    let mut all: Vec<_> = [
        ("SEND of 64 bytes, one way, ns", Aim::time(1.2), latency, "UCX tag_lat", Test::TagLatency),
        ("WRITE of 8 bytes, one way, ns", Aim::time(1.8), writes, "UCX put_lat", Test::PutLatency),
        (
            "SENDs of 8 bytes, ns for one",
            Aim::rate(Some(0.9)),
            rate,
            "UCX am_bw",
            Test::MessageRate,
        ),
    ]
    .into_iter()
    .map(|(name, aim, ours, other, test)| {
        let other = Row::new(other, Kind::Peer, move |count| ucx::run(test, cores, count));
        let rows = [ours].into_iter().chain(ucx::is_there().then_some(other));
        (Scenario { name: name.to_owned(), cores: 2, rows: rows.collect() }, aim)
    })
    .collect();
    all.push(crowd());
    for direction in [Direction::Write, Direction::Read] {
        all.extend(SIZES.map(|len| copies(&rig, len, direction)));
    }
    all
}

/// What the two processes do.
fn row(
    rig: &Rc<RefCell<Rig>>,
    name: &str,
    kind: Kind,
    run: impl Fn(&mut Rig, u64) -> Sample + 'static,
) -> Row {
    let rig = Rc::clone(rig);
    Row::new(name, kind, move |count| run(&mut rig.borrow_mut(), count))
}

/// The same by many queue pairs and by few, as deep as an application of many has them.
fn crowd() -> (Scenario, Aim) {
    const DEPTH: u32 = 8;
    let rows = [("1,000 queue pairs", 500), ("2 queue pairs", 1)].map(|(name, pairs)| {
        let mut crowd = Crowd::new(pairs, DEPTH);
        Row::new(name, Kind::Ours, move |count| Sample::alone(count, || crowd.send(count)))
    });
    let name = "SEND of 64 bytes by many queue pairs, ns".to_owned();
    (Scenario { name, cores: 1, rows: rows.into() }, Aim::time(1.25))
}

fn copies(rig: &Rc<RefCell<Rig>>, len: usize, direction: Direction) -> (Scenario, Aim) {
    let ours = row(rig, "rxe-loop", Kind::Ours, move |rig, count| {
        Sample::alone(count, || (0..count).for_each(|_| rig.tiny.transfer(len, direction)))
    });
    let bare = row(rig, bare::name(direction), Kind::Peer, move |rig, count| {
        let there = (rig.near.pid(), rig.far_heap);
        let transfer = |_| bare::transfer(&rig.tiny, there, len, direction);
        Sample::alone(count, || (0..count).for_each(transfer))
    });
    let aim = Aim::rate((len == LARGE).then_some(0.9));
    let name = format!("{direction:?} of {len} bytes, ns");
    (Scenario { name, cores: 1, rows: vec![ours, bare] }, aim)
}
