//! What programs did, in numbers.

use std::collections::BTreeMap;
use std::fmt;

use cq_core::wc::WcStatus;

use super::program::Program;
use super::seen::Completed;

/// What programs did, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many there were.
    pub programs: u32,
    steps: usize,
    /// How often a request ended so, by the number of the status.
    ended: BTreeMap<u32, u64>,
}

impl Tally {
    /// Counts a program and what it completed.
    pub(super) fn add(&mut self, program: &Program, completed: &Completed) {
        self.programs += 1;
        self.steps += program.steps.len();
        for done in completed.iter().flatten() {
            *self.ended.entry(done.status().0).or_default() += 1;
        }
    }

    /// How many requests ended so.
    pub fn count(&self, status: WcStatus) -> u64 {
        self.ended.get(&status.0).copied().unwrap_or(0)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps", self.steps)?;
        for (status, count) in &self.ended {
            write!(f, ", {count} × {}", WcStatus(*status))?;
        }
        Ok(())
    }
}
