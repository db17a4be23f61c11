//! What fuzz targets reach that programs do not. `verify/fuzz` has them.

use std::time::{Duration, Instant};

use crate::api::device::Context;
use crate::api::limits::Limits;
use crate::lifecycle::deaths;
use crate::lifecycle::device::FORMAT;
pub use crate::protocol::cm::message;
use crate::shm::attachment;
use crate::shm::limits::LimitsError;
use crate::shm::registry::REGISTRY;
pub use crate::sync::BEFORE_LOAD;

/// Leaves all fabrics, as the end of the process does.
pub fn leave() {
    attachment::leave(&REGISTRY, Instant::now() + Duration::from_secs(1));
}

/// Recovers from processes that have died, as the service thread does now and then.
pub fn recover(context: &Context) {
    deaths::look(context.device);
}

/// The limits that a fabric has which is asked for with these.
///
/// # Errors
/// A number is out of range.
pub fn in_force(limits: &Limits) -> Result<Limits, LimitsError> {
    limits.shape().in_force(&FORMAT).map(|shape| (&shape).into())
}
