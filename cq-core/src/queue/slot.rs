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
///
/// Its producer writes word by word, also where the memory is the queue's own: other cores were measured to see words in
/// order earlier than the wider moves of a copy.
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

    /// Reads the completion if it is published in this generation; says whether.
    ///
    /// # Safety
    /// This is the one consumer, and it has not given the slot back since the completion was published.
    unsafe fn read(slot: &Slot, generation: u16, out: &mut Wc) -> bool;
}

/// Memory that nobody reaches but the two sides of the queue.
#[derive(Clone, Copy, Debug)]
pub enum Own {}

impl Memory for Own {
    type Beside = ();

    #[inline(always)]
    fn keep_tag((): (), _index: usize, _tag: u32) {}

    /// Copies all words at once.
    #[inline(always)]
    unsafe fn read(slot: &Slot, generation: u16, out: &mut Wc) -> bool {
        slot.read_by(generation, out, |from, to| {
            // SAFETY: the completion is published, which was acquired, and its producer, the only one that writes here, does
            // not write again before the slot is given back (the caller's word).
            unsafe { sync::copy_plainly(from, to) };
        })
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

    /// Writes all of a completion but what [`publish`](Self::publish) does.
    #[inline(always)]
    pub(super) fn prepare(&self, wc: &Wc) {
        self.tracked.write();
        for (to, &from) in self.words[..LAST].iter().zip(wc.words()) {
            sync::store(to, from);
        }
    }

    /// Publishes the completion that was [prepared](Self::prepare).
    #[inline(always)]
    pub(super) fn publish(&self, wc: &Wc, generation: u16) {
        sync::publish(&self.words[LAST], with_generation(wc.words()[LAST], generation));
    }

    /// Whether a completion is published in this generation. A hint, but a true one after a fence or an Acquire.
    #[inline(always)]
    pub(super) fn is_published(&self, generation: u16) -> bool {
        generation_of(sync::load(&self.words[LAST])) == generation
    }

    /// Reads the completion if it is published in this generation, word by word.
    #[inline(always)]
    pub(super) fn read_words(&self, generation: u16, out: &mut Wc) -> bool {
        self.read_by(generation, out, |from, to| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = sync::load(from);
            }
        })
    }

    /// Reads the completion if it is published in this generation, by a copy of all words but the last.
    #[inline(always)]
    fn read_by(
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
