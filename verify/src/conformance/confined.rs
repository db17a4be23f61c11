//! Cases that can't exist on a transport: data, which the table shows. A case that is listed here is run all
//! the same, and must end because it can't exist there; once it ends otherwise, the run fails until its line
//! is taken out.

use super::{Case, Outcome, RXE_LOOP_2};
use crate::across::WITHIN;

/// A case that can't exist on a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confined {
    /// Which transport.
    pub transport: &'static str,
    /// The case.
    pub case: &'static str,
    /// What it is told by that it can't.
    pub says: &'static str,
    /// Why it can't.
    pub why: &'static str,
}

impl Confined {
    /// Whether it is this case on this transport.
    #[must_use]
    pub fn is_of(&self, transport: &str, case: &Case) -> bool {
        (self.transport, self.case) == (transport, case.name)
    }

    /// Whether this outcome is what it must be.
    #[must_use]
    pub fn explains(&self, Outcome { transport, case, result }: &Outcome) -> bool {
        let says = result.as_ref().is_err_and(|why| why.starts_with(self.says));
        says && self.is_of(transport, case)
    }
}

/// Every one there is.
pub const CONFINED: &[Confined] = &[Confined {
    transport: RXE_LOOP_2,
    case: "q06_a_piece_that_overlaps_its_target_arrives_as_it_was",
    says: WITHIN,
    why: "where both are the same memory, the queue pair is connected to itself",
}];
