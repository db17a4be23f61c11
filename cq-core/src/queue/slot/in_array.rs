//! Generations in an array of bytes, beside the slots.
#![allow(unsafe_code)]

use bytemuck::Pod;

use super::{Access, Beside, Cell, Generation, Slot};
use crate::entry::{Entry, InArray};
use crate::queue::completion::Completion;
use crate::queue::reference::Ref;
use crate::queue::ring::{Position, Ring, Span};
use crate::sync::{self, AtomicU8, Tracked, Word, const_unless_loom};

impl Cell<AtomicU8> {
    const_unless_loom! {
        const fn new() -> Self {
            Self { word: AtomicU8::new(0), tracked: Tracked::new() }
        }
    }
}

impl<E: Pod> Access<E> for InArray {
    const BITS: u32 = u8::BITS;

    type Slot = Slot<E>;
    type Beside = Beside<Cell<AtomicU8>>;
    type Mark = Ref<'static, Cell<AtomicU8>>;

    #[inline(always)]
    unsafe fn mark(cells: Self::Beside, index: usize) -> Self::Mark {
        // SAFETY: the ring has the slot (guaranteed by the caller).
        unsafe { cells.at(index) }
    }

    #[inline(always)]
    unsafe fn mark_behind(mark: Self::Mark) -> Self::Mark {
        // SAFETY: the ring has a slot behind this one (guaranteed by the caller).
        unsafe { mark.after(1) }
    }

    #[inline(always)]
    fn placed(generation: u16) -> Word {
        generation.into()
    }

    #[inline(always)]
    fn is_published(_: &Slot<E>, mark: Self::Mark, generation: Word) -> bool {
        sync::load_u8(&mark.word) == generation as u8
    }

    #[inline(always)]
    unsafe fn write(slot: &Slot<E>, mark: Self::Mark, entry: &E) -> Word {
        mark.tracked.write();
        // SAFETY: no other thread accesses the entry until it is published. The consumer has released the slot, and this
        // thread has acquired that (guaranteed by the caller).
        unsafe { sync::copy_entry(entry, slot.0.get()) };
        0
    }

    #[inline(always)]
    fn publish(_: &Slot<E>, mark: Self::Mark, _: Word, generation: Word) {
        sync::publish_u8(&mark.word, generation as u8);
    }

    #[inline(always)]
    unsafe fn read(slot: &Slot<E>, mark: Self::Mark, generation: Word, out: *mut E) -> bool {
        if Self::difference(slot, mark, generation) != 0 {
            return false;
        }
        // SAFETY: `difference` has acquired that the entry is published, and no producer writes here again before the slot is
        // released, which only the caller does, and has not done (guaranteed by the caller).
        unsafe { sync::copy_entry(slot.0.get(), out) };
        true
    }

    /// The entries are contiguous: all are copied at once, and then published.
    #[inline(always)]
    unsafe fn write_span<T: Completion<E>>(span: &Span<'_, E, Self>, completions: &[T])
    where
        E: Entry,
    {
        for ((_, place), completion) in span.places().zip(completions) {
            // SAFETY: the caller owns the slot.
            unsafe { place.write(completion.entry()) };
        }
        for (_, place) in span.places() {
            place.publish(0);
        }
    }

    /// The same of copying.
    #[inline(always)]
    unsafe fn read_run(ring: &Ring<'_, E, Self>, position: Position, out: &mut [E]) -> usize
    where
        E: Entry,
    {
        let count = ring.published(position, out.len());
        // SAFETY: the caller is the only consumer, and has not released these slots. `published` has acquired them.
        let (first, second) = unsafe { ring.entries(position, count) };
        let (to_first, to_second) = out[..count].split_at_mut(first.len());
        to_first.copy_from_slice(first);
        to_second.copy_from_slice(second);
        count
    }
}

impl<E: Pod> Generation<E> for InArray {
    type Cell = Cell<AtomicU8>;

    const DIFFERS: Word = Word::MAX;

    #[cfg(not(loom))]
    #[allow(clippy::declare_interior_mutable_const, reason = "each use is to be another cell")]
    const UNWRITTEN: Self::Cell = Cell::<AtomicU8>::new();

    fn unwritten() -> Self::Cell {
        Cell::<AtomicU8>::new()
    }

    unsafe fn beside(cells: &[Self::Cell]) -> Self::Beside {
        // SAFETY: guaranteed by the caller.
        unsafe { Beside::kept(cells) }
    }

    fn reset(_: &mut Slot<E>, cell: &mut Self::Cell) {
        sync::store_u8(&cell.word, 0);
    }

    #[inline(always)]
    fn difference(_: &Slot<E>, mark: Self::Mark, generation: Word) -> Word {
        let difference = sync::observe_u8(&mark.word) ^ generation as u8;
        if difference == 0 {
            mark.tracked.read();
        }
        difference.into()
    }
}
