//! What is otherwise because somebody asked for it: faults, and what Linux' Soft-RoCE driver does otherwise. Decisions alone:
//! whoever carries a request out asks for them, and has them happen.
//!
//! [`Policy`] is what a process asks. It owns the [dice](faults::plan) of its queue pairs, and what was injected so far.

pub mod faults;
pub mod imitation;

use self::faults::Faults;
use self::faults::plan::Injector;
use self::imitation::Imitation;

/// What a process asks for.
#[derive(Debug)]
pub struct Policy {
    /// What is to go wrong in this process.
    pub faults: Option<Injector>,
    /// What the device is like.
    pub imitation: Imitation,
}

impl Policy {
    /// With these faults, if any, and as Soft-RoCE or not.
    pub fn new(faults: Option<Faults>, imitates_rxe: bool) -> Self {
        Self { faults: faults.map(Injector::new), imitation: Imitation::new(imitates_rxe) }
    }
}
