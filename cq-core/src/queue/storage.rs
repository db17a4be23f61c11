//! The memory of a ring that is in the queue itself: slots, and what is stored beside them.
#![allow(unsafe_code)]

use super::CapacityError;
use super::reference::Ref;
use super::ring::Ring;
use super::slot::{Generation, Slot};
use crate::entry::Entry;
use crate::sync::const_unless_loom;

/// What is stored beside one slot.
pub(super) type Cell<E> = <<E as Entry>::Generation as Generation<E>>::Cell;

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
        // SAFETY: `CAPACITY` has checked that `N` is a power of two, and not too large. The cells are as many, and live as long as the slots.
        unsafe { Ring::new(Ref::from(&self.slots[..]), E::Generation::beside(&self.beside)) }
    }
}
