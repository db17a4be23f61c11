//! One entry: how it is written and read.
#![allow(unsafe_code)]

use core::fmt;

use crate::sync::{self, AtomicWord, Tracked, Word, array_of, const_unless_loom};
use crate::wc::{WORDS, Wc, generation_of, of_generation, with_generation};

const LAST: usize = WORDS - 1;

/// The generation that no entry ever has: a place with it is never published. Real ones have the top bit set, and
/// memory that was never written has 0.
pub(super) const NEVER: u16 = 1;

/// One completion in a ring. Any bytes are a slot, zeros are an empty one.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Slot {
    /// The last one has the generation, and is always accessed as this one word.
    words: [AtomicWord; WORDS],
    tracked: Tracked,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot>() == 48 && align_of::<Slot>() == 8);

/// Whose memory a ring lies in: [`Own`], or that of others ([`raw::Shared`](super::raw::Shared)).
pub trait Memory {
    /// What lies beside the slots, and lives as long. Without a lifetime of its own, which would be invariant in the sides
    /// of a queue.
    type Beside: Copy + Send + fmt::Debug;

    /// Keeps the tag of the completion that is about to be written to the slot of this index.
    fn keep_tag(beside: Self::Beside, index: usize, tag: u32);

    /// Writes all of a completion but the last word.
    ///
    /// # Safety
    /// The slot is the caller's, the producer's to whom the consumer has given it back.
    unsafe fn write(slot: &Slot, wc: &Wc);

    /// Reads the completion if it is published in this generation. Returns whether it is.
    ///
    /// # Safety
    /// The caller is the one consumer, and has not given the slot back since the completion was published.
    unsafe fn read(slot: &Slot, generation: u16, out: &mut Wc) -> bool;
}

/// Memory that nobody reaches but the two sides of the queue: the words between two publications are copied plainly, in
/// moves as wide as the machine has.
#[derive(Clone, Copy, Debug)]
pub enum Own {}

impl Memory for Own {
    type Beside = ();

    #[inline(always)]
    fn keep_tag((): (), _index: usize, _tag: u32) {}

    #[inline(always)]
    unsafe fn write(slot: &Slot, wc: &Wc) {
        // SAFETY: nobody else reaches the words until the last one is published: the consumer has given the slot back, which
        // was acquired (the caller's word).
        slot.write_by(wc, |from, to| unsafe { sync::write_plainly(from, to) });
    }

    #[inline(always)]
    unsafe fn read(slot: &Slot, generation: u16, out: &mut Wc) -> bool {
        // SAFETY: the completion is published, which was acquired, and its producer, the only one that writes here, does not
        // write again before the slot is given back (the caller's word).
        slot.read_by(generation, out, |from, to| unsafe { sync::read_plainly(from, to) })
    }
}

impl Slot {
    const_unless_loom! {
        /// A slot that was never written.
        #[must_use]
        pub const fn new() -> Self {
            Self { words: array_of![AtomicWord::new(0); WORDS], tracked: Tracked::new() }
        }
    }

    /// Makes the slot one that was never written.
    pub(super) fn reset(&mut self) {
        sync::store(&self.words[LAST], 0);
    }

    /// Takes back what a producer has published in this generation that nobody will go on from.
    #[cold]
    pub(super) fn withdraw(&self, generation: u16) {
        if self.is_published(generation) {
            sync::store(&self.words[LAST], 0);
        }
    }

    /// Publishes the completion whose other words are [written](Memory::write).
    #[inline(always)]
    pub(super) fn publish(&self, wc: &Wc, generation: u16) {
        sync::publish(&self.words[LAST], with_generation(wc.words()[LAST], generation));
    }

    /// Whether a completion is published in this generation. A hint, but a true one after a fence or an Acquire.
    #[inline(always)]
    pub(super) fn is_published(&self, generation: u16) -> bool {
        generation_of(sync::load(&self.words[LAST])) == generation
    }

    /// Writes all words but the last one, by `copy`.
    #[inline(always)]
    pub(super) fn write_by(&self, wc: &Wc, copy: impl FnOnce(&[Word; LAST], &[AtomicWord; LAST])) {
        self.tracked.write();
        let ([from @ .., _], [body @ .., _]) = (wc.words(), &self.words);
        copy(from, body);
    }

    /// Reads the completion if it is published in this generation: the last word, then all others by `copy`.
    #[inline(always)]
    pub(super) fn read_by(
        &self,
        generation: u16,
        out: &mut Wc,
        copy: impl FnOnce(&[AtomicWord; LAST], &mut [Word; LAST]),
    ) -> bool {
        let [body @ .., last] = &self.words;
        let Some(last) = of_generation(sync::observe(last), generation) else { return false };
        self.tracked.read();
        let [to @ .., rest] = out.words_mut();
        copy(body, to);
        *rest = last;
        true
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}
