//! What the firmware has the engine do: transfers, whose data is checked, and some of which must fail.

use core::fmt;
use core::sync::atomic::Ordering::Relaxed;

use crate::dma::{Done, Sender, Status};
use crate::engine::{self, Channel, DESCRIPTORS, MEMORY, MOVED, WORDS};

/// Every so many transfers, one has a target that the engine does not reach.
const FAILING: u32 = 16;

/// The transfers of a channel.
pub struct Transfers {
    sender: Sender,
    channel: u8,
    posted: u32,
    completed: u32,
    failed: u32,
}

impl Transfers {
    pub const fn new(channel: &'static Channel) -> Self {
        let sender = Sender::new(channel);
        Self { sender, channel: channel.number, posted: 0, completed: 0, failed: 0 }
    }

    /// Whether transfers are posted that have not completed.
    pub const fn are_outstanding(&self) -> bool {
        self.completed < self.posted
    }

    /// Whether the engine has finished all that are posted, and the handler has freed their descriptors.
    pub fn are_finished(&self) -> bool {
        (0..DESCRIPTORS as u32).all(|nth| self.sender.is_free(nth))
    }

    /// Does not check the next transfers, whose memory was used again.
    pub fn skip(&mut self, count: u32) {
        let skipped = self.completed..self.completed + count;
        self.failed += skipped.clone().filter(|&transfer| must_fail(transfer)).count() as u32;
        self.completed = skipped.end;
    }

    /// Posts transfers. The engine executes one after so many cycles, and one more each time that as many have passed.
    pub fn post(&mut self, count: u32, cycles: u32) {
        for transfer in self.posted..self.posted + count {
            let (source, target) = places(transfer);
            for (word, value) in MEMORY[source..].iter().zip(data(transfer)) {
                word.store(value, Relaxed);
            }
            let target = if must_fail(transfer) { u32::MAX } else { target as u32 };
            let posted = self.sender.post(source as u32, target);
            assert_eq!(posted, Some(transfer), "no free descriptor");
            self.posted += 1;
        }
        engine::ring_doorbell(cycles);
    }

    /// Checks what a transfer has completed with: that it is the next one, and that the data has moved, or that it failed as
    /// it must.
    pub fn complete(&mut self, done: &Done) {
        let transfer = self.completed;
        assert_eq!(done.transfer, transfer, "a completion is missing, or came twice");
        assert_eq!(done.channel, self.channel, "transfer {transfer} is of another channel");
        if must_fail(transfer) {
            assert_eq!((done.status, done.bytes), (Status::BAD_ADDRESS, 0));
            self.failed += 1;
        } else {
            assert_eq!((done.status, done.bytes), (Status::SUCCESS, MOVED));
            let target = &MEMORY[places(transfer).1..];
            let moved = target.iter().map(|word| word.load(Relaxed)).take(WORDS);
            assert!(moved.eq(data(transfer)), "transfer {transfer} moved other data");
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

fn must_fail(transfer: u32) -> bool {
    transfer % FAILING == FAILING - 1
}

/// The addresses that a transfer moves data from and to.
fn places(transfer: u32) -> (usize, usize) {
    let source = transfer as usize % DESCRIPTORS * WORDS;
    (source, DESCRIPTORS * WORDS + source)
}

/// The words that a transfer moves, which differ from those of the transfers before.
fn data(transfer: u32) -> impl Iterator<Item = u32> {
    let first = transfer * WORDS as u32;
    (first..).take(WORDS).map(|word| word.wrapping_mul(0x9e37_79b9))
}
