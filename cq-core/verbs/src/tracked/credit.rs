//! How many requests may be outstanding.

use core::ops::Deref;

use crate::budget::{Budget, Reservation};

/// What limits the requests of a queue, besides its capacity: a [`Reservation`], or
/// [nothing](Unlimited). It can't be implemented elsewhere.
pub trait Credit: sealed::Sealed {
    /// How many requests may be outstanding.
    fn entries(&self) -> usize;

    /// How many requests may be outstanding now: fewer for a while after [`discard`](Self::discard).
    fn usable(&mut self) -> usize;

    /// RESET has discarded so many outstanding requests.
    fn discard(&mut self, outstanding: usize);

    /// Keeps the entries for ever: what they were reserved for can't be destroyed.
    fn keep(&mut self);
}

mod sealed {
    pub trait Sealed {}
}

/// No limit but the capacity of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlimited;

impl sealed::Sealed for Unlimited {}

impl Credit for Unlimited {
    fn entries(&self) -> usize {
        usize::MAX
    }

    fn usable(&mut self) -> usize {
        usize::MAX
    }

    fn discard(&mut self, _outstanding: usize) {}

    fn keep(&mut self) {}
}

impl<B: Deref<Target = Budget>> sealed::Sealed for Reservation<B> {}

impl<B: Deref<Target = Budget>> Credit for Reservation<B> {
    fn entries(&self) -> usize {
        self.entries() as usize
    }

    #[inline]
    fn usable(&mut self) -> usize {
        self.usable() as usize
    }

    fn discard(&mut self, outstanding: usize) {
        self.discard(u32::try_from(outstanding).unwrap_or(u32::MAX));
    }

    fn keep(&mut self) {
        self.keep();
    }
}
