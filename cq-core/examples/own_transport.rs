//! A transport of one's own: a DMA engine that writes 8 bytes of its own for each descriptor it has finished, and raises an
//! interrupt. `CompletionQueue` polls it, arms it and waits for it, as it does any other.
//!
//! `cq_testing::rules` check a transport of any entry that can be compared. For completions, `type Entry = Wc`, and `poll` makes
//! a `Wc` of each word.
//!
//! `cargo run -p cq-core --example own_transport`

use std::convert::Infallible;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, fence};
use std::thread::{self, Thread};

use bytemuck::{Pod, Zeroable};
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::transport::{
    Arm, ArmError, Armed, Block, CqKey, EventError, Events, Notify, PollCq, PollError, Woken,
};

const KEY: CqKey = CqKey { index: 0, generation: 1 };
const SLOTS: u32 = 8;
const TRANSFERS: u32 = 100_000;

/// What the engine writes for a finished descriptor. `CompletionQueue` needs of it that it is plain old data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Done {
    descriptor: u32,
    status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
struct Status(u32);

impl Status {
    const SUCCESS: Self = Self(1); // not 0, as in a free slot
    const BUS_ERROR: Self = Self(2);
}

/// The registers, and the ring, which the engine and the driver share.
#[derive(Default)]
struct Engine {
    ring: [AtomicU64; SLOTS as usize],
    posted: AtomicU32, // the doorbell: how many descriptors are
    enabled: AtomicU8, // what raises an interrupt; 0: nothing, 1: failures, 2: everything
    pending: AtomicBool,
}

impl Engine {
    fn slot(&self, position: u32) -> &AtomicU64 {
        &self.ring[(position % SLOTS) as usize]
    }

    /// What the hardware does with a descriptor. Each sixteenth fails.
    fn finish(&self, descriptor: u32, core: &Thread) {
        while self.posted.load(Acquire) <= descriptor {
            thread::yield_now();
        }
        let fails = descriptor % 16 == 15;
        let (status, least) = if fails { (Status::BUS_ERROR, 1) } else { (Status::SUCCESS, 2) };
        self.slot(descriptor).store(bytemuck::cast(Done { descriptor, status }), Release);
        fence(SeqCst); // with that of `arm`
        let disable = |enabled| (enabled >= least).then_some(0);
        if self.enabled.fetch_update(AcqRel, Relaxed, disable).is_ok() {
            self.pending.swap(true, AcqRel); // disabled before: who takes the event may enable it again
            core.unpark();
        }
    }
}

/// The driver: the transport.
struct Driver<'e> {
    engine: &'e Engine,
    next: u32,
}

impl PollCq for Driver<'_> {
    type Entry = Done;
    fn poll_into(&mut self, out: &mut [Done]) -> Result<usize, PollError> {
        let mut count = 0;
        for entry in out {
            let slot = self.engine.slot(self.next);
            let word = slot.load(Acquire); // the moved data is read after this
            if word == 0 {
                break;
            }
            *entry = bytemuck::cast(word);
            slot.store(0, Relaxed); // before the doorbell, after which the engine writes here again
            (count, self.next) = (count + 1, self.next.wrapping_add(1));
        }
        Ok(count)
    }
}

impl Arm for Driver<'_> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        let on = if on == Notify::Next { 2 } else { 1 };
        self.engine.enabled.fetch_max(on, Relaxed); // never weakens an earlier arm (N4)
        fence(SeqCst); // with that of the engine: it sees the arm, or this what it has written (N6)
        let is_empty = self.engine.slot(self.next).load(Relaxed) == 0;
        Ok(if is_empty { Armed::Armed } else { Armed::MayHaveMissed })
    }

    fn key(&self) -> CqKey {
        KEY
    }
}

/// The interrupt controller: the channel.
struct Interrupt<'e>(&'e Engine);

impl Events for Interrupt<'_> {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.0.pending.swap(false, AcqRel).then_some(KEY))
    }
}

impl Block for Interrupt<'_> {
    type Instant = Infallible; // there is no clock, so no deadline
    fn block(&mut self, _: Option<Infallible>) -> Result<Woken, EventError> {
        while !self.0.pending.load(Acquire) {
            thread::park(); // on a core, WFI
        }
        Ok(Woken::Event)
    }
}

fn main() -> Result<(), WaitError> {
    let engine: &'static Engine = Box::leak(Box::default()); // registers are always there
    let core = thread::current();
    thread::spawn(move || (0..TRANSFERS).for_each(|descriptor| engine.finish(descriptor, &core)));
    let mut cq = CompletionQueue::new(Driver { engine, next: 0 });
    let (mut buffer, mut done) = ([Done::zeroed(); 4], 0);
    while done < TRANSFERS {
        engine.posted.store(TRANSFERS.min(done + SLOTS), Release); // never more than there are slots
        for finished in cq.wait(&mut buffer, &mut Interrupt(engine), None)? {
            let failed = finished.status == Status::BUS_ERROR;
            assert_eq!((finished.descriptor, failed), (done, done % 16 == 15));
            done += 1;
        }
    }
    assert_eq!(cq.poll(&mut buffer)?, []);
    println!("{done} transfers");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), WaitError> {
    main()
}
