//! One measurement.

use crate::placement::Placement;

/// Nanoseconds for one.
#[derive(Clone, Copy)]
pub struct Sample {
    pub nanos: f64,
    pub placement: Placement,
}
