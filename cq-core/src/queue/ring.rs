//! Slots, positions and generations: where an entry is stored. [`Slot`] documents the generation.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use super::slot::{Memory, NEVER, Slot};
use crate::sync::{self, AtomicWord, Unused, const_unless_loom};

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

/// A reference to a queue's memory. Unlike `&T`, it may be moved while the memory is freed, so that a side can own the
/// storage that it refers to.
pub(super) struct Ref<'a, T: ?Sized>(NonNull<T>, PhantomData<&'a T>);

impl<T: ?Sized> Ref<'_, T> {
    /// # Safety
    /// The value is alive, and not borrowed mutably, whenever this or a copy of it is dereferenced, and for as long as
    /// the reference obtained is in use.
    pub(super) const unsafe fn kept(value: NonNull<T>) -> Self {
        Self(value, PhantomData)
    }
}

impl<'a, T> Ref<'a, T> {
    /// Whether both refer to the same value.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// A part of the value.
    pub(super) fn part<U>(self, of: impl for<'x> FnOnce(&'x T) -> &'x U) -> Ref<'a, U> {
        Ref(NonNull::from(of(&self)), PhantomData)
    }
}

impl<'a, T: ?Sized> From<&'a T> for Ref<'a, T> {
    fn from(value: &'a T) -> Self {
        Self(NonNull::from(value), PhantomData)
    }
}

impl<T: ?Sized> Clone for Ref<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Ref<'_, T> {}

impl<T: ?Sized> Deref for Ref<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: it was made from a reference that lives for `'a`, or by `kept`, whose caller keeps the value alive.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

// SAFETY: it gives shared access only, as `&T` does, and `T` is `Sync`.
unsafe impl<T: ?Sized + Sync> Send for Ref<'_, T> {}
// SAFETY: as for `Send`.
unsafe impl<T: ?Sized + Sync> Sync for Ref<'_, T> {}

/// The slots of a ring. Their number is a power of two.
pub(super) struct Ring<'a, M: Memory> {
    slots: Ref<'a, [Slot]>,
    beside: M::Beside,
    shift: u32,
}

impl<M: Memory> Clone for Ring<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Memory> Copy for Ring<'_, M> {}

impl<'a, M: Memory> Ring<'a, M> {
    /// A ring of these slots. What is stored beside them lives as long.
    ///
    /// # Safety
    /// The number of slots is a power of two.
    pub(super) unsafe fn new(slots: Ref<'a, [Slot]>, beside: M::Beside) -> Self {
        Self { slots, beside, shift: slots.len().trailing_zeros() }
    }

    /// The number of slots.
    #[inline(always)]
    pub(super) const fn storage(&self) -> usize {
        1 << self.shift
    }

    /// What is stored beside the slots.
    pub(super) const fn beside(&self) -> M::Beside {
        self.beside
    }

    #[inline(always)]
    pub(super) const fn index(&self, position: Position) -> usize {
        position as usize & (self.storage() - 1)
    }

    /// The generation of a position's round. Consecutive rounds differ, even where the position wraps, since the number
    /// of slots is a power of two.
    #[inline(always)]
    const fn generation(&self, position: Position) -> u16 {
        (position >> self.shift) as u16 | 1 << 15
    }

    /// The place of the entry at `position`.
    #[inline(always)]
    pub(super) fn place(&self, position: Position) -> Place<'a> {
        // SAFETY: `index` is less than the number of slots, a power of two (`new`). The slot lives as long as its slice.
        let slot =
            unsafe { Ref::kept(NonNull::from(self.slots.get_unchecked(self.index(position)))) };
        Place { slot, generation: self.generation(position) }
    }

    /// The slots from `position` on that are contiguous in memory, at most `most`; and their generation.
    #[inline(always)]
    pub(super) fn span(&self, position: Position, most: usize) -> (&[Slot], u16) {
        let first = self.index(position);
        let count = most.min(self.storage() - first);
        // SAFETY: `first + count` is at most the number of slots, a power of two (`new`).
        let slots = unsafe { self.slots.get_unchecked(first..first + count) };
        (slots, self.generation(position))
    }
}

impl<M: Memory> fmt::Debug for Ring<'_, M> {
    /// Omits the slots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("storage", &self.storage()).finish_non_exhaustive()
    }
}

/// A slot, and the generation that its entry has once published.
pub(super) struct Place<'a> {
    pub(super) slot: Ref<'a, Slot>,
    pub(super) generation: u16,
}

impl Place<'_> {
    /// Whether the entry is published.
    #[inline(always)]
    pub(super) fn is_published(&self) -> bool {
        self.slot.is_published(self.generation)
    }

    /// Withdraws the entry if it is published.
    #[cold]
    pub(super) fn withdraw(&self) {
        self.slot.withdraw(self.generation);
    }

    /// The same slot with a generation that is never published.
    pub(super) const fn never(&self) -> Self {
        Self { slot: self.slot, generation: NEVER }
    }
}

impl fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a slot, generation {}", self.generation)
    }
}
