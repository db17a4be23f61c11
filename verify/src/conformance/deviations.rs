//! Where a transport is known to do something else than the contract says: data, which the table shows. A
//! case that is listed here must fail; once it passes, the run fails until its line is taken out.

use super::Case;

/// What a transport does otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Which transport.
    pub transport: &'static str,
    /// The case that fails, and with it the rule.
    pub case: &'static str,
    /// What happens instead.
    pub instead: &'static str,
    /// Why that is so.
    pub why: &'static str,
}

impl Deviation {
    /// Whether it is one of this case on this transport.
    #[must_use]
    pub fn is_of(&self, transport: &str, case: &Case) -> bool {
        (self.transport, self.case) == (transport, case.name)
    }
}

/// Every one that is known.
pub const DEVIATIONS: &[Deviation] = &[];
