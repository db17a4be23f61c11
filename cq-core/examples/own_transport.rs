//! A custom transport: a DMA engine that executes a ring of descriptors in order and writes a status to each. The test
//! kit checks that it polls in order and loses no wake-up.
//!
//! `cargo run -p cq-core --example own_transport`

use std::cell::Cell;
use std::rc::Rc;

use cq_core::queue::Completion;
use cq_core::transport::{
    Arm, ArmError, Armed, CqKey, EventError, Events, Notify, PollCq, PollError,
};
use cq_core::wc::Wc;
use cq_testing::rules::{self, Fixture, Kind};

const DESCRIPTORS: usize = 8;
const KEY: CqKey = CqKey { index: 0, generation: 1 };

/// The status that the engine writes to a finished descriptor.
type Done = Option<(Kind, u64)>;

/// The memory that the engine and the driver share: registers and a ring.
#[derive(Default)]
struct Engine {
    ring: [Cell<Done>; DESCRIPTORS],
    /// The completions that the interrupt is enabled for.
    enabled: Cell<Option<Notify>>,
    pending: Cell<bool>,
}

impl Engine {
    /// The engine finishes the next descriptor.
    fn finish(&self, descriptor: usize, kind: Kind, wr_id: u64) {
        self.ring[descriptor % DESCRIPTORS].set(Some((kind, wr_id)));
        let urgent = kind.entry(wr_id).is_urgent();
        let wanted = self.enabled.get().is_some_and(|on| on == Notify::Next || urgent);
        if wanted {
            // Disabled before it is raised: the handler may enable it again.
            self.enabled.set(None);
            self.pending.set(true);
        }
    }
}

/// The driver: the transport.
struct Driver {
    engine: Rc<Engine>,
    next: usize,
}

impl PollCq for Driver {
    type Entry = Wc;

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
        // Arming never weakens (N4).
        self.engine.enabled.set(self.engine.enabled.get().max(Some(on)));
        // Read after the interrupt is enabled: either the engine sees the arm, or this sees the completion (N6).
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

/// The fixture for the test kit.
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

#[test]
fn it_runs() -> Result<(), rules::Broken> {
    main()
}
