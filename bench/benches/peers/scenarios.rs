//! What is measured, and how each row does it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bench::cores::Cores;

use crate::crowd::Crowd;
use crate::placement::{Placement, on_two_cores};
use crate::processes::bare;
use crate::processes::end::{Direction, End};
use crate::processes::far::Order;
use crate::processes::near::Near;
use crate::sample::Sample;
use crate::ucx::{self, Test};

/// Bytes of a WRITE or READ.
const SIZES: [usize; 4] = [64, 4 << 10, LARGE, 1 << 20];
/// What an aim is set for.
const LARGE: usize = 64 << 10;

/// What the two rows are compared by.
pub struct Scenario {
    pub name: String,
    /// By what the rows are compared, and what is to be reached.
    pub aim: Aim,
    /// Ours, then the other if it is there.
    pub rows: Vec<Row>,
}

/// A ratio to the other's.
#[derive(Clone, Copy)]
pub enum Aim {
    /// Of times: at most.
    Time(f64),
    /// Of rates: at least, if there is an aim.
    Rate(Option<f64>),
}

/// Who does it, and how.
pub struct Row {
    pub name: &'static str,
    run: Box<dyn FnMut(u64) -> Sample>,
}

impl Row {
    fn new(name: &'static str, run: impl FnMut(u64) -> Sample + 'static) -> Self {
        Self { name, run: Box::new(run) }
    }

    /// Does it so often.
    pub fn run(&mut self, count: u64) -> Sample {
        (self.run)(count)
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
        let mut near = Near::start(move || cores.settle_second());
        let (small, _) = near.pair(64);
        let (tiny, far) = near.pair(8);
        Self { cores, small, tiny, far_heap: far.heap(), near }
    }

    /// `here` on this core while the far process does what is ordered on the other.
    fn both(
        &mut self,
        order: Order,
        ends: impl FnOnce(&mut End, &mut End),
    ) -> (Duration, Placement) {
        let Self { cores, small, tiny, near, .. } = self;
        let here = || {
            let start = Instant::now();
            ends(small, tiny);
            start.elapsed()
        };
        let (elapsed, (), placement) = on_two_cores(*cores, here, || near.order(order));
        (elapsed, placement)
    }

    /// `here` on this core while the far process is idle.
    fn alone(&mut self, here: impl FnOnce(&mut Self)) -> (Duration, Placement) {
        let start = Instant::now();
        here(self);
        (start.elapsed(), Placement::OneCore)
    }
}

/// Of `parts` in so long.
fn sample((elapsed, placement): (Duration, Placement), parts: u64) -> Sample {
    Sample { nanos: elapsed.as_secs_f64() * 1e9 / parts as f64, placement }
}

/// Everything that aims are set for.
pub fn all(cores: Cores) -> Vec<Scenario> {
    let rig = Rc::new(RefCell::new(Rig::new(cores)));
    let mut all = vec![latency(&rig, cores), writes(&rig, cores), rate(&rig, cores), crowd()];
    for direction in [Direction::Write, Direction::Read] {
        all.extend(SIZES.map(|len| copies(&rig, len, direction)));
    }
    all
}

fn latency(rig: &Rc<RefCell<Rig>>, cores: Cores) -> Scenario {
    let rig = Rc::clone(rig);
    let ours = Row::new("rxe-loop", move |count| {
        let order = Order::Pong { end: 0, count };
        sample(rig.borrow_mut().both(order, |small, _| small.ping(count)), 2 * count)
    });
    let mut rows = vec![ours];
    rows.extend(ucx_row("UCX tag_lat", Test::TagLatency, cores));
    Scenario { name: "SEND of 64 bytes, one way, ns".to_owned(), aim: Aim::Time(1.2), rows }
}

fn writes(rig: &Rc<RefCell<Rig>>, cores: Cores) -> Scenario {
    let rig = Rc::clone(rig);
    let ours = Row::new("rxe-loop", move |count| {
        let order = Order::Exchange { end: 1, count };
        sample(rig.borrow_mut().both(order, |_, tiny| tiny.exchange(count, true)), 2 * count)
    });
    let mut rows = vec![ours];
    rows.extend(ucx_row("UCX put_lat", Test::PutLatency, cores));
    Scenario { name: "WRITE of 8 bytes, one way, ns".to_owned(), aim: Aim::Time(1.8), rows }
}

fn rate(rig: &Rc<RefCell<Rig>>, cores: Cores) -> Scenario {
    let rig = Rc::clone(rig);
    let ours = Row::new("rxe-loop", move |count| {
        let order = Order::Drain { end: 1, count };
        sample(rig.borrow_mut().both(order, |_, tiny| tiny.stream(count)), count)
    });
    let mut rows = vec![ours];
    rows.extend(ucx_row("UCX am_bw", Test::MessageRate, cores));
    Scenario { name: "SENDs of 8 bytes, ns for one".to_owned(), aim: Aim::Rate(Some(0.9)), rows }
}

/// The same by many queue pairs and by few, as deep as an application of many has them.
fn crowd() -> Scenario {
    const DEPTH: u32 = 8;
    let rows = [("1,000 queue pairs", 500), ("2 queue pairs", 1)].map(|(name, pairs)| {
        let mut crowd = Crowd::new(pairs, DEPTH);
        Row::new(name, move |count| {
            let start = Instant::now();
            crowd.send(count);
            sample((start.elapsed(), Placement::OneCore), count)
        })
    });
    Scenario {
        name: "SEND of 64 bytes by many queue pairs, ns".to_owned(),
        aim: Aim::Time(1.25),
        rows: rows.into(),
    }
}

fn ucx_row(name: &'static str, test: Test, cores: Cores) -> Option<Row> {
    ucx::is_there().then(|| Row::new(name, move |count| ucx::run(test, cores, count)))
}

fn copies(rig: &Rc<RefCell<Rig>>, len: usize, direction: Direction) -> Scenario {
    let (ours, bare) = (Rc::clone(rig), Rc::clone(rig));
    let rows = vec![
        Row::new("rxe-loop", move |count| {
            let timed = ours.borrow_mut().alone(|rig| {
                (0..count).for_each(|_| rig.tiny.transfer(len, direction));
            });
            sample(timed, count)
        }),
        Row::new(bare::name(direction), move |count| {
            let timed = bare.borrow_mut().alone(|rig| {
                let there = (rig.near.pid(), rig.far_heap);
                (0..count).for_each(|_| bare::transfer(&rig.tiny, there, len, direction));
            });
            sample(timed, count)
        }),
    ];
    let aim = Aim::Rate((len == LARGE).then_some(0.9));
    Scenario { name: format!("{direction:?} of {len} bytes, ns"), aim, rows }
}
