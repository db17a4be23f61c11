//! Address vectors and address handles: the destinations of datagrams.

use std::sync::Arc;

use cq_core::wc::{Wc, WcFlags};
use cq_verbs::setup::{AddressError, AddressVector, GlobalRoute};

use crate::api::domain::Domain;
use crate::engine::port::{self, Port};
use crate::engine::requester::grh::{self, Grh};
use crate::engine::ud_address::{Path, Route, UdAddress};
use crate::protocol::number::QpNumber;

/// The number of service levels.
const LEVELS: u8 = 16;

/// The source of a datagram that came to this port, as `ibv_init_ah_from_wc(3)` returns it.
pub(super) fn source(
    port: u8,
    wc: &Wc,
    grh: &[u8; grh::BYTES],
    here: &Port,
) -> Result<AddressVector, AddressError> {
    check_number(port)?;
    let done = wc.result().ok().filter(|done| done.is_recv());
    let done = done.ok_or(AddressError::NoDatagram)?;
    let has_route = done.flags().contains(WcFlags::GRH);
    let route = has_route.then(|| reply_route(&Grh::of_bytes(grh), here)).transpose()?;
    Ok(AddressVector::default().port(port).lid(done.slid()).sl(done.sl()).route(route))
}

/// The global route of a reply: from where the datagram came to.
fn reply_route(grh: &Grh, here: &Port) -> Result<GlobalRoute, AddressError> {
    let grh::Fields { source: gid, destination, hop_limit, traffic_class, flow_label } =
        grh.fields();
    let unknown = AddressError::UnknownGid { gid: destination };
    let (sgid_index, _) = here.find(destination).ok_or(unknown)?;
    Ok(GlobalRoute::default()
        .gid(gid)
        .sgid_index(sgid_index)
        .hop_limit(hop_limit)
        .traffic_class(traffic_class)
        .flow_label(flow_label))
}

const fn check_number(port: u8) -> Result<(), AddressError> {
    if port == port::NUMBER { Ok(()) } else { Err(AddressError::NoSuchPort { port }) }
}

/// Validates where a path begins: at a GID of the port. Ethernet needs a global route.
pub(super) fn check_source(path: &AddressVector, here: &Port) -> Result<(), AddressError> {
    match path.route {
        None if here.is_ethernet() => Err(AddressError::NoRoute),
        Some(GlobalRoute { sgid_index: index, .. }) if here.number_at(index).is_none() => {
            Err(AddressError::NoSuchGid { index })
        }
        _ => Ok(()),
    }
}

/// Validates an address against the only port. Returns its global route, if it has one.
pub(super) fn check(to: &AddressVector, there: &Port) -> Result<Option<Route>, AddressError> {
    check_number(to.port)?;
    if to.sl >= LEVELS {
        return Err(AddressError::NoSuchLevel { sl: to.sl });
    }
    check_source(to, there)?;
    // Ethernet has no LIDs: what is given is ignored.
    let is_known = to.lid == there.lid || to.lid == 0 && to.route.is_some();
    if !is_known && !there.is_ethernet() {
        return Err(AddressError::UnknownLid { lid: to.lid });
    }
    to.route.map(|route| route_to(&route, there)).transpose()
}

/// A global route whose source is a GID of the port.
fn route_to(route: &GlobalRoute, there: &Port) -> Result<Route, AddressError> {
    let &GlobalRoute { gid, sgid_index: index, hop_limit, traffic_class, flow_label, .. } = route;
    let (_, destination) = there.find(gid).ok_or(AddressError::UnknownGid { gid })?;
    let source = there.number_at(index).ok_or(AddressError::NoSuchGid { index })?;
    if there.gid(source).to_ipv4().is_some() != gid.to_ipv4().is_some() {
        return Err(AddressError::OtherNetwork { gid, index });
    }
    Ok(Route { hop_limit, traffic_class, flow_label, source, destination })
}

/// An address handle, for datagrams. It keeps its protection domain in use.
///
/// ```
/// use transport_rxe_loop::{AddressVector, Context};
///
/// let context = Context::open("loop0")?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let ah = pd.create_ah(&AddressVector::new(&port, port.gid, port.lid))?;
///
/// // A fabric has one port.
/// assert!(pd.create_ah(&AddressVector::new(&port, port.gid, 0).port(2)).is_err());
/// assert!(pd.create_ah(&AddressVector::new(&port, port.gid, port.lid + 1)).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("ibv_ah", "ibv_destroy_ah"))]
#[derive(Debug)]
pub struct AddressHandle {
    domain: Arc<Domain>,
    path: Path,
}

impl AddressHandle {
    /// Makes a handle, if the address is valid.
    pub(super) fn new(domain: &Arc<Domain>, to: &AddressVector) -> Result<Self, AddressError> {
        let engine = domain.engine();
        let route = check(to, engine.current_port()?)?;
        if route.is_none() && engine.policy.imitation.needs_route() {
            return Err(AddressError::NoRoute);
        }
        Ok(Self { domain: Arc::clone(domain), path: Path::new(to.sl, route) })
    }

    /// The number of its protection domain.
    pub(crate) fn domain(&self) -> u32 {
        self.domain.number
    }

    /// The UD address that a datagram to this queue pair carries.
    pub(super) fn ud_address(&self, qp_num: u32, qkey: u32) -> UdAddress {
        UdAddress { qp_num: QpNumber::new(qp_num), qkey, path: self.path }
    }

    /// Destroys the handle, as dropping does. Requests that were posted with it are not affected.
    pub fn destroy(self) {
        drop(self);
    }
}

/// The destination of a datagram.
pub type Destination<'a> = cq_verbs::setup::Destination<'a, AddressHandle>;

#[cfg(test)]
mod tests;
