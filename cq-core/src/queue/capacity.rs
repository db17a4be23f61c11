//! Which capacities a queue can have.

use super::MAX_STORAGE;

/// Why a queue can't have this capacity, or this storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapacityError {
    /// It has to hold at least one completion.
    Zero,
    /// Storage has to be a power of two.
    NotPowerOfTwo(usize),
    /// Storage is limited to [`MAX_STORAGE`] slots.
    TooLarge(usize),
    /// More was promised than can be stored.
    MoreThanStorage {
        /// How many completions the queue is to hold.
        promised: u32,
        /// How many slots it has.
        storage: usize,
    },
    /// There must be as many tags as slots, or none.
    TagsDiffer {
        /// How many tags.
        tags: usize,
        /// How many slots.
        slots: usize,
    },
    /// The memory is not aligned as the queue needs it.
    Misaligned {
        /// To how many bytes it has to be.
        to: usize,
    },
    /// The memory is too small.
    TooSmall {
        /// How many bytes the queue takes.
        needed: usize,
        /// How many there are.
        given: usize,
    },
}

impl CapacityError {
    /// Whether a ring may have this many slots.
    pub(crate) const fn check_storage(slots: usize) -> Result<(), Self> {
        match slots {
            0 => Err(Self::Zero),
            _ if slots > MAX_STORAGE => Err(Self::TooLarge(slots)),
            _ if !slots.is_power_of_two() => Err(Self::NotPowerOfTwo(slots)),
            _ => Ok(()),
        }
    }

    /// Whether a ring of this many slots may be promised to hold so many completions.
    pub(super) const fn check_promise(slots: usize, promised: u32) -> Result<(), Self> {
        if let Err(error) = Self::check_storage(slots) {
            return Err(error);
        }
        match promised as usize {
            0 => Err(Self::Zero),
            many if many > slots => Err(Self::MoreThanStorage { promised, storage: slots }),
            _ => Ok(()),
        }
    }
}

crate::transport::sentences!(CapacityError {
    Self::Zero => ("a completion queue of 0 entries can hold nothing: ask for at least 1");
    Self::NotPowerOfTwo(slots) => ("{slots} slots are not a power of two");
    Self::TooLarge(slots) => ("{slots} slots are more than the {max} that a queue may have", max = MAX_STORAGE);
    Self::MoreThanStorage { promised, storage } => ("{storage} slots can't hold the {promised} completions that were promised");
    Self::TagsDiffer { tags, slots } => ("{tags} tags for {slots} slots: there must be one each, or none");
    Self::Misaligned { to } => ("the memory of a completion queue has to be aligned to {to} bytes");
    Self::TooSmall { needed, given } => ("a completion queue of this size takes {needed} bytes, not {given}");
});
