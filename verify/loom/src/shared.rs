//! A queue with several producers, which threads can own together, and what each of them pushes.

use std::sync::Arc;

use cq_core::ring::{Gate, Position, Slot};
use cq_core::soft::Alerts;
use cq_core::soft::shared::{Consumer, Parts, Producer};
use cq_core::transport::{NoSignal, Signal};
use cq_core::wc::Wc;

use crate::queue::{KEY, expect, numbered};

/// A queue on the heap, with the storage of every ring that it will have.
pub struct SharedQueue {
    alerts: Alerts,
    rings: Vec<Memory>,
}

struct Memory {
    gate: Gate,
    slots: Vec<Slot>,
}

impl SharedQueue {
    /// A queue whose rings have these capacities and begin at `start`.
    #[must_use]
    pub fn new(capacities: &[usize], start: Position) -> Arc<Self> {
        let memory = |&capacity: &usize| Memory {
            gate: Gate::at(start),
            slots: (0..capacity).map(|_| Slot::new()).collect(),
        };
        Arc::new(Self { alerts: Alerts::new(), rings: capacities.iter().map(memory).collect() })
    }

    /// One of its rings.
    pub fn ring(&self, nth: usize) -> Parts<'_> {
        let Memory { gate, slots } = &self.rings[nth];
        Parts::new(gate, slots, &[], slots.len() as u32).expect("a legal capacity")
    }

    /// A producer of a queue without a channel.
    pub fn producer(&self) -> Producer<'_> {
        self.ring(0).producer(&self.alerts, KEY, None::<NoSignal>)
    }

    /// A producer of a queue with a channel.
    pub fn producer_with<S: Signal>(&self, signal: S) -> Producer<'_, S> {
        self.ring(0).producer(&self.alerts, KEY, Some(signal))
    }

    /// The consumer of a queue with (`events`) or without a channel.
    pub fn consumer(&self, events: bool) -> Consumer<'_> {
        self.ring(0).consumer(&self.alerts, KEY, events)
    }
}

/// The `nth` completion, from 1, of a producer.
#[must_use]
pub fn of(producer: u64, nth: u64) -> Wc {
    numbered(producer * 64 + nth)
}

/// What has come of each producer.
#[derive(Default)]
pub struct Taken([u64; 2]);

impl Taken {
    /// Checks that each of these is the next of its producer, whole.
    ///
    /// # Panics
    /// One is not.
    pub fn add(&mut self, wcs: &[Wc]) {
        for wc in wcs {
            let taken = &mut self.0[usize::from(wc.wr_id() >= 64)];
            *taken += 1;
            expect(wc, wc.wr_id() / 64 * 64 + *taken);
        }
    }

    /// How many have come.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }
}
