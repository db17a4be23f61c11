//! Generations in spare bits of the entries themselves.
#![allow(unsafe_code)]

use core::slice;

use bytemuck::Pod;

use super::{Access, Generation, Slot};
use crate::entry::InEntry;
use crate::sync::{self, AtomicWord, Word};

/// The fewest bits of a generation: two rounds that follow each other, unwritten memory and [`NEVER`](super::NEVER) differ.
const FEWEST: u32 = 2;

/// The unsigned integers that spare bits can be of.
#[diagnostic::on_unimplemented(
    message = "spare bits are of a `u8`, a `u16` or a `u32`, not of `{Self}`"
)]
pub trait Field: core::fmt::Debug + 'static {}
impl Field for u8 {}
impl Field for u16 {}
impl Field for u32 {}

/// A word that contains a generation.
impl<F: Field, const AT: usize, const MASK: u32> InEntry<F, AT, MASK> {
    /// The number of the entry's word that has the bits.
    pub(in crate::queue) const WORD: usize = AT / size_of::<Word>();

    const WIDTH: u32 = MASK.count_ones();

    /// The highest generation.
    const MOST: u16 = u16::MAX >> (u16::BITS - Self::WIDTH);

    /// Bit position of the generation in its word.
    const SHIFT: u32 = {
        let (size, at) = (size_of::<F>(), AT % size_of::<Word>());
        let before =
            if cfg!(target_endian = "little") { at } else { size_of::<Word>() - size - at };
        8 * before as u32 + MASK.trailing_zeros()
    };

    /// Checks, as it compiles, that the bits can be in an entry of this type.
    const fn check<E>() {
        const {
            let field = size_of::<F>();
            assert!(Self::WIDTH >= FEWEST, "a generation has at least 2 bits");
            assert!(Self::WIDTH <= u16::BITS, "a generation has at most 16 bits");
            let bits = MASK >> MASK.trailing_zeros();
            assert!(bits & (bits + 1) == 0, "the spare bits are not adjacent");
            assert!(
                MASK.leading_zeros() as usize >= 32 - 8 * field,
                "the mask is not in its field"
            );
            assert!(AT.is_multiple_of(field), "the field with the spare bits is not aligned");
            assert!(
                AT + field <= size_of::<E>(),
                "the field with the spare bits is not in the entry"
            );
            // An atomic word is aligned to its size; a plain one need not be, as on 32-bit x86.
            assert!(
                size_of::<E>().is_multiple_of(size_of::<Word>())
                    && align_of::<E>() >= size_of::<Word>(),
                "an entry with its generation in it has the size and the alignment of words: `#[repr(C, align(8))]`; else use `InArray`"
            );
        }
    }

    /// The bits of the word that are the generation's.
    const FIELD: Word = (Self::MOST as Word) << Self::SHIFT;

    /// Returns `word` with its spare bits replaced by `generation`.
    #[inline(always)]
    pub(in crate::queue) const fn with_generation(word: Word, generation: Word) -> Word {
        word & !Self::FIELD | generation
    }

    /// Returns `word` with its generation cleared, or `None` if the generation differs from `generation`.
    #[inline(always)]
    pub(in crate::queue) const fn of_generation(word: Word, generation: Word) -> Option<Word> {
        // If the generations are equal, the exclusive or clears the bits. So one comparison is enough.
        let rest = word ^ generation;
        if rest & Self::FIELD == 0 { Some(rest) } else { None }
    }

    /// The entry's words.
    #[inline(always)]
    const fn words<E: Pod>(entry: &E) -> &[Word] {
        Self::check::<E>();
        bytemuck::must_cast_slice(slice::from_ref(entry))
    }

    /// Copies all words but the one with the generation.
    ///
    /// # Safety
    /// As of [`sync::copy_in_order`], for these words of two entries.
    #[inline(always)]
    unsafe fn copy_others<E: Pod>(from: *const E, to: *mut E) {
        Self::check::<E>();
        let (from, to, behind) = (from.cast::<Word>(), to.cast::<Word>(), Self::WORD + 1);
        // SAFETY: guaranteed by the caller; an entry has no other words (`check`).
        unsafe {
            sync::copy_in_order(from, to, Self::WORD);
            let words = size_of::<E>() / size_of::<Word>();
            sync::copy_in_order(from.add(behind), to.add(behind), words - behind);
        }
    }

    /// The entry's words.
    #[inline(always)]
    fn words_mut<E: Pod>(entry: &mut E) -> &mut [Word] {
        Self::check::<E>();
        bytemuck::must_cast_slice_mut(slice::from_mut(entry))
    }
}

cfg_if::cfg_if! {
    if #[cfg(loom)] {
        use super::Cell;
        use crate::queue::reference::Ref;
        use crate::sync::Tracked;

        /// The word with the generation is beside the slot: loom's atomics are no plain memory.
        type Apart = Cell<AtomicWord>;
        type Beside = super::Beside<Apart>;
        type Mark = Ref<'static, Apart>;

        impl Apart {
            fn new() -> Self {
                Self { word: AtomicWord::new(0), tracked: Tracked::new() }
            }
        }

        impl<F: Field, const AT: usize, const MASK: u32> InEntry<F, AT, MASK> {
            fn word<'s, E>(_: &'s Slot<E>, mark: &'s Mark) -> &'s AtomicWord {
                &mark.word
            }
        }
    } else {
        /// Nothing is stored beside the slots.
        type Apart = ();
        type Beside = ();
        type Mark = ();

        impl<F: Field, const AT: usize, const MASK: u32> InEntry<F, AT, MASK> {
            /// The word of the slot that has the generation, and is always accessed as one word.
            #[inline(always)]
            fn word<'s, E>(slot: &'s Slot<E>, _: &'s Mark) -> &'s AtomicWord {
                // SAFETY: the word is in the slot and aligned (`words` checks that as it compiles). While sides exist, it is
                // written by this atomic only, and otherwise read when no producer writes it: once it was published, and
                // before the slot is released.
                unsafe { AtomicWord::from_ptr(slot.0.get().cast::<Word>().add(Self::WORD)) }
            }
        }
    }
}

impl<E: Pod, F: Field, const AT: usize, const MASK: u32> Access<E> for InEntry<F, AT, MASK> {
    const BITS: u32 = Self::WIDTH;

    type Slot = Slot<E>;
    type Beside = Beside;
    type Mark = Mark;

    #[inline(always)]
    unsafe fn mark(_beside: Beside, _index: usize) -> Mark {
        #[cfg(loom)]
        // SAFETY: the ring has the slot (guaranteed by the caller).
        unsafe {
            _beside.at(_index)
        }
    }

    #[inline(always)]
    unsafe fn mark_behind(_mark: Mark) -> Mark {
        #[cfg(loom)]
        // SAFETY: the ring has a slot behind this one (guaranteed by the caller).
        unsafe {
            _mark.after(1)
        }
    }

    #[inline(always)]
    fn placed(generation: u16) -> Word {
        Word::from(generation) << Self::SHIFT
    }

    #[inline(always)]
    fn is_published(slot: &Slot<E>, mark: Mark, generation: Word) -> bool {
        Self::of_generation(sync::load(Self::word(slot, &mark)), generation).is_some()
    }

    #[inline(always)]
    unsafe fn write(slot: &Slot<E>, _mark: Mark, entry: &E) -> Word {
        let word = Self::words(entry)[Self::WORD];
        #[cfg(loom)]
        {
            _mark.tracked.write();
            // The word too, whose place in the slot is not the one that publishes it here.
            // SAFETY: as below.
            unsafe { slot.0.get().write(*entry) };
        }
        // SAFETY: no other thread accesses these words until the entry is published. The consumer has released the slot, and
        // this thread has acquired that (guaranteed by the caller).
        unsafe { Self::copy_others(entry, slot.0.get()) };
        word
    }

    #[inline(always)]
    fn publish(slot: &Slot<E>, mark: Mark, word: Word, generation: Word) {
        sync::publish(Self::word(slot, &mark), Self::with_generation(word, generation));
    }

    #[inline(always)]
    unsafe fn read(slot: &Slot<E>, mark: Mark, generation: Word, out: *mut E) -> bool {
        let word = sync::observe(Self::word(slot, &mark));
        let Some(word) = Self::of_generation(word, generation) else { return false };
        #[cfg(loom)]
        mark.tracked.read();
        // SAFETY: the entry is published, which this thread has acquired, and no producer writes here again before the slot is
        // released, which only the caller does, and has not done (guaranteed by the caller).
        unsafe {
            Self::copy_others(slot.0.get(), out);
            out.cast::<Word>().add(Self::WORD).write(word);
        }
        true
    }
}

impl<E: Pod, F: Field, const AT: usize, const MASK: u32> Generation<E> for InEntry<F, AT, MASK> {
    type Cell = Apart;

    const DIFFERS: Word = Self::FIELD;

    #[cfg(not(loom))]
    const UNWRITTEN: Apart = Self::check::<E>();

    fn unwritten() -> Apart {
        Self::check::<E>();
        #[cfg(loom)]
        Apart::new()
    }

    unsafe fn beside(_cells: &[Apart]) -> Beside {
        #[cfg(loom)]
        // SAFETY: guaranteed by the caller.
        unsafe {
            Beside::kept(_cells)
        }
    }

    fn reset(slot: &mut Slot<E>, _cell: &mut Apart) {
        Self::words_mut(slot.0.get_mut())[Self::WORD] = 0;
        #[cfg(loom)]
        sync::store(&_cell.word, 0);
    }

    #[inline(always)]
    fn difference(slot: &Slot<E>, mark: Mark, generation: Word) -> Word {
        let difference = sync::observe(Self::word(slot, &mark)) ^ generation;
        #[cfg(loom)]
        if difference & <Self as Generation<E>>::DIFFERS == 0 {
            mark.tracked.read();
        }
        difference
    }
}
