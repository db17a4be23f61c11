//! Completions of receives that were passed to a queue pair, and whose receives were not taken.

use cq_core::wc::Wc;

use crate::ledger::{Items, Storage};

/// A ring. Each is of another outstanding receive, so there are at most as many as the ledger holds.
#[derive(Debug)]
pub struct Left<L: Storage> {
    ring: Items<Wc, L>,
    first: usize,
    count: usize,
}

impl<L: Storage> Left<L> {
    pub fn new(receives: usize) -> Self {
        Self { ring: Items::make(receives, |_| Wc::default()), first: 0, count: 0 }
    }

    /// Keeps the completion of an outstanding receive. One that is kept already, of a batch that was given twice, is not
    /// kept again.
    pub fn keep(&mut self, wc: &Wc) {
        let mut kept = (0..self.count).map(|nth| self.ring[self.index(nth)].wr_id());
        if kept.all(|wr_id| wr_id != wc.wr_id()) {
            let index = self.index(self.count);
            self.ring[index] = *wc;
            self.count += 1;
        }
    }

    /// The oldest, which is not kept any more.
    pub fn take(&mut self) -> Option<Wc> {
        self.count = self.count.checked_sub(1)?;
        let wc = self.ring[self.first];
        self.first = self.index(1);
        Some(wc)
    }

    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub const fn clear(&mut self) {
        self.count = 0;
    }

    fn index(&self, nth: usize) -> usize {
        (self.first + nth) % self.ring.len()
    }
}
