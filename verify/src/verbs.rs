//! Real verbs as a [`Device`](crate::device::Device): a translation, which decides nothing.
//!
//! The environment's `VERBS_DEVICE` names the device; otherwise it is the first that there is. Two ends are
//! queue pairs of the same port, which find each other by its address.
//!
//! ```no_run
//! use verify::device::{Cq, Device};
//! use verify::verbs::Verbs;
//!
//! let device = Verbs::open();
//! assert!(device.create_cq(16, None).unwrap().capacity() >= 16);
//! ```

use std::env;

use transport_verbs::{CompletionChannel, Context, Cq, OpenError, ProtectionDomain};

use crate::adapter::{Opened, Transport};
use crate::device::{Absent, Errno};

/// A device of libibverbs, and its first port.
pub type Verbs = Opened<Hardware>;

/// Libibverbs.
#[derive(Debug)]
pub enum Hardware {}

/// Whether there is the device.
///
/// # Errors
/// It can't be opened: in words for the user.
pub fn check() -> Result<(), OpenError> {
    open().map(drop)
}

fn open() -> Result<Context, OpenError> {
    match env::var("VERBS_DEVICE") {
        Ok(name) => Context::open(&name),
        Err(_) => Context::open_first(),
    }
}

impl Transport for Hardware {
    type Context = Context;
    // The binding has no way to bind one.
    type Mw = Absent;

    fn open() -> Context {
        open().expect("there is a device")
    }

    fn create_cq_ignoring_overrun(
        _: &Context,
        _: u32,
        _: Option<&CompletionChannel>,
    ) -> Result<Cq, Errno> {
        Err(Errno::EOPNOTSUPP) // it takes an extended call, which the binding misses
    }

    fn alloc_mw(_: &ProtectionDomain) -> Result<Absent, Errno> {
        Err(Errno::EOPNOTSUPP)
    }
}
