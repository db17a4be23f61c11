//! What programs see in an identifier of where it is, and of the path to its peer.

use std::mem::offset_of;
use std::net::SocketAddr;
use std::ptr;

use cq_verbs::setup::Port;

use crate::errno::Errno;
use crate::port::{self, PORT};
use crate::raw::Slot;
use crate::raw::cm::{Kept, address_bytes};
use crate::rdmacm::devices::existing;
use crate::rdmacm::id::Id;
use crate::sys::*;

const GIDS: usize = offset_of!(rdma_cm_id, route.addr.addr);

/// The device's port.
///
/// # Errors
/// ENODEV: there is no device.
pub fn of_device() -> Result<Port, Errno> {
    port::at_port(existing()?.context.face(), PORT.into())
}

/// Lets programs see the addresses, and the device, if the identifier is bound to it.
pub fn tell_addresses(id: &Slot<Id>, is_bound: bool) -> Result<(), Errno> {
    let (local, peer) =
        id.with(|id| Ok::<_, Errno>((id.cm()?.local_addr(), id.cm()?.peer_addr())))??;
    let places =
        [offset_of!(rdma_cm_id, route.addr.anon_1), offset_of!(rdma_cm_id, route.addr.anon_2)];
    for (place, addr) in places.into_iter().zip([local, peer]) {
        put(id, place, addr);
    }
    if is_bound {
        let (device, port) = (existing()?, of_device()?);
        id.store(offset_of!(rdma_cm_id, verbs), device.context.face());
        id.store(offset_of!(rdma_cm_id, port_num), PORT);
        if id.load::<*mut ibv_pd>(offset_of!(rdma_cm_id, pd)).is_null() {
            id.store(offset_of!(rdma_cm_id, pd), device.pd.face());
        }
        let gid = u128::from_ne_bytes(port.gid.0);
        id.store(GIDS + offset_of!(rdma_ib_addr, sgid), [gid as u64, (gid >> 64) as u64]);
        id.store(GIDS + offset_of!(rdma_ib_addr, dgid), [gid as u64, (gid >> 64) as u64]);
        id.store(GIDS + offset_of!(rdma_ib_addr, pkey), port::PKEY.to_be());
    }
    Ok(())
}

fn put(id: &Slot<Id>, at: usize, addr: Option<SocketAddr>) {
    let Some(addr) = addr else { return };
    for (nth, byte) in address_bytes(addr).into_iter().enumerate() {
        id.store(at + nth, byte);
    }
}

/// Lets programs see the one path, from the port to itself.
pub fn tell_path(id: &Slot<Id>) -> Result<(), Errno> {
    let port = of_device()?;
    let gid = ibv_gid { raw: port.gid.0 };
    let path = ibv_sa_path_rec {
        dgid: gid,
        sgid: gid,
        dlid: port.lid.to_be(),
        slid: port.lid.to_be(),
        reversible: 1,
        numb_path: 1,
        pkey: port::PKEY.to_be(),
        mtu_selector: 2,
        mtu: port.mtu.number() as u8,
        ..ibv_sa_path_rec::ZEROED
    };
    let traffic_class = id.with(|id| Ok::<_, Errno>(id.cm()?.tos()))??;
    let path = ibv_sa_path_rec { traffic_class, ..path };
    let at = id.with(|id| ptr::from_mut(&mut id.path.insert(Box::new(Kept(path))).0))?;
    id.store(offset_of!(rdma_cm_id, route.path_rec), at);
    id.store::<c_int>(offset_of!(rdma_cm_id, route.num_paths), 1);
    Ok(())
}
