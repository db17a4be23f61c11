//! Completions that are held back: they leave in any order but that of a queue pair's own.

use heapless::Vec;

use crate::wc::Wc;

/// A completion, and the poll that may give it at the earliest.
#[derive(Clone, Copy, Debug)]
struct Held {
    wc: Wc,
    due: u64,
}

/// Up to `N` completions, in the order in which they came.
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

    pub fn room(&self) -> usize {
        N - self.list.len()
    }

    /// Adds one, for which there is room.
    pub fn add(&mut self, wc: Wc, due: u64) {
        let _ = self.list.push(Held { wc, due });
    }

    /// Everything may leave now.
    pub fn release(&mut self) {
        self.list.iter_mut().for_each(|held| held.due = 0);
    }

    /// Drops everything; says how many that were.
    pub fn drop_all(&mut self) -> usize {
        let count = self.list.len();
        self.list.clear();
        count
    }

    /// How many may leave in this poll, not counting those that wait for another of their queue pair.
    pub fn ready(&self, poll: u64) -> usize {
        self.indices(poll).count()
    }

    /// Takes the `nth` of those that may leave.
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
