//! What the firmware has the engine do: transfers, whose data is checked, and some of which must fail.

use core::fmt;
use core::sync::atomic::Ordering::Relaxed;

use cq_core::wc::{Wc, WcStatus};

use crate::dma::Sender;
use crate::engine::{self, Channel, DESCRIPTORS, MEMORY, WORDS};

/// Every so many transfers, one has a target that the engine does not reach.
const FAILING: u64 = 16;

/// The transfers of a channel.
pub struct Transfers {
    sender: Sender,
    posted: u64,
    completed: u64,
    failed: u64,
}

impl Transfers {
    pub const fn new(channel: &'static Channel) -> Self {
        Self { sender: Sender::new(channel), posted: 0, completed: 0, failed: 0 }
    }

    /// Whether transfers are posted that have not completed.
    pub const fn are_outstanding(&self) -> bool {
        self.completed < self.posted
    }

    /// Posts transfers. The engine executes one after so many cycles, and one more each time that as many have passed.
    pub fn post(&mut self, count: u32, cycles: u32) {
        for wr_id in (self.posted..).take(count as usize) {
            let (source, target) = places(wr_id);
            for (word, value) in MEMORY[source..].iter().zip(data(wr_id)) {
                word.store(value, Relaxed);
            }
            let target = if must_fail(wr_id) { u32::MAX } else { target as u32 };
            assert_eq!(self.sender.post(source as u32, target), Some(wr_id), "no free descriptor");
            self.posted += 1;
        }
        engine::ring_doorbell(cycles);
    }

    /// Checks a completion: that it is the next one, and that the data has moved, or that it failed as it must.
    pub fn complete(&mut self, wc: &Wc) {
        let wr_id = self.completed;
        assert_eq!(wc.wr_id(), wr_id, "a completion is missing, or came twice");
        match wc.result() {
            Ok(_) => {
                assert!(!must_fail(wr_id), "transfer {wr_id} succeeded without a target");
                let target = &MEMORY[places(wr_id).1..];
                let moved = target.iter().map(|word| word.load(Relaxed)).take(WORDS);
                assert!(moved.eq(data(wr_id)), "transfer {wr_id} moved other data");
            }
            Err(failed) => {
                assert!(must_fail(wr_id), "transfer {wr_id} failed");
                assert_eq!(failed.status(), WcStatus::LOC_PROT_ERR);
                self.failed += 1;
            }
        }
        self.completed += 1;
    }
}

impl fmt::Display for Transfers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { completed, failed, .. } = self;
        write!(f, "{completed} transfers, {failed} of which failed as they must")
    }
}

fn must_fail(wr_id: u64) -> bool {
    wr_id % FAILING == FAILING - 1
}

/// The addresses that a transfer moves data from and to.
fn places(wr_id: u64) -> (usize, usize) {
    let source = wr_id as usize % DESCRIPTORS * WORDS;
    (source, DESCRIPTORS * WORDS + source)
}

/// The words that a transfer moves, which differ from those of the transfers before.
fn data(wr_id: u64) -> impl Iterator<Item = u32> {
    let first = wr_id as u32 * WORDS as u32;
    (first..).take(WORDS).map(|word| word.wrapping_mul(0x9e37_79b9))
}
