//! A device of libibverbs as a [`Device`](crate::device::Device). It only translates.
//!
//! The environment variable `VERBS_DEVICE` names the device; the default is the first one. Both ends of a connection
//! are queue pairs of the same port. `VERBS_ADDR` is an address of a device, of this one or another, for connecting by
//! addresses; the default is 127.0.0.1, which the loopback's C ABI has.
//!
//! ```no_run
//! use verify::device::{Cq, Device};
//! use verify::verbs::Verbs;
//!
//! let device = Verbs::open();
//! assert!(device.create_cq(16, None).unwrap().capacity() >= 16);
//! ```

use std::env;
use std::net::{IpAddr, Ipv4Addr};

use cq_verbs::cm::Identifier as _;
use transport_verbs::cm::Id;
use transport_verbs::{Context, OpenError, ProtectionDomain};

use crate::adapter::{Opened, Transport};
use crate::device::{Errno, Made, Mw};

/// A device of libibverbs, and its first port.
pub type Verbs = Opened<Hardware>;

/// The device of the loopback's C ABI, which raises the event of a queue that is armed too late.
const LOOPBACK: &str = "loop0";

/// The transport over libibverbs.
#[derive(Debug)]
pub enum Hardware {}

/// Checks that the device can be opened.
///
/// # Errors
/// It can't be opened; as a message for the user.
pub fn check() -> Result<(), OpenError> {
    open().map(drop)
}

fn open() -> Result<Context, OpenError> {
    match env::var("VERBS_DEVICE") {
        Ok(name) => Context::open(&name),
        Err(_) => Context::open_first(),
    }
}

/// A memory window, which the binding does not support.
#[derive(Debug)]
pub enum NoWindow {}

impl Mw for NoWindow {
    fn rkey(&self) -> u32 {
        match *self {}
    }
}

impl Transport for Hardware {
    type Context = Context;
    type Mw = NoWindow;
    type Id = Id;

    fn open() -> Context {
        open().expect("there is a device")
    }

    fn alloc_mw(_: &ProtectionDomain) -> Made<NoWindow> {
        Err(Errno::EOPNOTSUPP)
    }

    fn create_id(_: &Context) -> Made<Id> {
        Id::new()
    }

    fn raises_when_armed(context: &Context) -> bool {
        context.name() == LOOPBACK
    }

    fn address() -> IpAddr {
        match env::var("VERBS_ADDR") {
            Ok(addr) => addr.parse().expect("VERBS_ADDR is an IP address"),
            Err(_) => Ipv4Addr::LOCALHOST.into(),
        }
    }
}
