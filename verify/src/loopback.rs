//! The loopback within one process as a [`Device`](crate::device::Device), also imitating Soft-RoCE. It only translates.
//!
//! ```
//! use verify::device::{Cq, Device};
//! use verify::loopback::Loopback;
//!
//! let device = Loopback::open();
//! assert_eq!(device.create_cq(16, None).unwrap().capacity(), 16);
//! ```

use std::env;
use std::process;

use cq_verbs::causes::Causes;
use transport_rxe_loop::{Context, MemoryWindow, OpenOptions, ProtectionDomain, cm::Id};

use crate::adapter::{Opened, Transport};
use crate::device::{Made, Mw};

/// The environment variable that names the fabric.
pub const FABRIC: &str = "RXE_LOOP_FABRIC";

/// The fabric that this process uses: the one that the environment names, or a new one.
pub fn fabric() -> String {
    env::var(FABRIC).unwrap_or_else(|_| format!("verify-{}", process::id()))
}

/// The device `loop0` in the process' [fabric](fabric()); the imitation of Soft-RoCE is in another fabric.
#[derive(Debug)]
pub enum Rxe<const LIKE_RXE: bool> {}

/// The device by default.
pub type Loopback = Opened<Rxe<false>>;

/// The device that imitates Soft-RoCE.
pub type LikeRxe = Opened<Rxe<true>>;

impl Loopback {
    /// Opens the device in this fabric.
    pub fn open_in(fabric: &str) -> Self {
        Self::of(open(&OpenOptions::new().fabric(fabric)))
    }
}

fn open(options: &OpenOptions) -> Context {
    options.open("loop0").unwrap_or_else(|error| panic!("{}", Causes(&error)))
}

impl<const LIKE_RXE: bool> Transport for Rxe<LIKE_RXE> {
    type Context = Context;
    type Mw = MemoryWindow;
    type Id = Id;

    fn open() -> Context {
        open(&match LIKE_RXE {
            false => OpenOptions::new().fabric(&fabric()),
            true => OpenOptions::new().fabric(&format!("{}-like-rxe", fabric())).imitate_rxe(),
        })
    }

    fn alloc_mw(pd: &ProtectionDomain) -> Made<MemoryWindow> {
        pd.alloc_mw().map_err(|error| error.errno())
    }

    fn create_id(context: &Context) -> Made<Id> {
        Id::in_fabric(context)
    }
}

impl Mw for MemoryWindow {
    fn rkey(&self) -> u32 {
        self.rkey()
    }
}
