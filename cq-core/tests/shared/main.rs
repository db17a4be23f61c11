//! The software completion queue with several producers. What the tests share is here; `storage` has the rules
//! of overrun and storage (O1, O3), `events` those of arming (O5, N1, N3, N6, N11), `batch` both for several
//! completions at once, `resize` Q12, `threads` what many threads at once come to (C10, P2, O3, N6).
#![cfg(all(not(loom), target_has_atomic = "64", not(cq_core_word32)))]

mod batch;
mod events;
mod resize;
mod storage;
mod threads;

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use cq_core::ring::{Gate, Position, Slot};
use cq_core::soft::shared::{Consumer, Parts, PushError};
use cq_core::soft::{Overrun, Tag};
use cq_core::transport::{Block, CqKey, EventError, Events, Poll, PollError, Signal};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

const KEY: CqKey = CqKey { index: 3, generation: 9 };
const DEADLINE: Duration = Duration::from_secs(20);

/// Counts events.
#[derive(Default)]
struct Bell(AtomicU32);

impl Bell {
    fn take(&self) -> u32 {
        self.0.swap(0, SeqCst)
    }
}

impl Signal for Bell {
    fn raise(&self, cq: CqKey) {
        assert_eq!(cq, KEY);
        self.0.fetch_add(1, SeqCst);
    }
}

/// A channel that is looked at again and again, until the deadline.
impl Events for &Bell {
    fn next(&mut self) -> Result<Option<CqKey>, EventError> {
        let taken = self.0.fetch_update(SeqCst, SeqCst, |count| count.checked_sub(1));
        Ok(taken.ok().map(|_| KEY))
    }
}

impl Block for &Bell {
    fn block(&mut self, _: &mut Option<Duration>) -> Result<bool, EventError> {
        let start = Instant::now();
        while self.0.load(SeqCst) == 0 {
            assert!(start.elapsed() < DEADLINE, "lost wake-up");
            thread::yield_now();
        }
        Ok(true)
    }
}

fn recv(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::RECV)
}

fn send(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::SEND)
}

fn failed(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::REM_ACCESS_ERR, 1)
}

fn overrun<T>(dropped: u32) -> Result<T, PushError> {
    Err(PushError::Overrun(Overrun { dropped }))
}

fn drain(consumer: &mut Consumer<'_>) -> Result<Vec<u64>, PollError> {
    let mut out = [Wc::default(); 16];
    let count = consumer.poll(&mut out)?;
    Ok(out[..count].iter().map(Wc::wr_id).collect())
}

/// The memory of one ring.
struct Memory {
    gate: Gate,
    slots: Vec<Slot>,
    tags: Vec<Tag>,
}

impl Memory {
    fn new(storage: usize) -> Self {
        Self::at(0, storage)
    }

    fn at(position: Position, storage: usize) -> Self {
        Self {
            gate: Gate::at(position),
            slots: (0..storage).map(|_| Slot::new()).collect(),
            tags: (0..storage).map(|_| Tag::new()).collect(),
        }
    }

    fn parts(&self) -> Parts<'_> {
        self.promising(self.slots.len() as u32)
    }

    fn promising(&self, promised: u32) -> Parts<'_> {
        Parts::new(&self.gate, &self.slots, &self.tags, promised).unwrap()
    }
}

/// Places where something wraps, for a ring of this many slots: positions of 32 and of 62 bits, generations
/// of 15 and of 16.
fn wraps(storage: usize) -> [Position; 5] {
    let storage = storage as Position;
    [1 << 32, 1 << 62, storage << 15, storage << 16, (storage << 16) + (1 << 62)]
}
