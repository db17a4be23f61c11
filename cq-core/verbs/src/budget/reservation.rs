//! Entries that one queue has reserved.

use core::ops::Deref;
use core::ptr;

use super::Budget;
use crate::ledger::{Items, Storage};
use crate::sync;

/// Entries of a completion queue that are reserved for the requests of one send or receive queue. See
/// [the module](super). The owner of the queue pair holds it: a [`Reserved`](super::Reserved), a
/// [`TrackedQp`](crate::tracked::TrackedQp) or a [`TrackedSrq`](crate::tracked::TrackedSrq), which destroys the queue pair
/// before it gives the entries back.
#[derive(Debug)]
pub struct Reservation<B: Deref<Target = Budget>> {
    /// `None` if nothing is given back: none were reserved, or they are kept permanently.
    budget: Option<B>,
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
    ///
    /// # Panics
    /// `L` is an array for another number of queues.
    pub(crate) fn for_created<'b, L: Storage, T, E>(
        queues: impl ExactSizeIterator<Item = (&'b B, u32)> + Clone,
        create: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<(T, Items<Self, L>), E>, OverdrawnError>
    where
        B: Clone + 'b,
    {
        let mut taken = Items::<Self, L>::make(queues.len(), |_| Self::of_none(0));
        assert_eq!(taken.len(), queues.len(), "as many queues as there is space for");
        let reserved =
            taken.iter_mut().zip(queues.clone()).try_for_each(|(taken, (budget, entries))| {
                let is_same = |other: &B| ptr::eq::<Budget>(&**other, &**budget);
                let same = queues.clone().filter(|(other, _)| is_same(other));
                let all = same.map(|(_, entries)| u64::from(entries)).sum();
                // Cloned first: nothing is taken if that panics.
                let owner = budget.clone();
                budget.take(entries, all)?;
                *taken = Self { budget: Some(owner), ..Self::of_none(entries) };
                Ok(())
            });
        let created = reserved.map(|()| create());
        if !matches!(created, Ok(Ok(_))) {
            taken.iter_mut().for_each(Self::cancel);
        }
        Ok(created?.map(|created| (created, taken)))
    }

    /// So many entries of a queue that has no budget.
    pub(crate) const fn of_none(entries: u32) -> Self {
        Self { budget: None, entries, stale: 0, asked: 0 }
    }

    /// The number of entries.
    pub(crate) const fn entries(&self) -> u32 {
        self.entries
    }

    /// The number of requests that may be outstanding now: all entries, except those that requests from before a RESET
    /// may still use.
    #[inline]
    pub(crate) fn usable(&self) -> u32 {
        self.entries - if self.stale == 0 { 0 } else { self.unanswered() }
    }

    /// The same. What can be used stays so, however many requests follow.
    pub(crate) fn refresh(&mut self) -> u32 {
        self.stale = self.unanswered();
        self.usable()
    }

    /// The queue pair went to RESET with so many requests outstanding. Their entries can be used again once a poll has
    /// found the completion queue empty.
    pub(crate) fn discard(&mut self, outstanding: u32) {
        self.refresh();
        if let Some(budget) = self.budget.as_ref().filter(|_| outstanding != 0) {
            self.stale = self.stale.saturating_add(outstanding).min(self.entries);
            self.asked = sync::ask(&budget.asked, 1);
        }
    }

    /// Gives the entries back at once: no request has used them.
    fn cancel(&mut self) {
        if let Some(budget) = self.budget.take() {
            sync::give(&budget.free, self.entries);
        }
    }

    /// Never gives the entries back.
    pub(crate) fn keep(&mut self) {
        self.budget = None;
    }

    /// The entries that requests from before a RESET may still use. The request is unanswered if it lies behind the last one
    /// that was answered, up to the last one that was asked, modulo 2³². Those that were asked are loaded second, so that
    /// they are never before those that were answered.
    fn unanswered(&self) -> u32 {
        let Some(budget) = &self.budget else { return 0 };
        let answered = sync::see_answer(&budget.answered);
        let asked = sync::see_asked(&budget.asked);
        let is_answered = asked.wrapping_sub(self.asked) >= asked.wrapping_sub(answered);
        if is_answered { 0 } else { self.stale }
    }
}

impl<B: Deref<Target = Budget>> Drop for Reservation<B> {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.as_ref().filter(|_| self.entries != 0) {
            sync::ask(&budget.released, self.entries);
            sync::ask(&budget.asked, 1);
        }
    }
}

/// A completion queue has fewer entries free than were to be reserved.
///
/// ```
/// use cq_verbs::budget::OverdrawnError;
///
/// let error = OverdrawnError { asked: 40, available: 24, pending: true };
/// assert_eq!(error.missing(), 16);
/// assert!(error.to_string().ends_with("are free again once a poll has found the queue empty"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OverdrawnError {
    /// How many were to be reserved.
    pub asked: u32,
    /// How many were free.
    pub available: u32,
    /// Whether there are more that were given back, and are free once a poll has found the completion queue empty: then
    /// it is worth another attempt. `false` if the queue does not have so many entries at all.
    pub pending: bool,
}

impl OverdrawnError {
    /// How many more entries the completion queue would need.
    #[must_use]
    pub const fn missing(&self) -> u32 {
        self.asked - self.available
    }
}

cq_core::sentences!(OverdrawnError {
    Self { asked, available, pending: true } => ("{} of {asked} completion queue entries are missing: some were given back, and are free again once a poll has found the queue empty", asked - available);
    Self { asked, available, .. } => ("{} of {asked} completion queue entries are missing: create the queue with more, one for each request that all its queue pairs may have outstanding", asked - available);
});
