//! Requests that have completed, until they are taken.

use core::iter::FusedIterator;
use core::mem;

use cq_core::wc::{Failed, Wc, WcStatus};

use super::super::Direction;
use super::super::reap::Retire;
use super::{Sends, Sent, Storage};

impl<T, L: Storage> Sends<T, L> {
    /// Retires the request that has completed, and those before it, oldest first. Empty if the completion is not of
    /// this ledger, or covers only what is retired already.
    ///
    /// What is not taken from the iterator stays outstanding, and comes first from the next one, whatever completion that
    /// is for, or from [`retire_left`](Self::retire_left): with the result that it had.
    #[inline]
    pub fn retire(&mut self, wc: &Wc) -> Retired<'_, T, L> {
        if self.has_completed() {
            self.complete(wc);
            return self.retire_left();
        }
        Retired { covered: self.cover(wc), sends: self }
    }

    /// Retires the requests that have completed, and that were not taken from what [`retire`](Self::retire) returned.
    pub fn retire_left(&mut self) -> Retired<'_, T, L> {
        Retired { covered: self.take_completed(), sends: self }
    }

    /// Whether requests have completed that were not taken.
    #[inline(always)]
    pub(crate) const fn has_completed(&self) -> bool {
        self.completed > 0
    }

    /// The requests that a completion covers, to be taken. None are left from before.
    #[inline(always)]
    pub(crate) fn cover(&self, wc: &Wc) -> Covered {
        let (status, vendor_err, qp_num) = (wc.status(), wc.vendor_err(), wc.qp_num());
        Covered { left: self.covered(wc), last: Outcome { status, vendor_err }, qp_num }
    }

    /// Those that have completed and were not taken.
    #[inline(always)]
    pub(crate) const fn take_completed(&mut self) -> Covered {
        let left = mem::replace(&mut self.completed, 0);
        Covered { left, last: Outcome::SUCCESS, qp_num: self.qp_num }
    }

    /// Retires the next request of those.
    #[inline(always)]
    pub(crate) fn take_next(&mut self, covered: &mut Covered) -> Option<Sent<T>> {
        loop {
            covered.left = covered.left.checked_sub(1)?;
            let is_failed = covered.left == 0 && covered.last.status != WcStatus::SUCCESS;
            let result =
                if is_failed || self.failed > 0 { self.take_result(covered) } else { Ok(()) };
            if let Some(token) = self.take_oldest() {
                return Some(Sent { token, result });
            }
        }
    }

    /// Notes those that were not taken.
    #[inline(never)]
    pub(crate) fn leave(&mut self, covered: &Covered) {
        self.completed = covered.left;
        if let Some(last) = covered.left.checked_sub(1) {
            self.note_outcome(last, covered.last, covered.qp_num);
        }
    }

    /// Notes how the request behind `before` others has completed. A completion may be given twice.
    #[cold]
    fn note_outcome(&mut self, before: usize, outcome: Outcome, qp_num: u32) {
        let index = self.index(before);
        let of = &mut self.outcomes[index];
        if outcome.status != WcStatus::SUCCESS && of.status == WcStatus::SUCCESS {
            (*of, self.qp_num) = (outcome, qp_num);
            self.failed += 1;
        }
    }

    /// The result of the oldest request, where some have failed: what is noted of it, or else that of the last one, which it
    /// is then.
    #[cold]
    fn take_result(&mut self, covered: &Covered) -> Result<(), Failed> {
        let mut outcome = mem::replace(&mut self.outcomes[self.oldest], Outcome::SUCCESS);
        self.failed -= usize::from(outcome.status != WcStatus::SUCCESS);
        if outcome.status == WcStatus::SUCCESS {
            outcome = covered.last;
        }
        let wr_id = self.generation.wr_id(Direction::Send, self.number);
        let failed = Failed::new(wr_id, outcome.status, covered.qp_num, outcome.vendor_err);
        failed.map_or(Ok(()), Err)
    }
}

impl<T, L: Storage> Retire for Sends<T, L> {
    type Done<'w> = Sent<T>;

    fn complete(&mut self, wc: &Wc) -> bool {
        let covered = self.cover(wc);
        let Some(last) = covered.left.checked_sub(1) else { return false };
        self.completed = self.completed.max(covered.left);
        if covered.last.status != WcStatus::SUCCESS {
            self.note_outcome(last, covered.last, covered.qp_num);
        }
        true
    }

    fn take<'w>(&mut self) -> Option<Self::Done<'w>> {
        let mut covered = self.take_completed();
        let sent = self.take_next(&mut covered);
        self.completed = covered.left;
        sent
    }
}

/// How a request has completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    status: WcStatus,
    vendor_err: u32,
}

impl Outcome {
    pub(super) const SUCCESS: Self = Self { status: WcStatus::SUCCESS, vendor_err: 0 };
}

/// Requests that have completed, and are not taken yet.
#[derive(Debug)]
pub(crate) struct Covered {
    left: usize,
    /// Of the last one. Those before it succeeded, but for failures that are noted.
    last: Outcome,
    qp_num: u32,
}

impl Covered {
    pub(crate) const fn is_empty(&self) -> bool {
        self.left == 0
    }
}

/// The requests that have completed, oldest first: see [`Sends::retire`].
#[must_use = "requests stay outstanding until they are taken"]
#[derive(Debug)]
pub struct Retired<'a, T, L: Storage> {
    sends: &'a mut Sends<T, L>,
    covered: Covered,
}

impl<T, L: Storage> Iterator for Retired<'_, T, L> {
    type Item = Sent<T>;

    #[inline]
    fn next(&mut self) -> Option<Sent<T>> {
        self.sends.take_next(&mut self.covered)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.covered.left))
    }
}

impl<T, L: Storage> FusedIterator for Retired<'_, T, L> {}

impl<T, L: Storage> Drop for Retired<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        if !self.covered.is_empty() {
            self.sends.leave(&self.covered);
        }
    }
}
