//! Numbers of protection domains. A queue pair reaches the memory of its domain by this number alone, so no other domain
//! gets it for as long as anything bears it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many bits of a number are the domain's; those above say which process has it.
pub const BITS: u32 = 24;
/// How many domains a process can have.
pub const MAX: u32 = 1 << BITS;

/// The numbers of one process.
#[derive(Debug)]
pub struct Domains {
    given: Mutex<Given>,
    max: u32,
}

#[derive(Debug, Default)]
struct Given {
    /// Where to look for a free one first, so that each is left alone for as long as there are others.
    next: u32,
    used: BTreeSet<u32>,
}

impl Domains {
    /// As many as `max`, from 0 on, of which none is in use.
    pub const fn new(max: u32) -> Self {
        Self { given: Mutex::new(Given { next: 0, used: BTreeSet::new() }), max }
    }

    /// A number that is not in use, unless all are.
    pub fn take(&self) -> Option<u32> {
        let mut given = self.lock();
        let free = |number: &u32| !given.used.contains(number);
        let number = (given.next..self.max).chain(0..given.next).find(free)?;
        given.used.insert(number);
        given.next = (number + 1) % self.max;
        Some(number)
    }

    /// A number is free again: nothing bears it.
    pub fn give_back(&self, number: u32) {
        self.lock().used.remove(&number);
    }

    /// As if so many had been taken and given back that it is `number`'s turn.
    #[cfg(test)]
    pub fn go_on_at(&self, number: u32) {
        self.lock().next = number;
    }

    fn lock(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
