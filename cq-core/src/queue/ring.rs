//! Slots, positions and generations: where an entry lies.
//!
//! A slot is the 48 bytes of a completion. Its last two, padding in C, hold the *generation*: which round of the ring
//! it was written in, modulo 2¹⁵, with the top bit set, so that it is never that of memory which nobody has
//! written. The producer stores the last word, generation included, after all others. The consumer knows which
//! generation the next slot will have, so it needs no index of the producer's: three cache lines move for four
//! entries, and nothing else.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use super::completion::Completion;
use super::slot::{Memory, NEVER, Slot};
use crate::sync::{self, AtomicWord, const_unless_loom};
use crate::wc::Wc;

/// The most slots that a ring may have.
pub const MAX_STORAGE: usize = 1 << 24;

/// How many entries came before, wrapping: the widest word that the target loads and stores in one piece.
pub type Position = sync::Word;

/// The position up to which the consumer has given slots back. Alone in its cache lines, because the consumer writes
/// it while the producer works elsewhere.
#[derive(Debug)]
#[cfg_attr(target_pointer_width = "64", repr(C, align(128)))]
#[cfg_attr(not(target_pointer_width = "64"), repr(C))]
pub(super) struct Head(AtomicWord);

impl Head {
    const_unless_loom! {
        pub(super) const fn at(position: Position) -> Self {
            Self(AtomicWord::new(position))
        }
    }

    /// Learns which slots the consumer has given back.
    #[inline(always)]
    pub(super) fn acquire(&self) -> Position {
        sync::acquire_head(&self.0)
    }

    /// Gives back every slot before a position.
    #[inline(always)]
    pub(super) fn release(&self, position: Position) {
        sync::release_head(&self.0, position);
    }
}

/// A reference to memory of a queue. Unlike a reference it may be moved while the memory goes, so that a side can
/// own the storage that it refers to.
pub(super) struct Ref<'a, T: ?Sized>(NonNull<T>, PhantomData<&'a T>);

impl<T: ?Sized> Ref<'_, T> {
    /// # Safety
    /// Whoever dereferences a copy keeps the value alive until then, at the least for `'a`.
    pub(super) const unsafe fn kept(value: NonNull<T>) -> Self {
        Self(value, PhantomData)
    }
}

impl<'a, T> Ref<'a, T> {
    /// Whether it is the same value.
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
        // SAFETY: it was made from a reference that lives for `'a`, or of a value that is kept alive (`kept`).
        unsafe { self.0.as_ref() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

// SAFETY: a shared reference to `T`.
unsafe impl<T: ?Sized + Sync> Send for Ref<'_, T> {}
// SAFETY: a shared reference to `T`.
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
    /// A ring of these slots, whose number has been [checked](super::CapacityError::check_storage), and of what lies beside
    /// them for as long.
    pub(super) fn new(slots: Ref<'a, [Slot]>, beside: M::Beside) -> Self {
        Self { slots, beside, shift: slots.len().trailing_zeros() }
    }

    /// How many entries it stores.
    #[inline(always)]
    pub(super) const fn storage(&self) -> usize {
        1 << self.shift
    }

    /// What lies beside the slots.
    pub(super) const fn beside(&self) -> M::Beside {
        self.beside
    }

    #[inline(always)]
    pub(super) const fn index(&self, position: Position) -> usize {
        position as usize & (self.storage() - 1)
    }

    /// Which round a position is in. Rounds that follow each other differ, also where the position wraps, since a
    /// round is a power of two.
    #[inline(always)]
    const fn generation(&self, position: Position) -> u16 {
        (position >> self.shift) as u16 | 1 << 15
    }

    /// Where the entry of a position lies.
    #[inline(always)]
    pub(super) fn place(&self, position: Position) -> Place<'a> {
        // SAFETY: an index is below the number of slots, which is a power of two; the slot lives as its slice.
        let slot =
            unsafe { Ref::kept(NonNull::from(self.slots.get_unchecked(self.index(position)))) };
        Place { slot, generation: self.generation(position) }
    }

    /// The slots from a position on, `most` at most, as far as they follow each other; and their generation.
    #[inline(always)]
    pub(super) fn span(&self, position: Position, most: usize) -> (&[Slot], u16) {
        let first = self.index(position);
        let count = most.min(self.storage() - first);
        // SAFETY: `first + count` is at most the number of slots.
        let slots = unsafe { self.slots.get_unchecked(first..first + count) };
        (slots, self.generation(position))
    }

    /// Writes and publishes a completion.
    ///
    /// # Safety
    /// The slot of this position is the caller's, the producer's to whom it was given back.
    #[inline(always)]
    pub(super) unsafe fn write(&self, position: Position, completion: &impl Completion) {
        let Place { slot, generation } = self.place(position);
        M::keep_tag(self.beside, self.index(position), completion.tag());
        // SAFETY: the slot is the caller's.
        unsafe { M::write(&slot, completion.wc()) };
        slot.publish(completion.wc(), generation);
    }

    /// Writes completions to the slots from a position on, and publishes the first of them last: the consumer waits for
    /// that one, and would take the cache lines away that the next ones lie in.
    ///
    /// # Safety
    /// The slots of all these positions are the caller's, so they are no more than there are.
    #[inline(always)]
    pub(super) unsafe fn write_all<C: Completion>(&self, position: Position, completions: &[C]) {
        let [first, rest @ ..] = completions else { return };
        let Place { slot, generation } = self.place(position);
        // SAFETY: the slot is the caller's.
        unsafe { M::write(&slot, first.wc()) };
        let (mut next, mut rest) = (position.wrapping_add(1), rest);
        while !rest.is_empty() {
            let (slots, generation) = self.span(next, rest.len());
            let index = self.index(next);
            for (nth, (slot, completion)) in slots.iter().zip(rest).enumerate() {
                M::keep_tag(self.beside, index + nth, completion.tag());
                // SAFETY: the slot is the caller's.
                unsafe { M::write(slot, completion.wc()) };
                slot.publish(completion.wc(), generation);
            }
            next = next.wrapping_add(slots.len() as Position);
            rest = &rest[slots.len()..];
        }
        M::keep_tag(self.beside, self.index(position), first.tag());
        slot.publish(first.wc(), generation);
    }

    /// Copies what is published from a position on to the start of `out`, and says how much that is.
    ///
    /// # Safety
    /// The caller is the one consumer, and has given back no slot from this position on.
    #[inline(always)]
    pub(super) unsafe fn read_run(&self, position: Position, out: &mut [Wc]) -> usize {
        let mut count = 0;
        loop {
            let (slots, generation) =
                self.span(position.wrapping_add(count as Position), out.len() - count);
            for (slot, room) in slots.iter().zip(&mut out[count..]) {
                // SAFETY: the caller's word.
                if !unsafe { M::read(slot, generation, room) } {
                    return count;
                }
                count += 1;
            }
            if count == out.len() {
                return count;
            }
        }
    }
}

impl<M: Memory> fmt::Debug for Ring<'_, M> {
    /// Without the slots: there are thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("storage", &self.storage()).finish_non_exhaustive()
    }
}

/// A slot, and the generation that its entry has once it is published.
pub(super) struct Place<'a> {
    slot: Ref<'a, Slot>,
    generation: u16,
}

impl Place<'_> {
    /// Whether the entry is published.
    #[inline(always)]
    pub(super) fn is_published(&self) -> bool {
        self.slot.is_published(self.generation)
    }

    /// Reads the entry if it is published.
    ///
    /// # Safety
    /// The caller is the one consumer, and has not given the slot back.
    #[inline(always)]
    pub(super) unsafe fn read<M: Memory>(&self, out: &mut Wc) -> bool {
        // SAFETY: the caller's word.
        unsafe { M::read(&self.slot, self.generation, out) }
    }

    /// Takes back what was published here, if it is.
    #[cold]
    pub(super) fn withdraw(&self) {
        self.slot.withdraw(self.generation);
    }

    /// The place whose entry is never published.
    pub(super) const fn never(&self) -> Self {
        Self { slot: self.slot, generation: NEVER }
    }
}

impl fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a slot, generation {}", self.generation)
    }
}
