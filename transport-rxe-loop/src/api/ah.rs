//! Where datagrams go: addresses, and handles of them.
//!
//! ```
//! use transport_rxe_loop::{AddressVector, Context};
//!
//! let context = Context::open("loop0")?;
//! let (here, pd) = (context.attributes(), context.alloc_pd());
//! let ah = pd.create_ah(&AddressVector::of(here.gid, here.lid))?;
//!
//! // There is one port in each fabric.
//! assert!(pd.create_ah(&AddressVector { port: 2, ..AddressVector::of(here.gid, 0) }).is_err());
//! assert!(pd.create_ah(&AddressVector::of(here.gid, here.lid + 1)).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use cq_core::setup::{Gid, GlobalRoute};
use cq_core::wc::{Wc, WcFlags};
use thiserror::Error;

use crate::api::domain::Domain;
use crate::engine::port::Port;
use crate::engine::requester::grh::{self, Grh};
use crate::engine::ud_address::UdAddress;

/// The number of the only port.
const PORT: u8 = 1;
/// Service levels there are.
const LEVELS: u8 = 16;
/// How many routers a packet may pass.
const HOP_LIMIT: u8 = 64;

/// `struct ibv_ah_attr`: the way from a port of this side to a port of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressVector {
    /// The port of this side: 1.
    pub port: u8,
    /// Local identifier of the other port: [the device's](crate::DeviceAttr::lid); with a route, 0 does.
    pub lid: u16,
    /// Service level: 0 to 15. The receiver is told; nothing else follows from it.
    pub sl: u8,
    /// The global route, to [the device's own](crate::DeviceAttr::gid). If there is one, it lies before the
    /// datagram in the receiver's buffer.
    pub route: Option<GlobalRoute>,
}

impl AddressVector {
    /// To the port with these identifiers: by the global one where it has no local one.
    #[must_use]
    pub fn of(gid: Gid, lid: u16) -> Self {
        let (hop_limit, traffic_class, flow_label) = (HOP_LIMIT, 0, 0);
        let route = GlobalRoute { gid, sgid_index: 0, hop_limit, traffic_class, flow_label };
        Self { port: PORT, lid, sl: 0, route: (lid == 0).then_some(route) }
    }

    /// Where a datagram came from, as `ibv_init_ah_from_wc(3)` tells it: of its completion, and of the first forty
    /// bytes of its buffer, where its global route was put if it had one.
    ///
    /// # Errors
    /// The completion is not that of a datagram, or a failure (C4).
    pub fn from_wc(wc: &Wc, grh: &[u8; grh::BYTES]) -> Result<Self, AddressError> {
        let done = wc.result().ok().filter(|done| done.is_recv());
        let done = done.ok_or(AddressError::NoDatagram)?;
        let has_route = done.flags().contains(WcFlags::GRH);
        let route = has_route.then(|| Grh::of_bytes(grh).way_back());
        Ok(Self { port: PORT, lid: done.slid(), sl: done.sl(), route })
    }

    /// Whether it leads to the port with these identifiers.
    fn check(&self, there: &Port) -> Result<(), AddressError> {
        if self.port != PORT {
            return Err(AddressError::NoSuchPort { port: self.port });
        }
        if self.sl >= LEVELS {
            return Err(AddressError::NoSuchLevel { sl: self.sl });
        }
        if self.lid != there.lid && (self.lid != 0 || self.route.is_none()) {
            return Err(AddressError::UnknownLid { lid: self.lid });
        }
        match self.route {
            Some(GlobalRoute { gid, .. }) if gid != there.gid => {
                Err(AddressError::UnknownGid { gid })
            }
            Some(GlobalRoute { sgid_index, .. }) if sgid_index != 0 => {
                Err(AddressError::NoSuchGid { index: sgid_index })
            }
            _ => Ok(()),
        }
    }
}

/// Why there is no handle of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The device has no such port.
    #[error("the device has no port {port}: it has port 1 only")]
    NoSuchPort {
        /// Which was asked for.
        port: u8,
    },
    /// There is no such service level.
    #[error("there is no service level {sl}: 0 to 15")]
    NoSuchLevel {
        /// Which was asked for.
        sl: u8,
    },
    /// No port has this local identifier.
    #[error("no port has the local identifier {lid}: the device's attributes say which there is")]
    UnknownLid {
        /// Which was asked for.
        lid: u16,
    },
    /// No port has this global identifier.
    #[error("no port has the global identifier {gid}: the device's attributes say which there is")]
    UnknownGid {
        /// Which was asked for.
        gid: Gid,
    },
    /// The port has no global identifier at this index.
    #[error("the port has no global identifier {index}: it has number 0 only")]
    NoSuchGid {
        /// Which was asked for.
        index: u8,
    },
    /// Soft-RoCE, which the device [imitates](crate::OpenOptions::imitate_rxe), has no port without a global
    /// identifier.
    #[error("the address needs a global route, as on Ethernet: give one")]
    NoRoute,
    /// The completion is no successful one of a receive, so it says nothing of where it came from (C4).
    #[error("the completion is not that of a datagram that came in")]
    NoDatagram,
}

/// A handle of an address, for datagrams. It keeps its protection domain in use.
#[derive(Debug)]
pub struct AddressHandle {
    domain: Arc<Domain>,
    address: AddressVector,
}

impl AddressHandle {
    /// One in a domain, of an address that leads somewhere.
    pub(super) fn new(domain: &Arc<Domain>, to: &AddressVector) -> Result<Self, AddressError> {
        let engine = domain.engine();
        to.check(&engine.port)?;
        if to.route.is_none() && engine.policy.imitation.needs_route() {
            return Err(AddressError::NoRoute);
        }
        Ok(Self { domain: Arc::clone(domain), address: *to })
    }

    /// The domain that it was made in.
    pub(crate) fn domain(&self) -> u32 {
        self.domain.number()
    }

    /// As a datagram to this queue pair there bears it.
    pub(super) fn ud_address(&self, qp_num: u32, qkey: u32) -> UdAddress {
        UdAddress::new(self.address.sl, self.address.route, qp_num, qkey)
    }

    /// Destroys it, as dropping does. Requests that were posted with it go on.
    pub fn destroy(self) {
        drop(self);
    }
}

/// Where a datagram goes.
pub type Destination<'a> = cq_core::setup::Destination<'a, AddressHandle>;

#[cfg(test)]
mod tests;
