//! The loopback of one process as a [`Device`](crate::device::Device), and as one that imitates Soft-RoCE: a translation, which decides
//! nothing.
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

use cq_core::causes::Causes;
use transport_rxe_loop::{
    CompletionChannel, Context, Cq, CqInit, MemoryWindow, OpenOptions, ProtectionDomain,
};

use crate::adapter::{Opened, Transport};
use crate::device::{Errno, Mw};

/// What names the fabric in the environment.
pub const FABRIC: &str = "RXE_LOOP_FABRIC";

/// The fabric that this process uses: the one that its environment names, or one that no other uses.
#[must_use]
pub fn fabric() -> String {
    env::var(FABRIC).unwrap_or_else(|_| format!("verify-{}", process::id()))
}

/// The device `loop0`, in the process' [fabric](fabric()), or in one beside it where it is like Soft-RoCE.
#[derive(Debug)]
pub enum Rxe<const LIKE_RXE: bool> {}

/// The device as it is.
pub type Loopback = Opened<Rxe<false>>;

/// The device as Soft-RoCE.
pub type LikeRxe = Opened<Rxe<true>>;

impl Loopback {
    /// Opens it in this fabric.
    #[must_use]
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

    fn open() -> Context {
        open(&match LIKE_RXE {
            false => OpenOptions::new().fabric(&fabric()),
            true => OpenOptions::new().fabric(&format!("{}-like-rxe", fabric())).imitate_rxe(),
        })
    }

    fn create_cq_ignoring_overrun(
        context: &Context,
        capacity: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<Cq, Errno> {
        let init = CqInit { capacity, channel, ignore_overrun: true };
        context.create_cq_with(&init).map_err(|error| error.errno())
    }

    fn alloc_mw(pd: &ProtectionDomain) -> Result<MemoryWindow, Errno> {
        pd.alloc_mw().map_err(|error| error.errno())
    }
}

impl Mw for MemoryWindow {
    fn rkey(&self) -> u32 {
        self.rkey()
    }
}
