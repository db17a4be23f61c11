//! What messages carry, so that a stale, torn, misplaced or damaged one is noticed.
//!
//! Every eight bytes are a hash of the message's number, its time stamp and their position. A message of at
//! least [`STAMPED`] bytes begins with the time stamp; all that follows vouches for it.

use std::thread;
use std::time::{Duration, Instant};

use bench::transport::Memory;
use cq_core::wr::{RemoteAddr, Sge};

/// The shortest message that carries a time stamp: the stamp, and a word that vouches for it.
pub const STAMPED: u32 = 16;

const WORD: usize = size_of::<u64>();

/// Bytes made or compared at a time, on the stack.
const CHUNK: usize = 32 * WORD;

/// Room for messages of one size in registered memory. No two share a cache line: of neighbours, one may be
/// written by the device while the other is checked.
pub struct Slots<M> {
    memory: M,
    layout: Layout,
    marks: u8,
}

/// Where messages lie, at both ends, and which.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Bytes of a slot.
    pub size: u32,
    /// Slots.
    pub count: u32,
    /// Where the slots of the peer are.
    pub peer: RemoteAddr,
    /// Whether the last byte of a message shows that it has arrived, for who polls memory.
    pub marked: bool,
}

impl<M: Memory> Slots<M> {
    /// The slots, in memory of [`bytes`].
    pub fn new(memory: M, layout: Layout) -> Self {
        Self { memory, marks: marks(layout.count), layout }
    }

    /// How many bytes each slot has.
    pub const fn size(&self) -> u32 {
        self.layout.size
    }

    /// How many slots each end has.
    pub const fn count(&self) -> u32 {
        self.layout.count
    }

    /// The slot whose turn it is at this message, where messages take them in turn.
    pub fn turn(&self, number: u64) -> u32 {
        // Less than `count`.
        (number % u64::from(self.layout.count)) as u32
    }

    /// A slot, as requests name it.
    pub fn sge(&self, slot: u32) -> Sge {
        self.memory.sge(self.offset(slot), self.layout.size)
    }

    /// A slot of the peer, as requests name it. What the peer says of itself is the device's to judge.
    pub fn remote(&self, slot: u32) -> RemoteAddr {
        let RemoteAddr { addr, rkey } = self.layout.peer;
        RemoteAddr { addr: addr.wrapping_add(self.offset(slot) as u64), rkey }
    }

    /// All slots, as requests name them.
    pub fn sges(&self) -> Vec<Sge> {
        (0..self.layout.count).map(|slot| self.sge(slot)).collect()
    }

    /// Writes message `number` into a slot; `stamp` goes along where there is room.
    pub fn fill(&mut self, slot: u32, number: u64, stamp: u64) {
        let pattern = self.pattern(number, self.stamped().then_some(stamp));
        let start = self.offset(slot);
        let mut chunk = [0; CHUNK];
        for (at, len) in self.chunks() {
            pattern.write(at, &mut chunk[..len]);
            self.memory.write(start + at, &chunk[..len]);
        }
    }

    /// Compares every byte of a slot with message `number`; gives its time stamp, if it has one.
    pub fn check(&self, slot: u32, number: u64) -> Result<Option<u64>, Wrong> {
        let start = self.offset(slot);
        let stamp = self.stamped().then(|| u64::from_le_bytes(self.read_word(start)));
        let pattern = self.pattern(number, stamp);
        let (mut found, mut expected) = ([0; CHUNK], [0; CHUNK]);
        for (at, len) in self.chunks() {
            self.memory.read(start + at, &mut found[..len]);
            pattern.write(at, &mut expected[..len]);
            if found[..len] != expected[..len] {
                return Err(Wrong::new(number, at, &found[..len], &expected[..len]));
            }
        }
        Ok(stamp)
    }

    /// Whether the last byte of message `number` is in this slot, where messages are marked. The others
    /// come before it where the device writes in order, which no specification promises.
    #[inline]
    pub fn marked(&self, slot: u32, number: u64) -> bool {
        let mut last = [0];
        self.memory.read(self.offset(slot) + self.layout.size as usize - 1, &mut last);
        last[0] == mark(number, self.marks)
    }

    /// Compares every byte of a slot with message `number`, whose mark is there. The rest may take a moment
    /// more, but not longer than this.
    pub fn check_marked(&self, slot: u32, number: u64) -> Result<Option<u64>, Wrong> {
        const LIMIT: Duration = Duration::from_secs(1);
        let first = self.check(slot, number);
        if first.is_ok() {
            return first;
        }
        let end = Instant::now() + LIMIT;
        loop {
            let again = self.check(slot, number);
            if again.is_ok() || Instant::now() > end {
                return again;
            }
            thread::yield_now();
        }
    }

    /// The first eight bytes of a slot, as a number.
    pub fn word(&self, slot: u32) -> u64 {
        // As an atomic leaves it.
        u64::from_ne_bytes(self.read_word(self.offset(slot)))
    }

    fn pattern(&self, number: u64, stamp: Option<u64>) -> Pattern {
        let last = self.layout.size as usize - 1;
        let mark = self.layout.marked.then(|| (last, mark(number, self.marks)));
        Pattern::new(number, stamp, mark)
    }

    const fn stamped(&self) -> bool {
        self.layout.size >= STAMPED
    }

    const fn offset(&self, slot: u32) -> usize {
        slot as usize * stride(self.layout.size)
    }

    fn read_word(&self, at: usize) -> [u8; WORD] {
        let mut word = [0; WORD];
        self.memory.read(at, &mut word);
        word
    }

    /// Where the chunks of a message begin, and how long each is.
    fn chunks(&self) -> impl Iterator<Item = (usize, usize)> + use<M> {
        let size = self.layout.size as usize;
        (0..size).step_by(CHUNK).map(move |at| (at, CHUNK.min(size - at)))
    }
}

/// How much memory `count` slots for messages of `size` bytes take.
pub const fn bytes(size: u32, count: u32) -> usize {
    stride(size) * count as usize
}

const fn stride(size: u32) -> usize {
    const LINE: usize = 64;
    (size as usize).next_multiple_of(LINE)
}

/// The bytes of one message.
struct Pattern {
    seed: u64,
    stamp: Option<u64>,
    /// Where the mark is, and which, if there is one.
    mark: Option<(usize, u8)>,
}

/// How many marks there are: such that what comes to a slot next has another one, where all take turns.
fn marks(slots: u32) -> u8 {
    let fits = |marks: &u8| !slots.is_multiple_of((*marks).into());
    (2..=251).rev().find(fits).unwrap_or(251)
}

/// What tells a message from the one that was in its slot before; 0 is what there is at first.
const fn mark(number: u64, marks: u8) -> u8 {
    1 + (number % marks as u64) as u8
}

impl Pattern {
    fn new(number: u64, stamp: Option<u64>, mark: Option<(usize, u8)>) -> Self {
        Self { seed: mix(mix(number) ^ stamp.unwrap_or(0)), stamp, mark }
    }

    /// Writes the bytes from `at`, the beginning of a word, on.
    fn write(&self, at: usize, bytes: &mut [u8]) {
        let first = at / WORD;
        for (index, piece) in (first..).zip(bytes.chunks_mut(WORD)) {
            piece.copy_from_slice(&self.word(index).to_le_bytes()[..piece.len()]);
        }
        if let Some((place, mark)) = self.mark {
            bytes.get_mut(place.wrapping_sub(at)).into_iter().for_each(|byte| *byte = mark);
        }
    }

    fn word(&self, index: usize) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        match self.stamp {
            Some(stamp) if index == 0 => stamp,
            _ => mix(self.seed.wrapping_add((index as u64).wrapping_mul(GOLDEN))),
        }
    }
}

/// The finalizer of SplitMix64: each bit of the input changes about half of the output.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The first byte of a message that is not what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {number} is wrong at byte {at}: found {found:#04x}, expected {expected:#04x}")]
pub struct Wrong {
    number: u64,
    at: usize,
    found: u8,
    expected: u8,
}

impl Wrong {
    #[cold]
    fn new(number: u64, start: usize, found: &[u8], expected: &[u8]) -> Self {
        let at =
            found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
        Self { number, at: start + at, found: found[at], expected: expected[at] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that no device knows.
    struct Plain(Vec<u8>);

    impl Memory for Plain {
        fn write(&mut self, at: usize, bytes: &[u8]) {
            self.0[at..at + bytes.len()].copy_from_slice(bytes);
        }

        fn read(&self, at: usize, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.0[at..at + bytes.len()]);
        }

        fn sge(&self, at: usize, length: u32) -> Sge {
            Sge { addr: at as u64, length, lkey: 0 }
        }

        fn remote(&self, _: usize) -> RemoteAddr {
            unreachable!("messages are sent, not written by RDMA")
        }
    }

    /// Below a word, no stamp, the shortest stamped, a partial last word, more than a chunk.
    const SIZES: [u32; 8] = [1, 7, 15, 16, 17, 64, 257, 4099];

    fn layout(size: u32, marked: bool) -> Layout {
        Layout { size, count: 2, peer: RemoteAddr { addr: 0, rkey: 0 }, marked }
    }

    fn slots(size: u32) -> Slots<Plain> {
        Slots::new(Plain(vec![0; bytes(size, 2)]), layout(size, false))
    }

    /// Message 4, stamped 77, in the first slot.
    fn filled(size: u32) -> Slots<Plain> {
        let mut slots = slots(size);
        slots.fill(0, 4, 77);
        slots
    }

    #[test]
    fn a_message_passes_and_gives_its_stamp_back() {
        for size in SIZES {
            assert_eq!(
                filled(size).check(0, 4),
                Ok((size >= STAMPED).then_some(77)),
                "size {size}"
            );
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed_wherever_it_is() {
        for size in SIZES {
            let mut slots = filled(size);
            for at in 0..size as usize {
                slots.memory.0[at] ^= 0x10;
                assert!(slots.check(0, 4).is_err(), "byte {at} of {size}");
                slots.memory.0[at] ^= 0x10;
            }
        }
    }

    #[test]
    fn a_damaged_byte_is_named() {
        let mut slots = filled(4099);
        let good = slots.memory.0[300];
        slots.memory.0[300] = !good;
        let wrong = Wrong { number: 4, at: 300, found: !good, expected: good };
        assert_eq!(slots.check(0, 4), Err(wrong));
    }

    #[test]
    fn a_stale_message_is_noticed() {
        for size in SIZES {
            assert!(filled(size).check(0, 6).is_err(), "size {size}");
        }
    }

    #[test]
    fn a_torn_message_is_noticed() {
        let mut slots = filled(64);
        let older = slots.memory.0.clone();
        slots.fill(0, 6, 78);
        slots.memory.0[56..64].copy_from_slice(&older[56..64]);
        assert!(slots.check(0, 6).is_err());
    }

    #[test]
    fn swapped_words_are_noticed() {
        let mut slots = filled(64);
        let (front, back) = slots.memory.0[32..48].split_at_mut(8);
        front.swap_with_slice(back);
        assert!(slots.check(0, 4).is_err());
    }

    #[test]
    fn slots_do_not_touch_each_other() {
        let mut slots = filled(17);
        slots.fill(1, 5, 78);
        assert_eq!((slots.check(0, 4), slots.check(1, 5)), (Ok(Some(77)), Ok(Some(78))));
    }

    #[test]
    fn a_mark_shows_that_a_message_has_arrived_and_is_checked_with_it() {
        for size in SIZES {
            let mut slots = Slots::new(Plain(vec![0; bytes(size, 2)]), layout(size, true));
            assert!(!slots.marked(0, 0), "nothing has arrived");
            for number in 0..600 {
                slots.fill(0, number, 77);
                assert!(slots.marked(0, number) && !slots.marked(0, number + 1));
                assert!(slots.check_marked(0, number).is_ok(), "message {number} of {size} bytes");
            }
            slots.memory.0[size as usize - 1] ^= 1;
            assert!(slots.check(0, 599).is_err(), "size {size}");
        }
    }

    #[test]
    fn what_comes_to_a_slot_next_has_another_mark() {
        for slots in (1..2_000).chain([251 * 250, 251 * 250 * 249]) {
            let marks = marks(slots);
            for number in 0..300 {
                let next = mark(number + u64::from(slots), marks);
                assert_ne!(mark(number, marks), next, "message {number} in {slots} slots");
            }
        }
    }

    #[test]
    fn slots_of_the_peer_are_where_ones_own_are() {
        let peer = RemoteAddr { addr: 0x1000, rkey: 7 };
        let memory = Plain(vec![0; bytes(65, 2)]);
        let slots = Slots::new(memory, Layout { peer, ..layout(65, true) });
        assert_eq!(slots.remote(1), RemoteAddr { addr: 0x1080, rkey: 7 });
        assert_eq!(slots.sge(1).addr, 0x80);
    }
}
