//! How a completion is written and read in memory that others may write to.
#![allow(unsafe_code)]

use super::Tags;
use crate::entry::Entry;
#[cfg(not(loom))]
use crate::queue::reference::Ref;
use crate::queue::slot::{Access, Memory};
use crate::sync::{self, AtomicWord, Tracked, Word, array_of, const_unless_loom};
use crate::wc::Wc;

/// The word of a completion with its generation.
type Padding = <Wc as Entry>::Generation;

/// Number of words in a completion.
const WORDS: usize = size_of::<Wc>() / size_of::<Word>();
/// The number of words before the last.
const BODY: usize = Padding::WORD;
const _: () = assert!(BODY == WORDS - 1);

/// Access that others may write to at any time. Each word is accessed individually and atomically.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub enum Shared {}

/// Storage for one completion of a raw queue. Any bit pattern is valid; zeros are an unwritten slot.
///
/// A slot is the 48 bytes of a completion. Its last two bytes, padding in C, hold the *generation*: the number of the
/// ring's round in which the slot was written, modulo 2¹⁵, with the top bit set, so that it differs from unwritten
/// memory. The producer stores the last word, which contains the generation, after all others. The consumer knows which
/// generation the next slot will have, so it needs no producer index: for four entries, only their three cache lines
/// move.
///
/// ```
/// use cq_core::queue::raw::{RawQueue, Slot};
/// use cq_core::queue::{Control, NoChannel, Tail};
///
/// static CONTROL: Control = Control::new();
/// static SLOTS: [Slot; 16] = [const { Slot::new() }; 16];
/// assert_eq!(size_of_val(&SLOTS), 16 * 48);
///
/// // SAFETY: it is the only producer of the queue in these statics.
/// let queue = unsafe { RawQueue::of(&CONTROL, &SLOTS, &[], 16) }?;
/// assert_eq!(queue.into_producer(Tail::at(0), NoChannel).available(), 16);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
#[repr(C, align(8))]
pub struct Slot {
    /// The last one contains the generation, and is always accessed as one word.
    words: [AtomicWord; WORDS],
    tracked: Tracked,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot>() == 48 && align_of::<Slot>() == 8);

impl Slot {
    const_unless_loom! {
        /// An unwritten slot.
        #[must_use]
        pub const fn new() -> Self {
            Self { words: array_of![AtomicWord::new(0); WORDS], tracked: Tracked::new() }
        }
    }

    /// Withdraws the entry if it is published in `generation`: one that a killed producer left after a gap.
    #[cold]
    pub(super) fn withdraw(&self, generation: Word) {
        if Shared::is_published(self, (), generation) {
            sync::store(&self.words[BODY], 0);
        }
    }
}

impl Memory<Wc> for Shared {
    type Access = Self;
}

impl Access<Wc> for Shared {
    const BITS: u32 = <Padding as Access<Wc>>::BITS;

    type Slot = Slot;
    type Beside = Tags;
    type Mark = ();

    #[inline(always)]
    unsafe fn mark(_: Tags, _: usize) {}

    #[inline(always)]
    unsafe fn mark_behind((): ()) {}

    #[inline(always)]
    fn placed(generation: u16) -> Word {
        <Padding as Access<Wc>>::placed(generation)
    }

    #[cfg(not(loom))]
    fn unpublished(_: Ref<'_, Slot>) -> Ref<'_, Slot> {
        static UNWRITTEN: Slot = Slot::new();
        Ref::from(&UNWRITTEN)
    }

    #[inline(always)]
    fn keep_tag(tags: Tags, slot: usize, tag: u32) {
        tags.store(slot, tag);
    }

    #[inline(always)]
    fn is_published(slot: &Slot, (): (), generation: Word) -> bool {
        Padding::of_generation(sync::load(&slot.words[BODY]), generation).is_some()
    }

    #[inline(always)]
    unsafe fn write(slot: &Slot, (): (), wc: &Wc) -> Word {
        slot.tracked.write();
        let words: &[Word; WORDS] = bytemuck::must_cast_ref(wc);
        words[..BODY].iter().zip(&slot.words).for_each(|(&from, to)| sync::store(to, from));
        words[BODY]
    }

    #[inline(always)]
    fn publish(slot: &Slot, (): (), word: Word, generation: Word) {
        sync::publish(&slot.words[BODY], Padding::with_generation(word, generation));
    }

    #[inline(always)]
    unsafe fn read(slot: &Slot, (): (), generation: Word, out: *mut Wc) -> bool {
        let last = sync::observe(&slot.words[BODY]);
        let Some(last) = Padding::of_generation(last, generation) else { return false };
        slot.tracked.read();
        let words = slot.words[..BODY].iter().map(sync::load).chain([last]);
        // SAFETY: an entry, which has so many words, can be written to `out` (guaranteed by the caller).
        words
            .enumerate()
            .for_each(|(nth, word)| unsafe { out.cast::<Word>().add(nth).write(word) });
        true
    }
}
