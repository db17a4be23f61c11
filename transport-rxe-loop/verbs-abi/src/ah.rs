//! Address handles: where datagrams go.

use std::mem::offset_of;

use cq_core::wc::WcFlags;
use cq_verbs::setup::{AddressError, Gid, GlobalRoute, Port};
use transport_rxe_loop::{AddressHandle, AddressVector, ProtectionDomain};

use crate::context::OPENINGS;
use crate::errno::Errno;
use crate::pd::make_in;
use crate::port;
use crate::raw::{In, Kind, Out, Table};
use crate::sys::*;

impl Kind for AddressHandle {
    type Public = ibv_ah;
    type Face = ibv_ah;
    const HANDLE: Option<usize> = Some(offset_of!(ibv_ah, handle));
}

/// Those of this process.
pub static ADDRESSES: Table<AddressHandle> = Table::new();

/// An address, from C. One port has one path and one rate, so those fields say nothing.
pub fn address(attr: &ibv_ah_attr) -> AddressVector {
    let ibv_global_route { dgid, flow_label, sgid_index, hop_limit, traffic_class, .. } = attr.grh;
    let gid = Gid(dgid.bytes());
    let route = GlobalRoute::default()
        .gid(gid)
        .sgid_index(sgid_index)
        .hop_limit(hop_limit)
        .traffic_class(traffic_class)
        .flow_label(flow_label);
    let route = (attr.is_global != 0).then_some(route);
    AddressVector::default().port(attr.port_num).lid(attr.dlid).sl(attr.sl).route(route)
}

/// The same for C.
pub fn attr(address: &AddressVector) -> ibv_ah_attr {
    let &AddressVector { port, lid, sl, route, .. } = address;
    let grh = route.map_or(ibv_global_route::ZEROED, |route| {
        let GlobalRoute { gid, sgid_index, hop_limit, traffic_class, flow_label, .. } = route;
        let dgid = ibv_gid { raw: gid.0 };
        ibv_global_route { dgid, flow_label, sgid_index, hop_limit, traffic_class }
    });
    let is_global = route.is_some().into();
    ibv_ah_attr { grh, dlid: lid, sl, is_global, port_num: port, ..ibv_ah_attr::ZEROED }
}

/// `ibv_create_ah(3)`. EINVAL, ENOENT: no domain. EINVAL: no attributes, or they lead nowhere. ENOMEM: too many.
pub fn create_ah(pd: *mut ibv_pd, attr: In<'_, ibv_ah_attr>) -> Result<*mut ibv_ah, Errno> {
    let to = address(attr.given()?);
    create(pd, |pd| pd.create_ah(&to))
}

fn create(
    pd: *mut ibv_pd,
    make: impl FnOnce(&ProtectionDomain) -> Result<AddressHandle, AddressError>,
) -> Result<*mut ibv_ah, Errno> {
    let (address, context) = make_in(pd, |domain| make(&domain.pd))?;
    Ok(ADDRESSES.insert(address, |handle| ibv_ah { context, pd, handle })?.face())
}

/// `ibv_init_ah_from_wc(3)`. -1 with EINVAL, ENOENT: no context, no such port, no completion, or not that of a
/// datagram that came in, no route where it says that one came before it, no buffer.
pub fn init_ah_from_wc(
    context: *const ibv_context,
    port_num: u8,
    wc: In<'_, ibv_wc>,
    grh: In<'_, Header>,
    ah_attr: Out<'_, ibv_ah_attr>,
) -> Result<(), Errno> {
    let from = OPENINGS.find(context)?.with(|opening| {
        let (wc, grh) = arrived(port_num, wc, grh)?;
        Ok::<_, Errno>(opening.device.init_ah_from_wc(port_num, wc, grh)?)
    })??;
    ah_attr.put(attr(&from))
}

/// `ibv_create_ah_from_wc(3)`. EINVAL, ENOENT: no domain, or as for [`init_ah_from_wc`]. ENOMEM: too many.
pub fn create_ah_from_wc(
    pd: *mut ibv_pd,
    wc: In<'_, ibv_wc>,
    grh: In<'_, Header>,
    port_num: u8,
) -> Result<*mut ibv_ah, Errno> {
    let (wc, grh) = arrived(port_num, wc, grh)?;
    create(pd, |pd| pd.ah_from_wc(&Port::new(port_num), wc, grh))
}

/// The header before a datagram, as bytes: a receive buffer may not be aligned.
pub type Header = [u8; size_of::<ibv_grh>()];

/// A completion, and the header before its datagram, which is only looked at if the completion says that there is one.
fn arrived<'a>(
    port_num: u8,
    wc: In<'a, ibv_wc>,
    grh: In<'a, Header>,
) -> Result<(&'a ibv_wc, &'a Header), Errno> {
    port::check(port_num.into())?;
    let wc = wc.given()?;
    let has_route = wc.result().is_ok_and(|done| done.flags().contains(WcFlags::GRH));
    Ok((wc, if has_route { grh.given()? } else { &[0; size_of::<ibv_grh>()] }))
}

/// `ibv_destroy_ah(3)`. EINVAL, ENOENT: no handle. Requests that were posted with it go on.
pub fn destroy_ah(ah: *const ibv_ah) -> Result<(), Errno> {
    ADDRESSES.remove(ah)
}

#[cfg(test)]
mod tests {

    use cq_core::wc::{WcOpcode, WcStatus};

    use super::*;
    use crate::test::*;

    #[test]
    fn an_address_that_leads_nowhere_is_refused() {
        let (pd, port) = (domain(), port::at_port(open(), 1).unwrap());
        let create = |mut to: ibv_ah_attr| {
            // SAFETY: attributes.
            let ah = unsafe { ibv_create_ah(pd, &raw mut to) };
            if ah.is_null() { Err(Errno::last()) } else { Ok(ah) }
        };
        let right = attr(&AddressVector::new(&port, port.gid, 0));
        // SAFETY: handles of addresses stay where they are.
        assert_eq!(create(right).map(|ah| unsafe { (*ah).pd }), Ok(pd));
        let from = |sgid_index| ibv_global_route { sgid_index, ..right.grh };
        assert!(create(ibv_ah_attr { grh: from(3), ..right }).is_ok());
        for wrong in [
            ibv_ah_attr { port_num: 0, ..right },
            ibv_ah_attr { port_num: 2, ..right },
            ibv_ah_attr { dlid: !right.dlid, ..right },
            ibv_ah_attr { is_global: 0, ..right },
            ibv_ah_attr { grh: from(8), ..right },
        ] {
            assert_eq!(create(wrong), Err(Errno::INVAL));
        }
        // SAFETY: null is no attributes.
        assert!(unsafe { ibv_create_ah(pd, ptr::null_mut()) }.is_null());
    }

    /// The completion of a datagram, with the header that may have come before it.
    fn datagram(flags: WcFlags) -> (ibv_wc, ibv_grh) {
        let found = port::at_port(open(), 1).unwrap();
        let wc = ibv_wc::new(1, WcStatus::SUCCESS, 5).with_opcode(WcOpcode::RECV).with_flags(flags);
        let wc = wc.with_path(0, found.lid, 3, 0);
        let gids = OPENINGS.find(open()).unwrap().with(|at| at.device.gids(1)).unwrap().unwrap();
        let [sgid, dgid] = [1, 3].map(|index: usize| ibv_gid { raw: gids[index].1.0 });
        let version_tclass_flow = (6_u32 << 28 | 0xa5 << 20 | 0x1_2345).to_be();
        let grh = ibv_grh { version_tclass_flow, hop_limit: 9, sgid, dgid, ..ibv_grh::ZEROED };
        (wc, grh)
    }

    #[test]
    fn c07_a_datagram_leads_back_by_the_way_it_came() {
        let (context, mut to) = (open(), ibv_ah_attr::ZEROED);
        let (mut wc, _) = datagram(WcFlags::empty());
        // SAFETY: a completion, and a buffer for attributes; without a route, the pointer to it is not looked at.
        let answer = unsafe {
            ibv_init_ah_from_wc(context, 1, &raw mut wc, ptr::dangling_mut(), &raw mut to)
        };
        let lid = port::at_port(context, 1).unwrap().lid;
        assert_eq!((answer, to.is_global, to.dlid, to.sl), (0, 0, lid, 3));

        let (mut wc, mut grh) = datagram(WcFlags::GRH);
        let mut failed = ibv_wc::new(1, WcStatus::WR_FLUSH_ERR, 5).with_flags(WcFlags::GRH);
        let mut sent = wc.with_opcode(WcOpcode::SEND);
        let (wc, grh, to) = (&raw mut wc, &raw mut grh, &raw mut to);
        // SAFETY: each pointer is null, or to what it should be.
        unsafe {
            assert_eq!(ibv_init_ah_from_wc(context, 1, wc, grh, to), 0);
            assert_eq!(((*to).is_global, (*to).port_num), (1, 1));
            assert_eq!((*to).grh.dgid.bytes(), (*grh).sgid.bytes());
            assert_eq!((*to).grh.sgid_index, 3);
            assert_eq!(((*to).grh.flow_label, (*to).grh.traffic_class), (0x1_2345, 0xa5));
            assert!(!ibv_create_ah_from_wc(domain(), wc, grh, 1).is_null());
            // What failed or was sent, or has no route where it should, leads nowhere (C4).
            for (port, wc, grh) in [
                (1, &raw mut failed, grh),
                (1, &raw mut sent, grh),
                (1, wc, ptr::null_mut()),
                (2, wc, grh),
                (1, ptr::null_mut(), grh),
            ] {
                assert_eq!(ibv_init_ah_from_wc(context, port, wc, grh, to), -1);
                assert_eq!(Errno::last(), Errno::INVAL);
            }
        }
    }
}
