//! Slots, positions and generations: where an entry is stored. [`entry`](crate::entry) documents the generation.
#![allow(unsafe_code)]

use core::fmt;
use core::hint::assert_unchecked;

use super::reference::Ref;
use super::slot::{Access, Generation, NEVER, Slot};
use crate::entry::Entry;
use crate::sync::{self, AtomicWord, Unused, Word, const_unless_loom};

/// The largest number of slots of a ring.
pub const MAX_STORAGE: usize = 1 << 24;

/// The number of entries before an entry, wrapping. The widest word that the target loads and stores in one piece.
pub type Position = sync::Word;

/// The position up to which the consumer has released slots. On cache lines of its own, because the consumer stores it
/// while the producer works elsewhere.
#[derive(Debug, Default)]
#[cfg_attr(target_pointer_width = "64", repr(C, align(128)))]
#[cfg_attr(not(target_pointer_width = "64"), repr(C))]
pub(super) struct Head(AtomicWord, Unused<{ LINES - size_of::<Position>() }>);

/// The size of what is to be on cache lines of its own: two of them, since the one beside a line is prefetched with it. On
/// targets of 32 bits memory is small, and it is a word.
pub(super) const LINES: usize =
    if cfg!(target_pointer_width = "64") { 128 } else { size_of::<Position>() };

impl Head {
    const_unless_loom! {
        pub(super) const fn at(position: Position) -> Self {
            Self(AtomicWord::new(position), Unused::new())
        }
    }

    /// Loads the position up to which slots are released.
    #[inline(always)]
    pub(super) fn acquire(&self) -> Position {
        sync::acquire_head(&self.0)
    }

    /// Releases every slot before `position`.
    #[inline(always)]
    pub(super) fn release(&self, position: Position) {
        sync::release_head(&self.0, position);
    }
}

/// The slots of a ring. Their number is a power of two.
pub struct Ring<'a, E: Entry, A: Access<E> = <E as Entry>::Generation> {
    first: Ref<'a, A::Slot>,
    beside: A::Beside,
    /// One less than the number of slots.
    mask: Position,
    /// The number of bits of `mask`.
    shift: u32,
}

crate::copied!([E: Entry, A: Access<E>] Ring<'_, E, A>);

impl<'a, E: Entry, A: Access<E>> Ring<'a, E, A> {
    /// A ring of these slots. What is stored beside them lives as long.
    ///
    /// # Safety
    /// The number of slots is a power of two, at most [`MAX_STORAGE`], and as much is stored beside them.
    pub(super) unsafe fn new(slots: Ref<'a, [A::Slot]>, beside: A::Beside) -> Self {
        let (mask, shift) = ((slots.len() - 1) as Position, slots.len().trailing_zeros());
        // SAFETY: no power of two is 0 (guaranteed by the caller).
        Self { first: unsafe { slots.first() }, beside, mask, shift }
    }

    /// The number of slots.
    #[inline(always)]
    pub(super) const fn storage(&self) -> usize {
        self.mask as usize + 1
    }

    /// What is stored beside the slots.
    pub(super) const fn beside(&self) -> A::Beside {
        self.beside
    }

    #[inline(always)]
    pub(super) const fn index(&self, position: Position) -> usize {
        (position & self.mask) as usize
    }

    /// The generation of a position's round. Consecutive rounds differ, even where the position wraps, since the number
    /// of slots is a power of two.
    #[inline(always)]
    fn generation(&self, position: Position) -> Word {
        let top = 1 << (A::BITS - 1);
        // SAFETY: the number of slots is at most `MAX_STORAGE` (`new`), which is less than a word can be. Known to the compiler, this
        // spares a mask.
        unsafe { assert_unchecked(self.shift < Word::BITS) };
        A::placed((position >> self.shift) as u16 & (top - 1) | top)
    }

    /// The place of the entry at `position`.
    #[inline(always)]
    pub(super) fn place(&self, position: Position) -> Place<'a, E, A> {
        let index = self.index(position);
        // SAFETY: `index` is less than the number of slots, a power of two (`new`).
        let (slot, mark) = unsafe { (self.first.after(index), A::mark(self.beside, index)) };
        Place { slot, mark, generation: self.generation(position) }
    }

    /// Changes the place of the entry before `position`, which [`place`](Self::place) has returned, to that of the one at it.
    #[inline(always)]
    pub(super) fn step(&self, place: &mut Place<'a, E, A>, position: Position) {
        if self.index(position) == 0 {
            return self.step_to_first(place, position);
        }
        // SAFETY: `place` is not that of the last slot, behind which comes index 0.
        unsafe { (place.slot, place.mark) = (place.slot.after(1), A::mark_behind(place.mark)) };
    }

    #[cold]
    #[inline(never)]
    fn step_to_first(&self, place: &mut Place<'a, E, A>, position: Position) {
        *place = self.place(position);
    }

    /// The slots from `position` on that are contiguous in memory, at most `most`; and their generation.
    #[inline(always)]
    pub(super) fn span(&self, position: Position, most: usize) -> Span<'_, E, A> {
        let first = self.index(position);
        let count = most.min(self.storage() - first);
        // SAFETY: `first + count` is at most the number of slots, a power of two (`new`).
        let slots = unsafe { self.first.run(first, count) };
        Span { slots, beside: self.beside, first, generation: self.generation(position) }
    }
}

/// How entries are read in place.
impl<E: Entry, A: Generation<E>> Ring<'_, E, A> {
    /// How many entries are published from `position` on, at most `most`, by loads with Acquire.
    #[inline]
    pub(super) fn published(&self, position: Position, most: usize) -> usize {
        let most = most.min(self.storage());
        let span = self.span(position, most);
        match span.published() {
            count if count == most || count < span.len() => count,
            count => {
                count
                    + self.published_behind(position.wrapping_add(count as Position), most - count)
            }
        }
    }

    /// The same, from a position on whose index is 0.
    #[cold]
    #[inline(never)]
    fn published_behind(&self, position: Position, most: usize) -> usize {
        self.span(position, most).published()
    }

    /// These entries, in two slices where the memory wraps.
    ///
    /// # Safety
    /// As of [`Slot::entries`].
    #[inline(always)]
    pub(super) unsafe fn entries(&self, position: Position, count: usize) -> (&[E], &[E]) {
        let first = self.index(position);
        if count > self.storage() - first {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.entries_around(position, count) };
        }
        // SAFETY: `first + count` is at most the number of slots (`new`). Guaranteed by the caller.
        unsafe { (Slot::entries(self.first.run(first, count)), &[]) }
    }

    /// The same, where the memory wraps.
    ///
    /// # Safety
    /// As of [`Slot::entries`].
    #[cold]
    #[inline(never)]
    unsafe fn entries_around(&self, position: Position, count: usize) -> (&[E], &[E]) {
        let first = self.span(position, count).slots;
        let behind = position.wrapping_add(first.len() as Position);
        let second = self.span(behind, count - first.len()).slots;
        // SAFETY: guaranteed by the caller.
        unsafe { (Slot::entries(first), Slot::entries(second)) }
    }
}

impl<E: Entry, A: Access<E>> fmt::Debug for Ring<'_, E, A> {
    /// Omits the slots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("storage", &self.storage()).finish_non_exhaustive()
    }
}

/// A slot, and the generation that its entry has once published.
pub(super) struct Place<'a, E: Entry, A: Access<E>> {
    pub(super) slot: Ref<'a, A::Slot>,
    mark: A::Mark,
    /// Its bits, already in their place in the word.
    pub(super) generation: Word,
}

impl<E: Entry, A: Generation<E>> Place<'_, E, A> {
    /// Whether the entry is published, by a load with Acquire: it may be read in place.
    #[inline(always)]
    pub(super) fn is_readable(&self) -> bool {
        A::difference(&self.slot, self.mark, self.generation) & A::DIFFERS == 0
    }
}

impl<E: Entry, A: Access<E>> Place<'_, E, A> {
    /// Whether the entry is published.
    #[inline(always)]
    pub(super) fn is_published(&self) -> bool {
        A::is_published(&self.slot, self.mark, self.generation)
    }

    /// Reads the entry if it is published.
    ///
    /// # Safety
    /// As of [`Access::read`].
    #[inline(always)]
    pub(super) unsafe fn read(&self, out: *mut E) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { A::read(&self.slot, self.mark, self.generation, out) }
    }

    /// Writes an entry, except for what [publishes](Self::publish) it, and returns the word for that.
    ///
    /// # Safety
    /// As of [`Access::write`].
    #[inline(always)]
    pub(super) unsafe fn write(&self, entry: &E) -> Word {
        // SAFETY: guaranteed by the caller.
        unsafe { A::write(&self.slot, self.mark, entry) }
    }

    /// Publishes the entry that was [written](Self::write).
    #[inline(always)]
    pub(super) fn publish(&self, word: Word) {
        A::publish(&self.slot, self.mark, word, self.generation);
    }

    /// A place that is never published.
    pub(super) fn never(&self) -> Self {
        Self { slot: A::unpublished(self.slot), generation: A::placed(NEVER), ..*self }
    }
}

/// Contiguous slots.
pub struct Span<'r, E: Entry, A: Access<E>> {
    pub(super) slots: &'r [A::Slot],
    pub(super) beside: A::Beside,
    /// The index of the first one.
    first: usize,
    generation: Word,
}

impl<'r, E: Entry, A: Access<E>> Span<'r, E, A> {
    /// Each slot with its index.
    #[inline(always)]
    pub(super) fn places(
        &self,
    ) -> impl ExactSizeIterator<Item = (usize, Place<'r, E, A>)> + use<'r, E, A> {
        let Self { slots, beside, first, generation } = *self;
        slots.iter().enumerate().map(move |(nth, slot)| {
            // SAFETY: the ring has as much beside the slots as there are slots (`Ring::new`).
            let mark = unsafe { A::mark(beside, first + nth) };
            (first + nth, Place { slot: Ref::from(slot), mark, generation })
        })
    }

    /// The number of slots.
    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many of the entries are published, from the first one on, by loads with Acquire: these may be read in place.
    #[inline(always)]
    pub(super) fn published(&self) -> usize
    where
        A: Generation<E>,
    {
        /// Which are checked by one branch. A branch for each takes twice as long.
        const TOGETHER: usize = 8;
        let difference = |nth: usize| {
            // SAFETY: `nth` is less than `len`. The ring has as much beside the slots as there are slots (`Ring::new`).
            let (slot, mark) =
                unsafe { (self.slots.get_unchecked(nth), A::mark(self.beside, self.first + nth)) };
            A::difference(slot, mark, self.generation)
        };
        let is_none = |differences: Word| differences & A::DIFFERS == 0;
        let mut count = 0;
        while !sync::IS_SMALL
            && self.len() - count >= TOGETHER
            && is_none((0..TOGETHER).fold(0, |all, nth| all | difference(count + nth)))
        {
            count += TOGETHER;
        }
        while count < self.len() && is_none(difference(count)) {
            count += 1;
        }
        count
    }
}

impl<E: Entry, A: Access<E>> fmt::Debug for Place<'_, E, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a slot")
    }
}
