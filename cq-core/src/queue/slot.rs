//! How an entry is written and read, in memory that only the sides of the queue access.
#![allow(unsafe_code)]

mod in_array;
mod in_entry;

use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::NonNull;
use core::slice;

use bytemuck::Pod;

use super::completion::Completion;
use super::reference::Ref;
use super::ring::{Position, Ring, Span};
use crate::entry::Entry;
use crate::sync::{self, Tracked, Word};

/// A generation that no entry has, so a place with it is never published. Generations of entries have the top bit set,
/// and unwritten memory has 0.
pub(super) const NEVER: u16 = 1;

/// The largest entry, in bytes.
const LARGEST: usize = 128;

/// Who accesses the memory of a ring: its two sides only ([`Own`]), or others too
/// ([`raw::Shared`](super::raw::Shared)).
pub trait Memory<E>: fmt::Debug + 'static {
    /// How entries are written and read.
    type Access: Access<E>;
}

/// Memory that only the sides of the queue access. Entries are copied by plain moves, as wide as the machine has them.
#[derive(Clone, Copy, Debug)]
pub enum Own {}

impl<E: Entry> Memory<E> for Own {
    type Access = E::Generation;
}

/// How the memory of a ring is accessed: by its two sides only ([`Generation`]), or by others too
/// ([`raw::Shared`](super::raw::Shared)). Nothing outside the crate can name this trait, and so nothing else implements it: the
/// unsafe code of the queue relies on that.
/// ```compile_fail,E0603
/// use cq_core::queue::slot::Access;
/// ```
pub trait Access<E>: fmt::Debug + 'static {
    /// The number of bits of a generation.
    const BITS: u32;

    /// Storage for one entry.
    type Slot;
    /// What is stored beside the slots, and lives as long: generations or tags. It has no lifetime parameter, in which the
    /// sides of a queue would be invariant.
    type Beside: Copy + Send + Sync + fmt::Debug;
    /// What of it belongs to one slot.
    type Mark: Copy + Send + Sync;

    /// What belongs to the slot `index`.
    ///
    /// # Safety
    /// The ring has this slot.
    unsafe fn mark(beside: Self::Beside, index: usize) -> Self::Mark;

    /// What belongs to the next slot.
    ///
    /// # Safety
    /// The ring has a slot behind that of `mark`.
    unsafe fn mark_behind(mark: Self::Mark) -> Self::Mark;

    /// The bits of a generation, already in their place in the word that publishes an entry.
    fn placed(generation: u16) -> Word;

    /// The slot at which a consumer looks that has reported the end instead of this one: it is never published in [`NEVER`]. This
    /// one, unless others may write to it.
    fn unpublished(slot: Ref<'_, Self::Slot>) -> Ref<'_, Self::Slot> {
        slot
    }

    /// Stores the tag of the entry that is about to be written to slot `index`.
    #[inline(always)]
    fn keep_tag(_beside: Self::Beside, _index: usize, _tag: u32) {}

    /// Whether an entry is published in `generation`. The load is Relaxed: `false` may be stale, unless a fence or
    /// an Acquire before it orders it.
    fn is_published(slot: &Self::Slot, mark: Self::Mark, generation: Word) -> bool;

    /// Writes an entry, except for what [publishes](Self::publish) it. Returns the word of the entry that does, before it has its
    /// generation; 0 if the generation is apart.
    ///
    /// # Safety
    /// The caller is the producer that owns the slot, and has acquired that the consumer released it.
    unsafe fn write(slot: &Self::Slot, mark: Self::Mark, entry: &E) -> Word;

    /// Publishes the entry that was [written](Self::write).
    fn publish(slot: &Self::Slot, mark: Self::Mark, word: Word, generation: Word);

    /// Reads the entry to `out` if it is published in `generation`, which it loads with Acquire before all else. Returns
    /// whether it is.
    ///
    /// # Safety
    /// The caller is the only consumer, and has not released the slot since the entry was published. An entry can be written to
    /// `out`.
    unsafe fn read(slot: &Self::Slot, mark: Self::Mark, generation: Word, out: *mut E) -> bool;

    /// [Writes](Self::write) and publishes entries, as many as the span has slots.
    ///
    /// # Safety
    /// As of [`write`](Self::write), for all of these slots.
    #[inline(always)]
    unsafe fn write_span<T: Completion<E>>(span: &Span<'_, E, Self>, completions: &[T])
    where
        E: Entry,
        Self: Sized,
    {
        for ((index, place), completion) in span.places().zip(completions) {
            Self::keep_tag(span.beside, index, completion.tag());
            // SAFETY: the caller owns the slot.
            let word = unsafe { place.write(completion.entry()) };
            place.publish(word);
        }
    }

    /// Copies the published entries from `position` on to the start of `out`, and returns their number.
    ///
    /// # Safety
    /// The caller is the only consumer, and has released no slot from `position` on.
    #[inline(always)]
    unsafe fn read_run(ring: &Ring<'_, E, Self>, position: Position, out: &mut [E]) -> usize
    where
        E: Entry,
        Self: Sized,
    {
        let mut count = 0;
        loop {
            let span = ring.span(position.wrapping_add(count as Position), out.len() - count);
            for ((_, place), entry) in span.places().zip(&mut out[count..]) {
                // SAFETY: the caller is the only consumer, and has not released this slot.
                if !unsafe { place.read(entry) } {
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

/// How entries are written.
impl<E: Entry, A: Access<E>> Ring<'_, E, A> {
    /// Writes and publishes an entry.
    ///
    /// # Safety
    /// The caller is the producer that owns `position`, and has acquired that the consumer released the slot.
    #[inline(always)]
    pub(super) unsafe fn write(&self, position: Position, completion: &impl Completion<E>) {
        let place = self.place(position);
        A::keep_tag(self.beside(), self.index(position), completion.tag());
        // SAFETY: the caller owns the slot.
        let word = unsafe { place.write(completion.entry()) };
        place.publish(word);
    }

    /// Writes entries to the slots from `position` on, and publishes the first one last: the consumer polls that
    /// slot, and once it is published takes the cache lines of the following ones away from the producer.
    ///
    /// # Safety
    /// As for [`write`](Self::write), for the slots of all these positions, which are hence no more than the ring has.
    #[inline(always)]
    pub(super) unsafe fn write_all<T: Completion<E>>(&self, position: Position, completions: &[T]) {
        let [first, others @ ..] = completions else { return };
        let next = position.wrapping_add(1);
        let span = self.span(next, others.len());
        let (now, later) = others.split_at(span.len());
        // SAFETY: the caller owns these slots.
        unsafe {
            A::write_span(&span, now);
            if !later.is_empty() {
                self.write_rest(next.wrapping_add(now.len() as Position), later);
            }
            self.write(position, first);
        }
    }

    /// Writes entries to the slots from `position` on, whose index is 0.
    ///
    /// # Safety
    /// As of [`write_all`](Self::write_all).
    #[cold]
    #[inline(never)]
    unsafe fn write_rest<T: Completion<E>>(&self, position: Position, completions: &[T]) {
        // SAFETY: guaranteed by the caller.
        unsafe { A::write_span(&self.span(position, completions.len()), completions) };
    }
}

/// Where the generations of a queue's own memory are.
pub trait Generation<E>: Access<E, Slot = Slot<E>> {
    /// What is stored beside one slot.
    type Cell: Send + Sync + fmt::Debug + 'static;

    /// Of an unwritten slot, in a constant.
    #[cfg(not(loom))]
    #[allow(clippy::declare_interior_mutable_const, reason = "each use is to be another cell")]
    const UNWRITTEN: Self::Cell;

    /// Of an unwritten slot.
    fn unwritten() -> Self::Cell;

    /// What is stored beside all slots.
    ///
    /// # Safety
    /// The cells are alive whenever what is returned, or a copy of it, is used.
    unsafe fn beside(cells: &[Self::Cell]) -> Self::Beside;

    /// Makes the slot an unwritten one.
    fn reset(slot: &mut Slot<E>, cell: &mut Self::Cell);

    /// The bits of a [`difference`](Self::difference) that count.
    const DIFFERS: Word;

    /// How the generation differs from `generation`, by a load with Acquire. If none of the bits that count is set, the entry is
    /// published, and may be read in place.
    fn difference(slot: &Slot<E>, mark: Self::Mark, generation: Word) -> Word;
}

/// Storage for one entry of a ring, in the queue's own memory: the entry belongs to the producer, which writes it, until it
/// is published, and then to the consumer until the slot is released. Zeros are an unwritten slot.
#[repr(transparent)]
pub struct Slot<E>(UnsafeCell<E>);

// SAFETY: the entry is accessed by one side at a time, which the generation and the head order (`Access::write` and `read`).
unsafe impl<E: Send> Sync for Slot<E> {}
// No panic is between the words of an entry, and one that is not published is not read.
impl<E> core::panic::RefUnwindSafe for Slot<E> {}

impl<E: Pod> Slot<E> {
    /// An unwritten slot.
    pub(super) const fn new() -> Self {
        const {
            assert!(LARGEST <= sync::MOST_COPIED);
            assert!(size_of::<E>() > 0 && size_of::<E>() <= LARGEST, "an entry has 1 to 128 bytes");
        };
        Self(UnsafeCell::new(bytemuck::zeroed()))
    }

    /// The entries of published slots, in place.
    ///
    /// # Safety
    /// The caller is the only consumer, has acquired that all of these are published, and releases none of them while
    /// the entries are in use.
    pub(super) unsafe fn entries(slots: &[Self]) -> &[E] {
        // SAFETY: a slot is an entry (`repr(transparent)`), and no producer writes to these before they are released
        // (guaranteed by the caller).
        unsafe { slice::from_raw_parts(slots.as_ptr().cast(), slots.len()) }
    }
}

impl<E> fmt::Debug for Slot<E> {
    /// Omits the entry, which may not be published.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot")
    }
}

/// A word beside a slot that publishes its entry, and what lets loom detect a missing Release or Acquire.
#[derive(Debug)]
pub struct Cell<W> {
    word: W,
    tracked: Tracked,
}

/// What is stored beside the slots of a ring, one for each slot or none at all. It lives as long.
pub struct Beside<T: 'static>(Ref<'static, [T]>);

impl<T> Beside<T> {
    /// # Safety
    /// These are alive whenever this or a copy of it is used.
    pub(super) unsafe fn kept(all: &[T]) -> Self {
        // SAFETY: the caller keeps them alive while copies are used; access to them is shared only.
        Self(unsafe { Ref::kept(NonNull::from(all)) })
    }

    /// That of slot `index`, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.0.get(index)
    }

    /// That of slot `index`.
    ///
    /// # Safety
    /// There is one.
    #[inline(always)]
    pub(super) unsafe fn at(self, index: usize) -> Ref<'static, T> {
        // SAFETY: there is one (guaranteed by the caller).
        unsafe { self.0.first().after(index) }
    }
}

crate::copied!([T] Beside<T>);

impl<T> fmt::Debug for Beside<T> {
    /// Omits them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} beside the slots", self.0.len())
    }
}
