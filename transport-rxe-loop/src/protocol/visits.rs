//! Things that many threads look at without a lock, and that one takes away: each is kept until nobody looks at it any
//! more. The words are of one process alone.
//!
//! | who | does | then looks at |
//! |---|---|---|
//! | visitor | [enters](Visits::enter): counts itself | the place, for what is there now |
//! | visitor | leaves: is not counted any more | nothing of what it has found |
//! | who takes away | puts something else in the place, and [retires](Retired::add) what was there | [the counts](Retired::free) |
//!
//! The first and the last are a store, a full fence, a load. So of a visitor that comes and somebody who takes something
//! away, at least one sees the other: the visitor finds what is there instead, or it is counted.
//!
//! There are [several counts](COUNTS), so that visitors are not in each other's way. What is retired is free once each of
//! them has been seen to be 0 since, be it at different times: who is counted later came later.
//!
//! ```
//! use transport_rxe_loop::protocol::visits::{Retired, Visits};
//!
//! let (visits, mut retired) = (Visits::new(), Retired::new());
//! let visit = visits.enter(7);
//! retired.add("found by whoever is here");
//! assert!(retired.free(&visits, |_| unreachable!())); // it is left for the next time
//! drop(visit);
//! let _later = visits.enter(8);
//! let mut freed = None;
//! assert!(!retired.free(&visits, |thing| freed = Some(thing)));
//! assert_eq!(freed, Some("found by whoever is here"));
//! ```

use crate::sync::{self, AtomicU32, Site};

/// How many counts there are, at most as many as a word has bits.
pub const COUNTS: usize = if cfg!(loom) { 2 } else { 64 };

#[derive(Debug, Default)]
#[repr(align(64))]
struct Count(AtomicU32);

/// Who looks at something.
#[derive(Debug)]
pub struct Visits([Count; COUNTS]);

impl Visits {
    /// Nobody does.
    #[must_use]
    pub fn new() -> Self {
        Self(std::array::from_fn(|_| Count::default()))
    }

    /// Begins to look. Visitors with other numbers are less in each other's way.
    #[inline]
    pub fn enter(&self, number: usize) -> Visit<'_> {
        let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let count = &self.0[(mixed >> 32) as usize % COUNTS].0;
        sync::enter(count);
        Visit(count)
    }

    /// A bit for each count that is not 0, for what was taken out of its place before.
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

/// Somebody looks. What it finds from here on stays until this is dropped.
#[derive(Debug)]
pub struct Visit<'v>(&'v AtomicU32);

impl Drop for Visit<'_> {
    #[inline]
    fn drop(&mut self) {
        sync::leave(self.0);
    }
}

/// What was taken out of its place, and may still be looked at. One thread has it at a time.
#[derive(Debug)]
pub struct Retired<T>(Vec<(T, u64)>);

impl<T> Retired<T> {
    /// Nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Keeps something that has left its place.
    pub fn add(&mut self, thing: T) {
        self.0.push((thing, u64::MAX));
    }

    /// Hands over what nobody looks at any more, each once; true if something is left for the next time.
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
