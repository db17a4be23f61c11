//! Completions that are held back. They leave in any order, but those of one queue pair stay in order.

use cq_core::wc::Wc;
use heapless::Vec;

/// A completion, and the number of the first poll that may return it.
#[derive(Clone, Copy, Debug)]
struct Held {
    wc: Wc,
    due: u64,
}

/// Up to `N` completions, in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Hold<const N: usize> {
    list: Vec<Held, N>,
}

impl<const N: usize> Hold<N> {
    pub const fn new() -> Self {
        Self { list: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn free(&self) -> usize {
        N - self.list.len()
    }

    /// Adds a completion. The hold must not be full.
    pub fn add(&mut self, wc: Wc, due: u64) {
        let _ = self.list.push(Held { wc, due });
    }

    /// Lets all completions leave now.
    pub fn release(&mut self) {
        self.list.iter_mut().for_each(|held| held.due = 0);
    }

    /// Drops all completions. Returns how many there were.
    pub fn drop_all(&mut self) -> usize {
        let count = self.list.len();
        self.list.clear();
        count
    }

    /// How many completions may leave next in this poll: the oldest of each queue pair, if it is due.
    pub fn ready(&self, poll: u64) -> usize {
        self.indices(poll).count()
    }

    /// Takes the `nth` of the completions that may leave next.
    pub fn take(&mut self, poll: u64, nth: usize) -> Option<Wc> {
        let index = self.indices(poll).nth(nth)?;
        Some(self.list.remove(index).wc)
    }

    fn indices(&self, poll: u64) -> impl Iterator<Item = usize> {
        let leaves = move |index: usize| {
            let (before, held) = (&self.list[..index], &self.list[index]);
            let qp = held.wc.qp_num();
            held.due <= poll && !before.iter().any(|other| other.wc.qp_num() == qp)
        };
        (0..self.list.len()).filter(move |&index| leaves(index))
    }
}
