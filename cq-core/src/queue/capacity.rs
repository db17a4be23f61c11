//! Checks of capacities.

use super::MAX_STORAGE;

/// The capacity or the storage of a queue is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum CapacityError {
    /// The capacity, or the number of slots, is 0.
    Zero,
    /// The number of slots is not a power of two.
    NotPowerOfTwo(usize),
    /// There are more slots than [`MAX_STORAGE`].
    TooLarge(usize),
    /// The guaranteed capacity is larger than the number of slots.
    MoreThanStorage {
        /// The guaranteed capacity.
        promised: usize,
        /// The number of slots.
        storage: usize,
    },
    /// There are tags, but not one for each slot.
    TagsDiffer {
        /// The number of tags.
        tags: usize,
        /// The number of slots.
        slots: usize,
    },
    /// The memory is not aligned.
    Misaligned {
        /// The required alignment, in bytes.
        to: usize,
    },
    /// The memory is too small.
    TooSmall {
        /// The size of the queue, in bytes.
        needed: usize,
        /// The size of the memory, in bytes.
        given: usize,
    },
}

impl CapacityError {
    /// Checks the number of slots of a ring.
    pub(crate) const fn check_storage(slots: usize) -> Result<(), Self> {
        match slots {
            0 => Err(Self::Zero),
            _ if slots > MAX_STORAGE => Err(Self::TooLarge(slots)),
            _ if !slots.is_power_of_two() => Err(Self::NotPowerOfTwo(slots)),
            _ => Ok(()),
        }
    }

    /// The guaranteed capacity of a ring with as many slots, in a constant.
    pub(super) const fn checked(slots: usize) -> u32 {
        assert!(
            Self::check_storage(slots).is_ok(),
            "the capacity is a power of two, of at most MAX_STORAGE"
        );
        slots as u32
    }

    /// Checks the number of slots and the guaranteed capacity of a ring.
    pub(super) const fn check_promise(slots: usize, promised: usize) -> Result<(), Self> {
        if let Err(error) = Self::check_storage(slots) {
            return Err(error);
        }
        match promised {
            0 => Err(Self::Zero),
            many if many > slots => Err(Self::MoreThanStorage { promised, storage: slots }),
            _ => Ok(()),
        }
    }
}

crate::sentences!(CapacityError {
    Self::Zero => ("a completion queue of 0 entries can hold nothing: ask for at least 1");
    Self::NotPowerOfTwo(slots) => ("{slots} slots are not a power of two");
    Self::TooLarge(slots) => ("{slots} slots are more than the {max} that a queue may have", max = MAX_STORAGE);
    Self::MoreThanStorage { promised, storage } => ("{storage} slots can't hold the {promised} completions that were promised");
    Self::TagsDiffer { tags, slots } => ("{tags} tags for {slots} slots: there must be one each, or none");
    Self::Misaligned { to } => ("the memory of a completion queue has to be aligned to {to} bytes");
    Self::TooSmall { needed, given } => ("a completion queue of this size takes {needed} bytes, not {given}");
});
