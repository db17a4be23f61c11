//! Protection domains: which regions, queue pairs, shared receive queues and addresses belong together.

use std::sync::Arc;

use crate::error::{Attempt, DeviceError, InUse};
use crate::sys::{context::Context, pd::Pd};

/// A protection domain.
#[derive(Debug)]
pub struct ProtectionDomain {
    raw: Arc<Pd>,
}

impl ProtectionDomain {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, DeviceError> {
        let raw = Pd::new(context).attempt("allocate a protection domain")?;
        Ok(Self { raw: Arc::new(raw) })
    }

    /// Destroys it. Dropping does, too, once the last of what was made of it is gone.
    ///
    /// # Errors
    /// Something belongs to it; the handle comes back (EBUSY, Q11).
    pub fn destroy(self) -> Result<(), InUse<Self>> {
        Arc::try_unwrap(self.raw)
            .map(drop)
            .map_err(|raw| InUse::new(Self { raw }, "protection domain", "what was made of it"))
    }
}
