//! A completion queue that processes push to in turns, each of which can be killed, and what it settles.

use std::cell::Cell;
use std::sync::Arc;

use cq_core::queue::raw::{self, RawQueue};
use cq_core::queue::{DroppedError, OnChannel, Position, Tagged};
use cq_core::transport::{CqKey, PollCq, Signal};
use cq_core::wc::{Wc, WcOpcode, WcStatus};
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use transport_rxe_loop::protocol::fanin::{Fanin, Location};
use transport_rxe_loop::protocol::lock::AttachmentKey;
use transport_rxe_loop::protocol::number;
use transport_rxe_loop::protocol::tag;
use transport_rxe_loop::sync::{self, AtomicU64, death};

use crate::queue::{KEY, Queue};

/// What the assertions about completions say.
pub const WRONG: &str = "lost, doubled or out of order";
/// What the assertions about positions say.
pub const UNSETTLED: &str = "settled is not what was published";

/// The consumer's side of the queue.
pub type Consumer<'a> = raw::RawConsumer<'a, OnChannel>;

/// What is right and wrong in a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The step at which a process is killed.
    pub death: u32,
    /// Whether those repair who inherit from it.
    pub repairs: bool,
    /// Whether every queue is rung after a death, not only those whose lock was held.
    pub rings_all: bool,
}

impl Plan {
    /// All as the protocol has it.
    pub const fn dying_at(death: u32) -> Self {
        Self { death, repairs: true, rings_all: true }
    }
}

/// A queue on the heap, with the rings that it will have, two queue pairs, and what is known of the dead.
pub struct World {
    plan: Plan,
    fanin: Fanin,
    /// Each with as many slots.
    rings: Vec<(Arc<Queue>, u32)>,
    settled: [AtomicU64; 2],
    dead: [AtomicU32; 3],
}

/// The name of a process.
pub fn owner(process: usize) -> AttachmentKey {
    AttachmentKey::new(process as u16, 1)
}

/// The completion of the `nth` receive, from 0, of a queue pair.
pub fn entry(qp: usize, nth: u64) -> Tagged {
    let wc = Wc::new(nth, WcStatus::SUCCESS, qp as u32).with_opcode(WcOpcode::RECV);
    Tagged { wc, tag: tag::of_recv(number::Position::new(nth + 1)), solicited: false }
}

/// Nobody needs waking.
pub const SILENT: &(CqKey, fn()) = &(KEY, || ());

/// Who has the lock.
struct Held<'w> {
    world: &'w World,
    /// Whether an event is to be raised.
    asked: Cell<bool>,
}

impl World {
    /// A queue that lies in the first of these rings, which have so many slots.
    pub fn new(capacities: &[u32], plan: Plan) -> Arc<Self> {
        let world = Self {
            plan,
            fanin: Fanin::default(),
            rings: capacities.iter().map(|&slots| (Queue::new(slots), slots)).collect(),
            settled: [AtomicU64::new(0), AtomicU64::new(0)],
            dead: [AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0)],
        };
        world.fanin.begin(world.location(0));
        Arc::new(world)
    }

    fn location(&self, ring: usize) -> Location {
        let storage = self.rings[ring].1;
        Location {
            offset: ring as u32,
            log2: storage.trailing_zeros(),
            promised: storage,
            is_exact: false,
        }
    }

    /// One of its rings.
    pub fn ring(&self, nth: usize) -> RawQueue<'_> {
        self.rings[nth].0.open()
    }

    /// The ring that is the queue's.
    fn queue(&self) -> RawQueue<'_> {
        let location = self.fanin.location();
        assert_eq!(location, self.location(location.offset as usize), "a ring that never was");
        self.ring(location.offset as usize)
    }

    /// The consumer, of the ring that is the queue's.
    pub fn consumer(&self, from: Position) -> Consumer<'_> {
        self.queue().into_consumer(from, OnChannel::named(KEY))
    }

    /// How many receives of a queue pair have completed.
    pub fn settled(&self, qp: usize) -> u64 {
        self.settled[qp].load(Ordering::Relaxed)
    }

    /// The process lives `life`, or is killed in it, of which the kernel knows then; whether it lived.
    pub fn live(&self, process: usize, death: u32, life: impl FnOnce()) -> bool {
        let lived = death::killed_at(death, life).is_some();
        if !lived {
            self.dead[process].store(1, Ordering::Release);
        }
        lived
    }

    /// Whether the kernel knows that a process is dead.
    pub fn is_dead(&self, process: usize) -> bool {
        self.dead[process].load(Ordering::Acquire) == 1
    }

    /// Waits for the lock, and inherits it from the dead.
    fn enter(&self, me: usize) -> Held<'_> {
        let held = Held { world: self, asked: Cell::new(false) };
        while !self.fanin.lock.try_enter(owner(me)) {
            if self.inherit(me) {
                held.repair();
                break;
            }
            thread::yield_now();
        }
        held
    }

    fn inherit(&self, me: usize) -> bool {
        let lock = &self.fanin.lock;
        lock.holder().is_some_and(|holder| {
            self.is_dead(holder.attachment().get().into()) && lock.inherit(holder, owner(me))
        })
    }

    /// Pushes these under one lock, and raises the event.
    ///
    /// # Panics
    /// The queue has overrun.
    pub fn push(&self, me: usize, entries: &[Tagged], signal: &impl Signal) {
        self.push_or_overrun(me, entries, signal).unwrap();
    }

    /// The same where the queue may overrun.
    ///
    /// # Errors
    /// It has.
    pub fn push_or_overrun(
        &self,
        me: usize,
        entries: &[Tagged],
        signal: &impl Signal,
    ) -> Result<(), DroppedError> {
        let held = self.enter(me);
        let pushed = held.push(entries);
        held.leave(signal);
        pushed
    }

    /// Looks after the dead, of whom this process knows.
    pub fn recover(&self, me: usize, signal: &impl Signal) {
        if self.inherit(me) {
            let held = Held { world: self, asked: Cell::new(false) };
            held.repair();
            held.leave(signal);
        }
        if self.plan.rings_all {
            signal.raise();
        }
    }

    /// Completes what is left of the receives of a queue pair, of which there are so many.
    pub fn flush(&self, me: usize, qp: usize, receives: u64, signal: &impl Signal) {
        for _ in 0..receives {
            let held = self.enter(me);
            let next = self.settled(qp);
            if next < receives {
                held.push(&[entry(qp, next)]).unwrap();
            }
            held.leave(signal);
        }
    }

    /// Moves the queue, whose consumer this is, to another of its rings.
    pub fn resize<'w>(&'w self, me: usize, from: &mut Consumer<'_>, to: usize) -> Consumer<'w> {
        let held = self.enter(me);
        let to = (self.location(to), self.ring(to));
        let consumer = self.fanin.move_to((from, &self.queue()), to, OnChannel::named(KEY));
        held.leave(SILENT);
        consumer
    }
}

impl Held<'_> {
    fn repair(&self) {
        let world = self.world;
        if world.plan.repairs {
            let _state = world.fanin.repair(&world.queue(), |wc, tag| world.settle(wc, tag));
            self.asked.set(true);
        }
    }

    fn push(&self, entries: &[Tagged]) -> Result<(), DroppedError> {
        let (world, mut queue) = (self.world, self.world.queue());
        let asks = (KEY, || self.asked.set(true));
        let mut producer = world.fanin.producer(&mut queue, asks);
        let settle = |part: &[Tagged]| {
            part.iter().for_each(|entry| world.settle(&entry.wc, entry.tag));
        };
        world.fanin.push_all(&mut producer, entries, settle)
    }

    fn leave(self, signal: &impl Signal) {
        self.world.fanin.lock.leave();
        if self.asked.get() && death::step() {
            signal.raise();
        }
    }
}

impl World {
    fn settle(&self, wc: &Wc, tag: u32) {
        sync::fetch_update(&self.settled[wc.qp_num() as usize], |settled| {
            tag::past(number::Position::new(settled), tag, 4).map(number::Position::get)
        });
    }
}

/// What has come of each queue pair.
#[derive(Debug, Default)]
pub struct Taken([u64; 2]);

impl Taken {
    /// Checks that each of these is the next of its queue pair.
    ///
    /// # Panics
    /// One is not.
    pub fn add(&mut self, wcs: &[Wc]) {
        for wc in wcs {
            let taken = &mut self.0[wc.qp_num() as usize];
            assert_eq!(*wc, entry(wc.qp_num() as usize, *taken).wc, "{WRONG}");
            *taken += 1;
        }
    }

    /// Takes what there is.
    ///
    /// # Panics
    /// It is not next, or the queue has overrun.
    pub fn poll(&mut self, consumer: &mut Consumer<'_>) {
        let mut buffer = [Wc::default(); 8];
        let count = consumer.poll_into(&mut buffer).unwrap();
        self.add(&buffer[..count]);
    }

    /// [`poll`](Self::poll); false if the queue has overrun.
    ///
    /// # Panics
    /// What comes is not next.
    pub fn poll_until_overrun(&mut self, consumer: &mut Consumer<'_>) -> bool {
        let mut buffer = [Wc::default(); 8];
        let polled = consumer.poll_into(&mut buffer);
        self.add(&buffer[..polled.unwrap_or(0)]);
        polled.is_ok()
    }

    /// How many have come.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Checks that this is all that there was, and that it is settled.
    ///
    /// # Panics
    /// It is not.
    pub fn expect(&self, world: &World, all: [u64; 2]) {
        assert_eq!(self.0, all, "{WRONG}");
        assert_eq!([0, 1].map(|qp| world.settled(qp)), all, "{UNSETTLED}");
    }
}
