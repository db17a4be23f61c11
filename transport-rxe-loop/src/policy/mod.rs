//! Requested deviations: faults, and the imitation of Linux' Soft-RoCE driver. This layer only decides; the layers
//! above ask at named points, and carry the decisions out.
//!
//! [`Policy`] has the decisions of a process. It owns the [dice](faults::plan) of its queue pairs, and counts what
//! was injected.

pub mod faults;
pub mod imitation;

use self::faults::Faults;
use self::faults::plan::Injector;
use self::imitation::Imitation;

/// The deviations of a process.
#[derive(Debug)]
pub struct Policy {
    /// The faults to inject, if any.
    pub faults: Option<Injector>,
    /// Whether the device imitates Soft-RoCE.
    pub imitation: Imitation,
}

impl Policy {
    /// With these faults, if any, and with or without imitation of Soft-RoCE.
    pub fn new(faults: Option<Faults>, imitates_rxe: bool) -> Self {
        Self { faults: faults.map(Injector::new), imitation: Imitation::new(imitates_rxe) }
    }
}
