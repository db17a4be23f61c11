//! Address vectors and address handles: the destinations of datagrams.

use std::sync::Arc;

use cq_core::setup::{AddressError, AddressVector, GlobalRoute};
use cq_core::wc::{Wc, WcFlags};

use crate::api::domain::Domain;
use crate::engine::port::{self, Port};
use crate::engine::requester::grh::{self, Grh};
use crate::engine::ud_address::UdAddress;
use crate::protocol::number::QpNumber;

/// The number of service levels.
const LEVELS: u8 = 16;

/// The source of a datagram, as `ibv_init_ah_from_wc(3)` returns it. `wc` is the receive completion and `grh` the first
/// 40 bytes of the receive buffer, which are read only if the completion has the GRH flag.
///
/// # Errors
/// [`NoDatagram`](AddressError::NoDatagram): the completion is not a successful one of a receive
/// ([C4](cq_core::contract#c4)).
pub fn init_ah_from_wc(
    port: u8,
    wc: &Wc,
    grh: &[u8; grh::BYTES],
) -> Result<AddressVector, AddressError> {
    let done = wc.result().ok().filter(|done| done.is_recv());
    let done = done.ok_or(AddressError::NoDatagram)?;
    let has_route = done.flags().contains(WcFlags::GRH);
    let route = has_route.then(|| Grh::of_bytes(grh).reply_route());
    Ok(AddressVector { port, lid: done.slid(), sl: done.sl(), route })
}

/// Validates an address against the only port.
pub(super) fn check(to: &AddressVector, there: &Port) -> Result<(), AddressError> {
    if to.port != port::NUMBER {
        return Err(AddressError::NoSuchPort { port: to.port });
    }
    if to.sl >= LEVELS {
        return Err(AddressError::NoSuchLevel { sl: to.sl });
    }
    if to.lid != there.lid && (to.lid != 0 || to.route.is_none()) {
        return Err(AddressError::UnknownLid { lid: to.lid });
    }
    match to.route {
        Some(GlobalRoute { gid, .. }) if gid != there.gid => Err(AddressError::UnknownGid { gid }),
        Some(GlobalRoute { sgid_index, .. }) if sgid_index != 0 => {
            Err(AddressError::NoSuchGid { index: sgid_index })
        }
        _ => Ok(()),
    }
}

/// An address handle, for datagrams. It keeps its protection domain in use.
///
/// ```
/// use transport_rxe_loop::{AddressVector, Context};
///
/// let context = Context::open("loop0")?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let ah = pd.create_ah(&AddressVector::of(&port, port.gid, port.lid))?;
///
/// // A fabric has one port.
/// assert!(pd.create_ah(&AddressVector { port: 2, ..AddressVector::of(&port, port.gid, 0) }).is_err());
/// assert!(pd.create_ah(&AddressVector::of(&port, port.gid, port.lid + 1)).is_err());
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
        check(to, &engine.port)?;
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
