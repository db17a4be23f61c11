//! A transport of one's own in 100 lines: a DMA engine that carries out a ring of descriptors in their order and writes to
//! each how it ended. It polls in order and loses no event: the test kit says so.
//!
//! `cargo run -p cq-core --example own_transport`

use std::cell::Cell;
use std::rc::Rc;

use cq_core::testing::rules::{self, Fixture, Kind};
use cq_core::transport::{
    Arm, ArmError, Armed, CqKey, EventError, Events, Notify, PollCq, PollError,
};
use cq_core::wc::Wc;

const DESCRIPTORS: usize = 8;
const KEY: CqKey = CqKey { index: 0, generation: 1 };

/// What a descriptor holds once the engine is through with it.
type Done = Option<(Kind, u64)>;

/// What the engine and the driver share: registers and a ring, in memory that both see.
#[derive(Default)]
struct Engine {
    ring: [Cell<Done>; DESCRIPTORS],
    /// What its interrupt is enabled for.
    enabled: Cell<Option<Notify>>,
    pending: Cell<bool>,
}

impl Engine {
    /// The engine is through with the next descriptor.
    fn finish(&self, descriptor: usize, kind: Kind, wr_id: u64) {
        self.ring[descriptor % DESCRIPTORS].set(Some((kind, wr_id)));
        let urgent = matches!(kind, Kind::Solicited | Kind::Failure);
        let wanted = self.enabled.get().is_some_and(|on| on == Notify::Next || urgent);
        if wanted {
            // Off before the interrupt, so that none is lost which is enabled by its handler.
            self.enabled.set(None);
            self.pending.set(true);
        }
    }
}

/// The driver's side: the transport.
struct Driver {
    engine: Rc<Engine>,
    next: usize,
}

impl PollCq for Driver {
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let mut count = 0;
        while count < out.len() {
            let Some((kind, wr_id)) = self.engine.ring[self.next % DESCRIPTORS].take() else {
                break;
            };
            out[count] = kind.wc(wr_id);
            (count, self.next) = (count + 1, self.next.wrapping_add(1));
        }
        Ok(count)
    }
}

impl Arm for Driver {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        // An arm for more stays (N4).
        self.engine.enabled.set(self.engine.enabled.get().max(Some(on)));
        // Looked at after the interrupt is enabled: one of the two sides sees the other (N6).
        let head = &self.engine.ring[self.next % DESCRIPTORS];
        Ok(if head.get().is_some() { Armed::MayHaveMissed } else { Armed::Armed })
    }

    fn key(&self) -> CqKey {
        KEY
    }
}

/// The interrupt controller: the channel.
struct Interrupts(Rc<Engine>);

impl Events for Interrupts {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.0.pending.take().then_some(KEY))
    }
}

/// All of it, for the test kit.
struct Bench {
    driver: Driver,
    interrupts: Interrupts,
    posted: usize,
}

impl Fixture for Bench {
    type Queue = Driver;
    type Channel = Interrupts;
    const CAPACITY: usize = DESCRIPTORS;

    fn new() -> Self {
        let engine = Rc::new(Engine::default());
        let interrupts = Interrupts(Rc::clone(&engine));
        Self { driver: Driver { engine, next: 0 }, interrupts, posted: 0 }
    }

    fn queue(&mut self) -> &mut Driver {
        &mut self.driver
    }

    fn channel(&mut self) -> &mut Interrupts {
        &mut self.interrupts
    }

    fn complete(&mut self, kind: Kind, wr_id: u64) {
        self.driver.engine.finish(self.posted, kind, wr_id);
        self.posted += 1;
    }
}

fn main() -> Result<(), rules::Broken> {
    rules::all::<Bench>()?;
    println!("the transport keeps P1 to P7 and N1 to N6");
    Ok(())
}
