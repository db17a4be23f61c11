//! What tests of several crates share: a channel, and completions.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use cq_core::transport::{Block, CqKey, EventError, Events, Signal, Woken};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

pub const KEY: CqKey = CqKey { index: 3, generation: 9 };
pub const OTHER: CqKey = CqKey { index: 2, generation: 1 };
/// Longer than any single step here takes.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// So many repetitions, or few under Miri, for which each takes a thousand times as long.
pub const fn many(repetitions: u64) -> u64 {
    if cfg!(miri) { 1 + repetitions / 500 } else { repetitions }
}

/// The lengths of a model's list of steps: up to `most`, or a fifteenth of it under Miri.
pub fn lengths(most: usize) -> std::ops::Range<usize> {
    0..if cfg!(miri) { 1 + most / 15 } else { most }
}

/// A channel that counts its events.
#[derive(Debug, Default)]
pub struct EventCount(pub AtomicU32);

impl EventCount {
    pub fn take(&self) -> u32 {
        self.0.swap(0, SeqCst)
    }

    pub fn unread(&self) -> u32 {
        self.0.load(SeqCst)
    }
}

impl Signal for &EventCount {
    fn key(&self) -> CqKey {
        KEY
    }

    fn raise(&self) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Events for &EventCount {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let taken = self.0.fetch_update(SeqCst, SeqCst, |count| count.checked_sub(1));
        Ok(taken.ok().map(|_| KEY))
    }
}

/// Looks again and again, until the deadline.
impl Block for &EventCount {
    type Instant = Infallible;

    fn block(&mut self, _: Option<Infallible>) -> Result<Woken, EventError> {
        let start = Instant::now();
        while self.unread() == 0 {
            assert!(start.elapsed() < DEADLINE, "lost wake-up");
            thread::yield_now();
        }
        Ok(Woken::Event)
    }
}

pub fn recv(wr_id: u64) -> Wc {
    send(wr_id).with_opcode(WcOpcode::RECV)
}

pub fn send(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::SEND)
}

pub fn failed(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::REM_ACCESS_ERR, 1)
}

/// The deadline of a sleep that is to end before.
pub fn late() -> Option<Instant> {
    Some(Instant::now() + DEADLINE)
}
