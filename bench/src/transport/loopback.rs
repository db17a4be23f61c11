//! The loopback device in user space.
//!
//! ```
//! use bench::transport::Transport;
//! use bench::transport::loopback::Loopback;
//!
//! let transport = Loopback::open()?;
//! assert_eq!(transport.about().device, "loop0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It lies in the fabric that `RXE_LOOP_FABRIC` names, or in one of this process' own, so that nothing else
//! disturbs what is measured. A process that is to reach it needs [`environment`] beside what is in its own.

use std::env;
use std::process;

use transport_rxe_loop::{Context, OpenError, OpenOptions};

use super::Opened;

/// The loopback's device, open.
pub type Loopback = Opened<Context>;

impl Loopback {
    /// The name of the device: there is one.
    pub const DEVICE: &'static str = "loop0";

    /// Opens the device.
    ///
    /// # Errors
    /// There is no memory for it, or too many have opened it.
    pub fn open() -> Result<Self, OpenError> {
        Self::named(Self::DEVICE)
    }

    /// Opens the device of this name.
    ///
    /// # Errors
    /// There is none, no memory for it, or too many have opened it.
    pub fn named(device: &str) -> Result<Self, OpenError> {
        let options = OpenOptions::new();
        let context = match environment() {
            Some((_, fabric)) => options.fabric(&fabric).open(device)?,
            None => options.open(device)?,
        };
        let unfit = "the device has just been opened, and has port 1";
        let port = context.port(1).expect(unfit);
        Ok(Self::new("loop", context, port).expect(unfit))
    }
}

/// What a process that this one starts needs in its environment to reach the same device: the name of the fabric of this
/// process' own, unless another one is named.
#[must_use]
pub fn environment() -> Option<(&'static str, String)> {
    const FABRIC: &str = "RXE_LOOP_FABRIC";
    env::var_os(FABRIC).is_none().then(|| (FABRIC, format!("bench-{}", process::id())))
}
