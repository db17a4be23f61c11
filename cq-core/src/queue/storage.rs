//! The memory of a ring that is the queue's own: slots, and what is stored beside them.
#![allow(unsafe_code)]

#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
use alloc::boxed::Box;
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
use core::ptr::NonNull;

use super::CapacityError;
use super::ring::{Ref, Ring};
use super::slot::{Generation, Slot};
use crate::entry::Entry;
use crate::sync::const_unless_loom;

/// What is stored beside one slot.
type Cell<E> = <<E as Entry>::Generation as Generation<E>>::Cell;

/// Slots inline. Their number is a power of two.
#[derive(Debug)]
pub(super) struct Slots<const N: usize, E: Entry> {
    slots: [Slot<E>; N],
    beside: [Cell<E>; N],
}

impl<const N: usize, E: Entry> Slots<N, E> {
    pub(super) const CAPACITY: u32 = CapacityError::checked(N);

    const_unless_loom! {
        /// Unwritten slots.
        pub(super) const fn new() -> Self {
            assert!(Self::CAPACITY as usize == N);
            Self {
                slots: [const { Slot::new() }; N],
                #[cfg(not(loom))]
                beside: [const { <E::Generation as Generation<E>>::UNWRITTEN }; N],
                #[cfg(loom)]
                beside: core::array::from_fn(|_| E::Generation::unwritten()),
            }
        }
    }

    /// Makes all slots unwritten ones.
    pub(super) fn reset(&mut self) {
        let all = self.slots.iter_mut().zip(&mut self.beside);
        all.for_each(|(slot, cell)| E::Generation::reset(slot, cell));
    }

    pub(super) fn ring(&self) -> Ring<'_, E> {
        // SAFETY: `CAPACITY` has checked that `N` is a power of two. The cells are as many, and live as long as the slots.
        unsafe { Ring::new(Ref::from(&self.slots[..]), E::Generation::beside(&self.beside)) }
    }
}

/// Slots on the heap. Their number is a power of two.
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
#[derive(Debug)]
pub(super) struct HeapSlots<E: Entry> {
    slots: Box<[Slot<E>]>,
    beside: Box<[Cell<E>]>,
}

#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
impl<E: Entry> HeapSlots<E> {
    /// `count` unwritten slots.
    ///
    /// # Errors
    /// That is no valid number of slots, or `capacity` is larger or 0.
    pub(super) fn new(count: usize, capacity: u32) -> Result<Self, CapacityError> {
        CapacityError::check_promise(count, capacity)?;
        // On targets of 32 bits large entries may be more than there is memory for: a panic of the allocation.
        let bytes = count.checked_mul(size_of::<E>()).and_then(|bytes| isize::try_from(bytes).ok());
        bytes.ok_or(CapacityError::TooLarge(count))?;
        Ok(Self {
            slots: (0..count).map(|_| Slot::new()).collect(),
            beside: (0..count).map(|_| E::Generation::unwritten()).collect(),
        })
    }

    /// # Safety
    /// The slots are alive whenever the ring is used.
    pub(super) unsafe fn ring(&self) -> Ring<'static, E> {
        // SAFETY: their number is a power of two, and that of the cells is the same (`new`). The caller keeps them alive.
        unsafe {
            let slots = Ref::kept(NonNull::from(&self.slots[..]));
            Ring::new(slots, E::Generation::beside(&self.beside))
        }
    }
}
