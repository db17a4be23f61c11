//! Address vectors and address handles: the destinations of datagrams.

use std::sync::Arc;

use cq_core::setup::{Gid, GlobalRoute};
use cq_core::wc::{Wc, WcFlags};
use thiserror::Error;

use crate::api::domain::Domain;
use crate::engine::port::Port;
use crate::engine::requester::grh::{self, Grh};
use crate::engine::ud_address::UdAddress;
use crate::protocol::number::QpNumber;

/// The number of the only port.
const PORT: u8 = 1;
/// The number of service levels.
const LEVELS: u8 = 16;
/// The hop limit of a route that [`AddressVector::of`] makes.
const HOP_LIMIT: u8 = 64;

/// `struct ibv_ah_attr`: the path from a local port to a remote one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressVector {
    /// The local port: 1.
    pub port: u8,
    /// The remote port's local identifier: [the device's](crate::DeviceAttr::lid), or 0 if there is a route.
    pub lid: u16,
    /// Service level: 0 to 15. The receive completion carries it; it has no other effect.
    pub sl: u8,
    /// The global route, to [the device's GID](crate::DeviceAttr::gid). If there is one, the datagram has a GRH, which
    /// is written to the receive buffer before the payload.
    pub route: Option<GlobalRoute>,
}

impl AddressVector {
    /// The address of the port with these identifiers. It has a global route if `lid` is 0.
    #[must_use]
    pub fn of(gid: Gid, lid: u16) -> Self {
        let (hop_limit, traffic_class, flow_label) = (HOP_LIMIT, 0, 0);
        let route = GlobalRoute { gid, sgid_index: 0, hop_limit, traffic_class, flow_label };
        Self { port: PORT, lid, sl: 0, route: (lid == 0).then_some(route) }
    }

    /// The source of a datagram, as `ibv_init_ah_from_wc(3)` returns it. `wc` is the receive completion and `grh` the
    /// first 40 bytes of the receive buffer, which are read only if the completion has the GRH flag.
    ///
    /// # Errors
    /// [`NoDatagram`](AddressError::NoDatagram): the completion is not a successful one of a receive (C4).
    pub fn from_wc(wc: &Wc, grh: &[u8; grh::BYTES]) -> Result<Self, AddressError> {
        let done = wc.result().ok().filter(|done| done.is_recv());
        let done = done.ok_or(AddressError::NoDatagram)?;
        let has_route = done.flags().contains(WcFlags::GRH);
        let route = has_route.then(|| Grh::of_bytes(grh).reply_route());
        Ok(Self { port: PORT, lid: done.slid(), sl: done.sl(), route })
    }

    /// Validates the address against the only port.
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

/// Why an address handle could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The device has no such port.
    #[error("the device has no port {port}: it has port 1 only")]
    NoSuchPort {
        /// The requested value.
        port: u8,
    },
    /// The service level is out of range.
    #[error("there is no service level {sl}: 0 to 15")]
    NoSuchLevel {
        /// The requested value.
        sl: u8,
    },
    /// No port has this local identifier.
    #[error("no port has the local identifier {lid}: the device's attributes say which there is")]
    UnknownLid {
        /// The requested value.
        lid: u16,
    },
    /// No port has this global identifier.
    #[error("no port has the global identifier {gid}: the device's attributes say which there is")]
    UnknownGid {
        /// The requested value.
        gid: Gid,
    },
    /// The port has no global identifier at this index.
    #[error("the port has no global identifier {index}: it has number 0 only")]
    NoSuchGid {
        /// The requested value.
        index: u8,
    },
    /// The device [imitates Soft-RoCE](crate::OpenOptions::imitate_rxe), where each address needs a global route.
    #[error("the address needs a global route, as on Ethernet: give one")]
    NoRoute,
    /// The completion is not a successful one of a receive, so it has no source address (C4).
    #[error("the completion is not that of a datagram that came in")]
    NoDatagram,
}

/// An address handle, for datagrams. It keeps its protection domain in use.
///
/// ```
/// use transport_rxe_loop::{AddressVector, Context};
///
/// let context = Context::open("loop0")?;
/// let (here, pd) = (context.attributes(), context.alloc_pd());
/// let ah = pd.create_ah(&AddressVector::of(here.gid, here.lid))?;
///
/// // A fabric has one port.
/// assert!(pd.create_ah(&AddressVector { port: 2, ..AddressVector::of(here.gid, 0) }).is_err());
/// assert!(pd.create_ah(&AddressVector::of(here.gid, here.lid + 1)).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AddressHandle {
    domain: Arc<Domain>,
    address: AddressVector,
}

impl AddressHandle {
    /// Makes a handle, if the address is valid.
    pub(super) fn new(domain: &Arc<Domain>, to: &AddressVector) -> Result<Self, AddressError> {
        let engine = domain.engine();
        to.check(&engine.port)?;
        if to.route.is_none() && engine.policy.imitation.needs_route() {
            return Err(AddressError::NoRoute);
        }
        Ok(Self { domain: Arc::clone(domain), address: *to })
    }

    /// The number of its protection domain.
    pub(crate) fn domain(&self) -> u32 {
        self.domain.number()
    }

    /// The UD address that a datagram to this queue pair carries.
    pub(super) fn ud_address(&self, qp_num: u32, qkey: u32) -> UdAddress {
        UdAddress::new(self.address.sl, self.address.route, QpNumber::new(qp_num), qkey)
    }

    /// Destroys the handle, as dropping does. Requests that were posted with it are not affected.
    pub fn destroy(self) {
        drop(self);
    }
}

/// The destination of a datagram.
pub type Destination<'a> = cq_core::setup::Destination<'a, AddressHandle>;

#[cfg(test)]
mod tests;
