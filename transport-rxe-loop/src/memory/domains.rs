//! Numbers of protection domains. A queue pair accesses the memory of its domain by this number alone, so a number is
//! not reused while any object has it.

use crate::sync;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// The bits of a number that count domains; those above are the process.
pub const BITS: u32 = 24;
/// The most domains that a process can have.
pub const MAX: u32 = 1 << BITS;

/// The domain numbers of one process.
#[derive(Debug)]
pub struct Domains {
    given: Mutex<Given>,
    max: u32,
}

#[derive(Debug, Default)]
struct Given {
    /// Where the search for a free number starts, so that a freed one is reused as late as possible.
    next: u32,
    used: BTreeSet<u32>,
}

impl Domains {
    /// The numbers from 0 to `max`, exclusive, all free.
    pub const fn new(max: u32) -> Self {
        Self { given: Mutex::new(Given { next: 0, used: BTreeSet::new() }), max }
    }

    /// Takes a free number; `None` if all are in use.
    pub fn take(&self) -> Option<u32> {
        let mut given = sync::lock(&self.given);
        let free = |number: &u32| !given.used.contains(number);
        let number = (given.next..self.max).chain(0..given.next).find(free)?;
        given.used.insert(number);
        given.next = (number + 1) % self.max;
        Some(number)
    }

    /// Frees a number that no object has any more.
    pub fn give_back(&self, number: u32) {
        sync::lock(&self.given).used.remove(&number);
    }

    /// Has the next search start at `number`.
    #[cfg(test)]
    pub fn go_on_at(&self, number: u32) {
        sync::lock(&self.given).next = number;
    }
}

#[cfg(test)]
mod tests;
