//! What messages carry, so that a stale, torn, misplaced or damaged one is noticed.
//!
//! Every eight bytes are a hash of the message's number, its time stamp and their position. A message of at
//! least [`STAMPED`] bytes begins with the time stamp; all that follows vouches for it.

use std::thread;
use std::time::{Duration, Instant};

use bench::Failure;
use cq_verbs::device::Memory;
use cq_verbs::wr::{RemoteAddr, Sge};

/// The shortest message that carries a time stamp: the stamp, and a word that vouches for it.
pub const STAMPED: u32 = 16;

const WORD: usize = size_of::<u64>();

/// Bytes made or compared at a time, on the stack.
const CHUNK: usize = 32 * WORD;

/// Room for messages of one size in registered memory. No two share a cache line: of neighbours, one may be
/// written by the device while the other is checked.
pub struct Slots {
    memory: Box<dyn Memory>,
    /// How many bytes each slot has.
    pub size: u32,
    /// How many slots each end has.
    pub count: u32,
    /// Where the slots of the peer are.
    peer: RemoteAddr,
    /// How many marks there are, where the last byte of a message shows that it has arrived.
    marks: Option<u8>,
}

/// What is said of offsets.
const INSIDE: &str = "the slot is inside the memory";

impl Slots {
    /// So many slots for messages of this size, in memory of [`bytes`]. If they are `marked`, the last byte of a message
    /// shows that it has arrived, for who polls memory.
    pub fn new(
        memory: Box<dyn Memory>,
        [size, count]: [u32; 2],
        peer: RemoteAddr,
        marked: bool,
    ) -> Self {
        Self { memory, size, count, peer, marks: marked.then(|| marks(count)) }
    }

    /// The slot whose turn it is at this message, where messages take them in turn.
    pub fn turn(&self, number: u64) -> u32 {
        // Less than `count`.
        (number % u64::from(self.count)) as u32
    }

    /// A slot, as requests name it.
    pub fn sge(&self, slot: u32) -> Sge {
        self.memory
            .registered()
            .sge(self.offset(slot)..self.offset(slot) + self.size as usize)
            .expect(INSIDE)
    }

    /// A slot of the peer, as requests name it. What the peer says of itself is the device's to judge.
    pub fn remote(&self, slot: u32) -> RemoteAddr {
        let RemoteAddr { addr, rkey } = self.peer;
        RemoteAddr { addr: addr.wrapping_add(self.offset(slot) as u64), rkey }
    }

    /// All slots, as requests name them.
    pub fn sges(&self) -> Vec<Sge> {
        (0..self.count).map(|slot| self.sge(slot)).collect()
    }

    /// Writes message `number` into a slot; `stamp` goes along where there is room.
    pub fn fill(&mut self, slot: u32, number: u64, stamp: u64) {
        let pattern = self.pattern(number, self.stamped().then_some(stamp));
        let start = self.offset(slot);
        let mut chunk = [0; CHUNK];
        for (at, len) in self.chunks() {
            pattern.write(at, &mut chunk[..len]);
            self.memory.write(start + at, &chunk[..len]).expect(INSIDE);
        }
    }

    /// Compares every byte of a slot with message `number`; gives its time stamp, if it has one.
    pub fn check(&self, slot: u32, number: u64) -> Result<Option<u64>, Failure> {
        let start = self.offset(slot);
        let stamp = self.stamped().then(|| u64::from_le_bytes(self.read(start)));
        let pattern = self.pattern(number, stamp);
        let (mut found, mut expected) = ([0; CHUNK], [0; CHUNK]);
        for (at, len) in self.chunks() {
            self.memory.read(start + at, &mut found[..len]).expect(INSIDE);
            pattern.write(at, &mut expected[..len]);
            if found[..len] != expected[..len] {
                return Err(wrong(number, at, &found, &expected));
            }
        }
        Ok(stamp)
    }

    /// Whether the last byte of message `number` is in this slot, where messages are marked. The others
    /// come before it where the device writes in order, which no specification promises.
    #[inline]
    pub fn marked(&self, slot: u32, number: u64) -> bool {
        let [last] = self.read(self.offset(slot) + self.size as usize - 1);
        self.marks.is_some_and(|marks| last == mark(number, marks))
    }

    /// Compares every byte of a slot with message `number`, which has arrived. Where its mark says so, the rest may take a
    /// moment more, but not longer than this.
    pub fn check_arrived(&self, slot: u32, number: u64) -> Result<Option<u64>, Failure> {
        const LIMIT: Duration = Duration::from_secs(1);
        let mut end = None;
        loop {
            let checked = self.check(slot, number);
            let mut is_over =
                || Instant::now() > *end.get_or_insert_with(|| Instant::now() + LIMIT);
            if checked.is_ok() || self.marks.is_none() || is_over() {
                return checked;
            }
            thread::yield_now();
        }
    }

    /// The first eight bytes of a slot, as a number.
    pub fn word(&self, slot: u32) -> u64 {
        // As an atomic leaves it.
        u64::from_ne_bytes(self.read(self.offset(slot)))
    }

    fn pattern(&self, number: u64, stamp: Option<u64>) -> Pattern {
        let mark = self.marks.map(|marks| (self.size as usize - 1, mark(number, marks)));
        Pattern { seed: mix(mix(number) ^ stamp.unwrap_or(0)), stamp, mark }
    }

    const fn stamped(&self) -> bool {
        self.size >= STAMPED
    }

    const fn offset(&self, slot: u32) -> usize {
        slot as usize * stride(self.size)
    }

    fn read<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read(at, &mut bytes).expect(INSIDE);
        bytes
    }

    /// Where the chunks of a message begin, and how long each is.
    fn chunks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let size = self.size as usize;
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

/// The first byte of a message that is not what was sent; what was found and expected begins at byte `start`.
#[cold]
fn wrong(number: u64, start: usize, found: &[u8], expected: &[u8]) -> Failure {
    let same = |(found, expected): &(&u8, &u8)| found == expected;
    let nth = found.iter().zip(expected).take_while(same).count();
    let (at, found, expected) = (start + nth, found[nth], expected[nth]);
    format!("message {number} is wrong at byte {at}: found {found:#04x}, expected {expected:#04x}")
        .into()
}

#[cfg(test)]
mod tests {
    use bench::transport::loopback::Loopback;
    use bench::transport::{Needs, Transport};

    use super::*;

    /// Below a word, no stamp, the shortest stamped, a partial last word, more than a chunk.
    const SIZES: [u32; 8] = [1, 7, 15, 16, 17, 64, 257, 4099];

    /// Two slots, of which the first has message 4, stamped 77.
    fn filled(size: u32, marked: bool) -> Slots {
        let needs = Needs { sends: 1, receives: 1, bytes: bytes(size, 2), ..Needs::default() };
        let memory = Loopback::open().unwrap().end(&needs).unwrap().memory;
        let peer = RemoteAddr { addr: 0x1000, rkey: 7 };
        let mut slots = Slots::new(memory, [size, 2], peer, marked);
        assert!(!slots.marked(0, 0), "nothing has arrived");
        slots.fill(0, 4, 77);
        slots
    }

    impl Slots {
        fn flip(&self, at: usize) {
            let [byte] = self.read(at);
            self.memory.write(at, &[byte ^ 0x10]).unwrap();
        }
    }

    #[test]
    fn a_message_passes_and_any_other_is_noticed() {
        for size in SIZES {
            let slots = filled(size, false);
            let stamp = (size >= STAMPED).then_some(77);
            assert_eq!(slots.check(0, 4).unwrap(), stamp, "size {size}");
            assert!(slots.check(0, 6).is_err(), "a stale one of {size} bytes");
            for at in 0..size as usize {
                slots.flip(at);
                assert!(slots.check(0, 4).is_err(), "byte {at} of {size}");
                slots.flip(at);
            }
        }
    }

    #[test]
    fn a_damaged_byte_is_named() {
        let slots = filled(4099, false);
        let [good]: [u8; 1] = slots.read(300);
        slots.flip(300);
        let found = good ^ 0x10;
        let wrong = format!("is wrong at byte 300: found {found:#04x}, expected {good:#04x}");
        assert_eq!(slots.check(0, 4).unwrap_err().to_string(), format!("message 4 {wrong}"));
    }

    #[test]
    fn torn_and_swapped_words_are_noticed() {
        let mut slots = filled(64, false);
        let older: [u8; 64] = slots.read(0);
        slots.fill(0, 6, 78);
        slots.memory.write(56, &older[56..]).unwrap();
        assert!(slots.check(0, 6).is_err());
        slots.fill(0, 6, 78);
        let [front, back]: [u64; 2] = [32, 40].map(|at| u64::from_ne_bytes(slots.read(at)));
        slots.memory.write(32, [back, front].map(u64::to_ne_bytes).as_flattened()).unwrap();
        assert!(slots.check(0, 6).is_err());
    }

    #[test]
    fn slots_do_not_touch_each_other_and_lie_at_the_peer_as_here() {
        let mut slots = filled(65, false);
        slots.fill(1, 5, 78);
        let stamps = [slots.check(0, 4), slots.check(1, 5)].map(Result::unwrap);
        assert_eq!(stamps, [Some(77), Some(78)]);
        assert_eq!(slots.remote(1), RemoteAddr { addr: 0x1080, rkey: 7 });
        assert_eq!(slots.sge(1).addr - slots.sge(0).addr, 0x80);
    }

    #[test]
    fn a_mark_shows_that_a_message_has_arrived_and_is_checked_with_it() {
        for size in SIZES {
            let mut slots = filled(size, true);
            for number in 0..600 {
                slots.fill(0, number, 77);
                assert!(slots.marked(0, number) && !slots.marked(0, number + 1));
                assert!(slots.check_arrived(0, number).is_ok(), "message {number} of {size} bytes");
            }
            slots.flip(size as usize - 1);
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
}
