//! How an entry is written and read.
#![allow(unsafe_code)]

use core::fmt;

use crate::sync::{self, AtomicWord, Tracked, Word, array_of, const_unless_loom};
use crate::wc::{WORDS, Wc};

/// The number of words before the last.
pub(super) const BODY: usize = WORDS - 1;

/// Bit position of the generation in the last word.
const GENERATION_SHIFT: u32 = if cfg!(target_endian = "little") { Word::BITS - 16 } else { 0 };

/// Extracts the generation from the last word of a slot.
#[inline(always)]
const fn generation_of(last: Word) -> u16 {
    (last >> GENERATION_SHIFT) as u16
}

/// Returns `last` with its two bytes of padding replaced by `generation`.
#[inline(always)]
const fn with_generation(last: Word, generation: u16) -> Word {
    (last & !((u16::MAX as Word) << GENERATION_SHIFT)) | ((generation as Word) << GENERATION_SHIFT)
}

/// Returns `last` with its generation cleared, or `None` if the generation differs from `generation`.
#[inline(always)]
const fn of_generation(last: Word, generation: u16) -> Option<Word> {
    // If the generations are equal, the exclusive or clears both bytes. So one comparison is enough.
    let rest = last ^ ((generation as Word) << GENERATION_SHIFT);
    if generation_of(rest) == 0 { Some(rest) } else { None }
}

/// A generation that no entry has, so a place with it is never published. Generations of entries have the top bit set,
/// and unwritten memory has 0.
pub(super) const NEVER: u16 = 1;

/// Storage for one completion of a ring. Any bit pattern is valid; zeros are an unwritten slot.
///
/// A slot is the 48 bytes of a completion. Its last two bytes, padding in C, hold the *generation*: the number of the
/// ring's round in which the slot was written, modulo 2¹⁵, with the top bit set, so that it differs from unwritten
/// memory. The producer stores the last word, which contains the generation, after all others. The consumer knows which
/// generation the next slot will have, so it needs no producer index: for four entries, only their three cache lines
/// move.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Slot {
    /// The last one contains the generation, and is always accessed as one word.
    words: [AtomicWord; WORDS],
    tracked: Tracked,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot>() == 48 && align_of::<Slot>() == 8);

/// Who accesses the memory of a ring: its two sides only ([`Own`]), or others too
/// ([`raw::Shared`](super::raw::Shared)).
pub trait Memory {
    /// What is stored beside the slots, and lives as long. It has no lifetime parameter, in which the sides of a queue
    /// would be invariant.
    type Beside: Copy + Send + fmt::Debug;

    /// Stores the tag of the completion that is about to be written to slot `index`.
    fn keep_tag(beside: Self::Beside, index: usize, tag: u32);

    /// Copies all words of a completion but the last to a slot.
    ///
    /// # Safety
    /// The caller is the producer that owns the slot, and has acquired that the consumer released it.
    unsafe fn copy_in(from: &[Word; BODY], to: &[AtomicWord; BODY]);

    /// Copies all words of a completion but the last from a slot.
    ///
    /// # Safety
    /// The caller is the only consumer, has acquired that the completion is published, and has not released the slot.
    unsafe fn copy_out(from: &[AtomicWord; BODY], to: &mut [Word; BODY]);
}

/// Memory that only the sides of the queue access. All words but the last are copied by plain moves, as wide as the
/// machine has them.
#[derive(Clone, Copy, Debug)]
pub enum Own {}

impl Memory for Own {
    type Beside = ();

    #[inline(always)]
    fn keep_tag((): (), _index: usize, _tag: u32) {}

    #[inline(always)]
    unsafe fn copy_in(from: &[Word; BODY], to: &[AtomicWord; BODY]) {
        // SAFETY: no other thread accesses these words until the last one is published. The consumer has released the
        // slot, and this thread has acquired that (guaranteed by the caller).
        unsafe { sync::write_plainly(from, to) };
    }

    #[inline(always)]
    unsafe fn copy_out(from: &[AtomicWord; BODY], to: &mut [Word; BODY]) {
        // SAFETY: the completion is published, which this thread has acquired, and no producer writes here again before
        // the slot is released, which only the caller does, and has not done (guaranteed by the caller).
        unsafe { sync::read_plainly(from, to) };
    }
}

impl Slot {
    const_unless_loom! {
        /// An unwritten slot.
        #[must_use]
        pub const fn new() -> Self {
            Self { words: array_of![AtomicWord::new(0); WORDS], tracked: Tracked::new() }
        }
    }

    /// Makes the slot an unwritten one.
    pub(super) fn reset(&mut self) {
        sync::store(&self.words[BODY], 0);
    }

    /// Withdraws the entry if it is published in `generation`: one that a killed producer left after a gap.
    #[cold]
    pub(super) fn withdraw(&self, generation: u16) {
        if self.is_published(generation) {
            sync::store(&self.words[BODY], 0);
        }
    }

    /// Writes all words of a completion but the last.
    ///
    /// # Safety
    /// The caller is the producer that owns the slot, and has acquired that the consumer released it.
    #[inline(always)]
    pub(super) unsafe fn write<M: Memory>(&self, wc: &Wc) {
        self.tracked.write();
        let ([from @ .., _], [body @ .., _]) = (wc.words(), &self.words);
        // SAFETY: guaranteed by the caller.
        unsafe { M::copy_in(from, body) };
    }

    /// Publishes the completion, whose other words have been [written](Self::write).
    #[inline(always)]
    pub(super) fn publish(&self, wc: &Wc, generation: u16) {
        sync::publish(&self.words[BODY], with_generation(wc.words()[BODY], generation));
    }

    /// Whether a completion is published in `generation`. The load is Relaxed: `false` may be stale, unless a fence or
    /// an Acquire before it orders it.
    #[inline(always)]
    pub(super) fn is_published(&self, generation: u16) -> bool {
        generation_of(sync::load(&self.words[BODY])) == generation
    }

    /// Reads the completion if it is published in `generation`: the last word with Acquire, then all others. Returns
    /// whether it is.
    ///
    /// # Safety
    /// The caller is the only consumer, and has not released the slot since the completion was published.
    #[inline(always)]
    pub(super) unsafe fn read<M: Memory>(&self, generation: u16, out: &mut Wc) -> bool {
        let [body @ .., last] = &self.words;
        let Some(last) = of_generation(sync::observe(last), generation) else { return false };
        self.tracked.read();
        let [to @ .., rest] = out.words_mut();
        // SAFETY: `observe` has acquired that it is published. The rest is guaranteed by the caller.
        unsafe { M::copy_out(body, to) };
        *rest = last;
        true
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}
