//! Entries that one queue has reserved.

use core::fmt;
use core::ops::Deref;
use core::ptr;

use super::Budget;
use crate::sync;

/// Entries of a completion queue that are reserved for the requests of one send or receive queue. See
/// [the module](super). The owner of the queue pair holds it: a [`Reserved`](super::Reserved), a
/// [`TrackedQp`](crate::tracked::TrackedQp) or a [`TrackedSrq`](crate::tracked::TrackedSrq), which destroys the queue pair
/// before it gives the entries back.
#[derive(Debug)]
pub struct Reservation<B: Deref<Target = Budget>> {
    budget: B,
    entries: u32,
    /// Entries that completions from before a RESET may still use.
    stale: u32,
    /// The request whose answer says that they don't.
    asked: u32,
}

impl<B: Deref<Target = Budget>> Reservation<B> {
    /// Reserves entries of several queues, or of one several times, for what `create` returns: all or none.
    ///
    /// # Errors
    /// Fewer are free; the inner error is that of `create`. None are reserved.
    pub(crate) fn for_created<T, E, const QUEUES: usize>(
        queues: [(&B, u32); QUEUES],
        create: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<(T, [Self; QUEUES]), E>, Overdrawn>
    where
        B: Clone,
    {
        let taken = queues.map(|(budget, entries)| {
            let is_same = |other: &B| ptr::eq::<Budget>(&**other, &**budget);
            let same = queues.iter().filter(|(other, _)| is_same(other));
            let all = same.map(|(_, entries)| u64::from(*entries)).sum();
            // Cloned first: nothing is taken if that panics.
            let budget = budget.clone();
            budget.take(entries, all)?;
            Ok(Self { budget, entries, stale: 0, asked: 0 })
        });
        let cancel =
            |taken: [Result<Self, _>; QUEUES]| taken.into_iter().flatten().for_each(Self::cancel);
        if let Some(&overdrawn) = taken.iter().find_map(|taken| taken.as_ref().err()) {
            cancel(taken);
            return Err(overdrawn);
        }
        Ok(match create() {
            Ok(created) => {
                Ok((created, taken.map(|taken| taken.unwrap_or_else(|_| unreachable!()))))
            }
            Err(error) => {
                cancel(taken);
                Err(error)
            }
        })
    }

    /// The number of entries.
    pub(crate) const fn entries(&self) -> u32 {
        self.entries
    }

    /// The number of requests that may be outstanding now: all entries, except those that requests from before a RESET
    /// may still use.
    #[inline]
    pub(crate) fn usable(&mut self) -> u32 {
        if self.stale != 0 {
            self.refresh();
        }
        self.entries - self.stale
    }

    /// The queue pair went to RESET with so many requests outstanding. Their entries can be used again once a poll has
    /// found the completion queue empty.
    pub(crate) fn discard(&mut self, outstanding: u32) {
        if outstanding != 0 {
            self.refresh();
            self.stale = self.stale.saturating_add(outstanding).min(self.entries);
            self.asked = sync::ask(&self.budget.asked, 1);
        }
    }

    /// Gives the entries back at once: no request has used them.
    fn cancel(mut self) {
        sync::give(&self.budget.free, self.entries);
        self.keep();
    }

    /// Never gives the entries back.
    pub(crate) const fn keep(&mut self) {
        (self.entries, self.stale) = (0, 0);
    }

    /// The request is unanswered if it lies behind the last one that was answered, up to the last one that was asked,
    /// modulo 2³². Those that were asked are loaded second, so that they are never before those that were answered.
    #[cold]
    fn refresh(&mut self) {
        let answered = sync::see_answer(&self.budget.answered);
        let asked = sync::see_asked(&self.budget.asked);
        if asked.wrapping_sub(self.asked) >= asked.wrapping_sub(answered) {
            self.stale = 0;
        }
    }
}

impl<B: Deref<Target = Budget>> Drop for Reservation<B> {
    fn drop(&mut self) {
        if self.entries != 0 {
            sync::ask(&self.budget.released, self.entries);
            sync::ask(&self.budget.asked, 1);
        }
    }
}

/// A completion queue has fewer entries free than were to be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdrawn {
    /// How many were to be reserved.
    pub asked: u32,
    /// How many were free.
    pub free: u32,
    /// Whether there are more that were given back, and are free once a poll has found the completion queue empty: then
    /// it is worth another attempt. `false` if the queue does not have so many entries at all.
    pub pending: bool,
}

impl Overdrawn {
    /// How many more entries the completion queue would need.
    #[must_use]
    pub const fn missing(&self) -> u32 {
        self.asked - self.free
    }
}

impl fmt::Display for Overdrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (missing, asked) = (self.missing(), self.asked);
        write!(f, "{missing} of {asked} completion queue entries are missing: ")?;
        f.write_str(if self.pending {
            "some were given back, and are free again once a poll has found the queue empty"
        } else {
            "create the queue with more, one for each request that all its queue pairs may have outstanding"
        })
    }
}

impl core::error::Error for Overdrawn {}
