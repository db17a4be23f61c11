//! The entries that are sent, and the check that they arrived.

use std::hint::black_box;

use cq_core::wc::{Wc, WcOpcode, WcStatus};

use super::peer::Receiver;

/// Entries are sent over and over from so many: few enough to stay in the nearest cache, and no divisor of a
/// capacity, so that what an earlier lap left in a slot is never right.
const DISTINCT: u64 = 96;

/// How many to send, in batches of `N`, when about `count` are asked for: whole batches, and whole rounds of
/// the distinct entries.
pub const fn whole_rounds<const N: usize>(count: u64) -> u64 {
    let (mut both, batch) = (DISTINCT, N as u64);
    while both % batch != 0 {
        both += DISTINCT;
    }
    count.next_multiple_of(both)
}

/// Numbers that add up to a wrong sum if any of them is lost or doubled.
const fn number(index: u64) -> u64 {
    (index % DISTINCT + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// What a producer sends, in batches of `N`.
pub struct Source<const N: usize> {
    /// One round, and its beginning again: a batch starts anywhere in the round.
    entries: Vec<Wc>,
    next: usize,
}

impl<const N: usize> Source<N> {
    pub fn new() -> Self {
        let entry = |index| {
            Wc::new(number(index), WcStatus::SUCCESS, 1)
                .with_opcode(WcOpcode::RECV)
                .with_byte_len(64)
        };
        Self { entries: (0..DISTINCT + N as u64).map(entry).collect(), next: 0 }
    }

    #[inline(always)]
    pub fn batch(&mut self) -> &[Wc; N] {
        let batch = self.entries[self.next..].first_chunk().expect("a batch follows each start");
        self.next += N % DISTINCT as usize;
        if self.next >= DISTINCT as usize {
            self.next -= DISTINCT as usize;
        }
        batch
    }
}

/// Where a consumer puts what it receives, up to `N` at once, and the check of it.
pub struct Sink<const N: usize> {
    buffer: [Wc; N],
    sum: u64,
    received: u64,
}

impl<const N: usize> Sink<N> {
    pub fn new() -> Self {
        Self { buffer: [Wc::default(); N], sum: 0, received: 0 }
    }

    /// Receives what there is, and gives it.
    #[inline(always)]
    pub fn receive(&mut self, from: &mut impl Receiver) -> &[Wc] {
        let count = from.receive(&mut self.buffer);
        // An application would look at whole entries: none of their bytes may be optimised away.
        let received = &black_box(&self.buffer)[..count];
        self.received += count as u64;
        self.sum = received.iter().fold(self.sum, |sum, wc| sum.wrapping_add(wc.wr_id()));
        received
    }

    /// Receives until there have been `total`.
    #[inline(always)]
    pub fn receive_until(&mut self, total: u64, from: &mut impl Receiver) {
        while self.received < total {
            self.receive(from);
        }
    }

    /// Panics unless exactly `count` entries came, in whole rounds, and were the right ones.
    pub fn check(&self, count: u64) {
        let round = (0..DISTINCT).map(number).fold(0, u64::wrapping_add);
        let sum = round.wrapping_mul(count / DISTINCT);
        assert_eq!((self.received, self.sum), (count, sum), "the queue lost or changed entries");
    }
}
