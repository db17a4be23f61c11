//! Lock-free reading of things that one thread replaces: what was replaced is kept until no reader can use it
//! any more. The words belong to one process.
//!
//! | who | does | then reads |
//! |---|---|---|
//! | visitor | [enters](Visits::enter): increments a count | the pointer or table entry, for its current value |
//! | visitor | leaves: decrements the count | nothing that it found |
//! | writer | replaces the value, and [retires](Retired::add) the old one | [the counts](Retired::free) |
//!
//! The first and the last are a store, a full fence, a load. So of a visitor that enters and a writer that
//! replaces a value, at least one sees the other: the visitor finds the new value, or it is counted.
//!
//! There are [several counts](COUNTS), so that visitors rarely contend. A retired value is free once each
//! count has been seen to be 0 since, even at different times: a visitor that is counted later entered later.
//!
//! ```
//! use transport_rxe_loop::protocol::visits::{Retired, Visits};
//!
//! let (visits, mut retired) = (Visits::new(), Retired::new());
//! let visit = visits.enter(7);
//! retired.add("in use by a visitor");
//! assert!(retired.free(&visits, |_| unreachable!())); // it is left for the next time
//! drop(visit);
//! let _later = visits.enter(8);
//! let mut freed = None;
//! assert!(!retired.free(&visits, |thing| freed = Some(thing)));
//! assert_eq!(freed, Some("in use by a visitor"));
//! ```

use crate::sync::{self, AtomicU32, Site};

/// The number of counts, at most as many as a word has bits.
pub const COUNTS: usize = if cfg!(loom) { 2 } else { 64 };

#[derive(Debug, Default)]
#[repr(align(64))]
struct Count(AtomicU32);

/// Counts of the visitors.
#[derive(Debug)]
pub struct Visits([Count; COUNTS]);

impl Visits {
    /// No visitors.
    #[must_use]
    pub fn new() -> Self {
        Self(std::array::from_fn(|_| Count::default()))
    }

    /// Enters as a visitor. Different numbers reduce contention.
    #[inline]
    pub fn enter(&self, number: usize) -> Visit<'_> {
        let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let count = &self.0[(mixed >> 32) as usize % COUNTS].0;
        sync::enter(count);
        Visit(count)
    }

    /// A bit for each count that is not 0, for what was replaced before this call.
    fn inside(&self) -> u64 {
        sync::full_fence_at(Site::RetireFence);
        let seen = |bit: &usize| sync::acquire_at(&self.0[*bit].0, Site::SeeVisits) != 0;
        (0..COUNTS).filter(seen).fold(0, |bits, bit| bits | 1 << bit)
    }
}

impl Default for Visits {
    fn default() -> Self {
        Self::new()
    }
}

/// A visitor. What it finds stays valid until this is dropped.
#[derive(Debug)]
pub struct Visit<'v>(&'v AtomicU32);

impl Drop for Visit<'_> {
    #[inline]
    fn drop(&mut self) {
        sync::leave(self.0);
    }
}

/// Values that were replaced and may still be in use. One thread has them at a time.
#[derive(Debug)]
pub struct Retired<T>(Vec<(T, u64)>);

impl<T> Retired<T> {
    /// No values.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Keeps a value that was replaced.
    pub fn add(&mut self, thing: T) {
        self.0.push((thing, u64::MAX));
    }

    /// Passes each value that no visitor uses any more to `free`; true if some are left for the next call.
    pub fn free(&mut self, visits: &Visits, mut free: impl FnMut(T)) -> bool {
        let inside = visits.inside();
        let all = std::mem::take(&mut self.0);
        for (thing, seen) in all {
            match seen & inside {
                0 => free(thing),
                left => self.0.push((thing, left)),
            }
        }
        !self.0.is_empty()
    }
}

impl<T> Default for Retired<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
