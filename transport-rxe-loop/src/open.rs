//! Opening the device: which fabric it lies in, and how much a new one holds.
//!
//! ```
//! use transport_rxe_loop::{Limits, OpenOptions};
//!
//! let name = format!("example-{}", std::process::id());
//! let limits = Limits { queue_pairs: 10_000, bytes: 64 << 20, ..Limits::default() };
//! let context = OpenOptions::new().fabric(&name).limits(limits).open("loop0")?;
//! assert_eq!(context.attributes().max_qp, 16_384);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Fabrics
//! A fabric is memory that the processes of a user share; the device is what lies in it. Queue pairs of all
//! processes that have opened the same fabric connect by their numbers; those of another see nothing of it
//! (X1). It is made by the first that opens it, and gone with the last.

use std::sync::Arc;

use crate::bell::Bell;
use crate::device::{self, Context};
use crate::error::OpenError;
use crate::fabric::Fabric;
use crate::fabric::error::AttachError;
use crate::fabric::limits::Limits;
use crate::fabric::name::FabricName;

/// How a device is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    fabric: Option<String>,
    limits: Limits,
}

impl OpenOptions {
    /// The fabric that the environment names in `RXE_LOOP_FABRIC`, or `default`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The fabric of this name, whatever the environment says: at most 64 letters, digits, `_`, `.` and `-`,
    /// of which the first is no dot.
    #[must_use]
    pub fn fabric(mut self, name: &str) -> Self {
        self.fabric = Some(name.to_owned());
        self
    }

    /// How much the fabric holds, if it has to be made. What is in force, [the device
    /// says](Context::attributes).
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Opens a device by its name.
    ///
    /// # Errors
    /// There is no device of that name, its fabric can't be attached to, or too many have opened it.
    pub fn open(&self, name: &str) -> Result<Context, OpenError> {
        if name != device::NAME {
            return Err(OpenError::NoSuchDevice { name: name.to_owned() });
        }
        let named = self.fabric.as_deref().map_or_else(FabricName::from_env, str::parse);
        let fabric = Fabric::open(&named.map_err(AttachError::from)?, &self.limits)?;
        Ok(Context::new(fabric, Arc::new(Bell::new(fabric)?)))
    }
}
