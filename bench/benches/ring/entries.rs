//! The entries that are sent, and the check that they arrived.

use std::hint::black_box;

use bytemuck::{Pod, Zeroable};
use cq_core::entry::{Entry, InEntry};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

use super::peer::{Reader, Receiver};

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

/// An entry that has a number.
pub trait Item: Entry {
    fn of(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Item for Wc {
    fn of(number: u64) -> Self {
        Self::new(number, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::RECV).with_byte_len(64)
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        self.wr_id()
    }
}

impl Item for u64 {
    fn of(number: u64) -> Self {
        number
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        *self
    }
}

/// Eight bytes, the lowest of which a queue may use.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct Spare([u32; 2]);

impl Entry for Spare {
    type Generation = InEntry<u32, 4, 0xffff>;
}

impl Item for Spare {
    fn of(number: u64) -> Self {
        Self([number as u32, (number >> 32) as u32 & 0xffff_0000])
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        bytemuck::cast(self.0)
    }
}

/// What a producer sends, in batches of `N`.
pub struct Source<const N: usize, E = Wc> {
    /// One round, and its beginning again: a batch starts anywhere in the round.
    entries: Vec<E>,
    next: usize,
}

impl<const N: usize, E: Item> Source<N, E> {
    pub fn new() -> Self {
        let entries = (0..DISTINCT + N as u64).map(|index| E::of(number(index)));
        Self { entries: entries.collect(), next: 0 }
    }

    #[inline(always)]
    pub fn batch(&mut self) -> &[E; N] {
        let batch = self.entries[self.next..].first_chunk().expect("a batch follows each start");
        self.next += N % DISTINCT as usize;
        if self.next >= DISTINCT as usize {
            self.next -= DISTINCT as usize;
        }
        batch
    }
}

/// Where a consumer puts what it receives, up to `N` at once, and the check of it.
pub struct Sink<const N: usize, E = Wc> {
    buffer: [E; N],
    sum: u64,
    received: u64,
}

impl<const N: usize, E: Item> Sink<N, E> {
    pub fn new() -> Self {
        Self { buffer: [E::zeroed(); N], sum: 0, received: 0 }
    }

    /// Receives what there is, and gives it.
    #[inline(always)]
    pub fn receive(&mut self, from: &mut impl Receiver<E>) -> &[E] {
        let count = from.receive(&mut self.buffer);
        // An application would look at whole entries: none of their bytes may be optimised away.
        let received = &black_box(&self.buffer)[..count];
        self.received += count as u64;
        self.sum = sum(self.sum, received);
        received
    }

    /// Reads what there is, in place.
    #[inline(always)]
    pub fn read(&mut self, from: &mut impl Reader<E>) {
        let read = from.read(N, |entries| self.sum = sum(self.sum, black_box(entries)));
        self.received += read as u64;
    }

    /// Receives until there have been `total`.
    #[inline(always)]
    pub fn receive_until(&mut self, total: u64, from: &mut impl Receiver<E>) {
        while self.received < total {
            self.receive(from);
        }
    }

    /// Panics unless exactly `count` entries came, in whole rounds, and were the right ones.
    pub fn check(&self, count: u64) {
        let round = (0..DISTINCT).map(|index| E::of(number(index)).number());
        let sum = round.fold(0, u64::wrapping_add).wrapping_mul(count / DISTINCT);
        assert_eq!((self.received, self.sum), (count, sum), "the queue lost or changed entries");
    }
}

#[inline(always)]
fn sum<E: Item>(start: u64, entries: &[E]) -> u64 {
    entries.iter().fold(start, |sum, entry| sum.wrapping_add(entry.number()))
}
