//! Entries that one queue has reserved.

use core::fmt;
use core::ops::Deref;
use core::ptr;

use super::Budget;
use crate::sync;

/// Entries of a completion queue that are reserved for the requests of one send or receive queue. See
/// [the module](super).
///
/// Drop it after the queue pair was destroyed: its entries can then be reserved again once a poll has found the
/// completion queue empty.
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
    /// Reserves entries. 0 reserves none, for a queue without requests.
    ///
    /// # Errors
    /// Fewer are free.
    pub fn new(budget: &B, entries: u32) -> Result<Self, Overdrawn>
    where
        B: Clone,
    {
        Self::beside(budget, entries, 0)
    }

    /// Reserves entries of two queues, or of one twice: both or none.
    ///
    /// # Errors
    /// Fewer are free.
    pub(crate) fn pair(budgets: [&B; 2], entries: [u32; 2]) -> Result<[Self; 2], Overdrawn>
    where
        B: Clone,
    {
        let [first, second] = budgets.map(|budget| &**budget);
        let beside = |other: u32| if ptr::eq(first, second) { other } else { 0 };
        let first = Self::beside(budgets[0], entries[0], beside(entries[1]))?;
        match Self::beside(budgets[1], entries[1], beside(entries[0])) {
            Ok(second) => Ok([first, second]),
            Err(overdrawn) => {
                first.cancel();
                Err(overdrawn)
            }
        }
    }

    fn beside(budget: &B, entries: u32, beside: u32) -> Result<Self, Overdrawn>
    where
        B: Clone,
    {
        // Cloned first: nothing is taken if that panics.
        let budget = budget.clone();
        budget.take(entries, beside)?;
        Ok(Self { budget, entries, stale: 0, asked: 0 })
    }

    /// The number of entries.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// The number of requests that may be outstanding now: all entries, except those that requests from before a RESET
    /// may still use.
    #[inline]
    pub fn usable(&mut self) -> u32 {
        if self.stale != 0 {
            self.refresh();
        }
        self.entries - self.stale
    }

    /// The queue pair went to RESET with so many requests outstanding. Their entries can be used again once a poll has
    /// found the completion queue empty.
    pub fn discard(&mut self, outstanding: u32) {
        if outstanding != 0 {
            self.refresh();
            self.stale = self.stale.saturating_add(outstanding).min(self.entries);
            self.asked = sync::ask(&self.budget.asked, 1);
        }
    }

    /// Gives the entries back at once: no request has used them.
    pub(crate) fn cancel(mut self) {
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
