//! Making identifiers: `rdma_create_id(3)`, and those that come with requests.

use std::mem::offset_of;

use transport_rxe_loop::cm::{CmId, PortSpace};

use crate::errno::Errno;
use crate::qp;
use crate::raw::{Functions, Out, Slot};
use crate::rdmacm::address;
use crate::rdmacm::channel;
use crate::rdmacm::devices::{device, existing};
use crate::rdmacm::id::{BY_KEY, IDS, Id, channel_of};
use crate::rdmacm::objects::{CHANNELS, Channel};
use crate::sys::*;

/// `rdma_create_id(3)`; synchronous without a channel. -1 with EOPNOTSUPP: another port space. EINVAL: no buffer. ENOENT: no
/// channel.
pub fn create_id(
    channel: *const rdma_event_channel,
    id: Out<'_, *mut rdma_cm_id>,
    context: *mut c_void,
    ps: rdma_port_space,
    functions: &'static Functions,
) -> Result<(), Errno> {
    id.check()?;
    let channel = if channel.is_null() { None } else { Some(CHANNELS.find(channel)?) };
    let qp_type = match ps {
        RDMA_PS_UDP | RDMA_PS_IPOIB => IBV_QPT_UD,
        _ => IBV_QPT_RC,
    };
    id.put(create(channel, context, (ps, qp_type), functions)?.face())
}

/// Makes an identifier in a port space, for queue pairs of a type.
pub fn create(
    channel: Option<&'static Slot<Channel>>,
    context: *mut c_void,
    (ps, qp_type): (rdma_port_space, ibv_qp_type),
    functions: &'static Functions,
) -> Result<&'static Slot<Id>, Errno> {
    if ![RDMA_PS_IPOIB, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB].contains(&ps) {
        return Err(Errno::OPNOTSUPP);
    }
    let device = device(functions)?;
    let is_synchronous = channel.is_none();
    let channel = channel.map_or_else(|| channel::create(device), Ok)?;
    let space = PortSpace(ps as u16);
    let of = qp::type_of_c(qp_type)?;
    let made = channel.with(|channel| CmId::new(&channel.0, space, of));
    let made = made.and_then(|made| Ok(made?));
    let made = made.and_then(|cm| insert(cm, is_synchronous, channel, (context, ps, qp_type)));
    made.inspect_err(|_| {
        if is_synchronous {
            channel::destroy_event_channel(channel.face());
        }
    })
}

fn insert(
    cm: CmId,
    is_synchronous: bool,
    channel: &Slot<Channel>,
    (context, ps, qp_type): (*mut c_void, rdma_port_space, ibv_qp_type),
) -> Result<&'static Slot<Id>, Errno> {
    let key = cm.key();
    let id = Id { cm: Some(cm), is_synchronous, ..Id::default() };
    let public = rdma_cm_id { channel: channel.face(), context, ps, qp_type, ..rdma_cm_id::ZEROED };
    let slot = IDS.insert(id, |_| public)?;
    BY_KEY.get().lock().insert(key, slot);
    Ok(slot)
}

/// The identifier of a request: on the listener's channel, or one of its own where the listener is synchronous.
pub fn requested(listener: &'static Slot<Id>, request: CmId) -> Result<&'static Slot<Id>, Errno> {
    let is_synchronous = listener.with(|id| id.is_synchronous)?;
    let channel = match is_synchronous {
        true => {
            let own = channel::create(existing()?)?;
            own.with(|own| request.migrate(&own.0))??;
            own
        }
        false => CHANNELS.find(channel_of(listener))?,
    };
    let load = |at| listener.load(at);
    let like = (
        listener.load(offset_of!(rdma_cm_id, context)),
        load(offset_of!(rdma_cm_id, ps)),
        load(offset_of!(rdma_cm_id, qp_type)),
    );
    let slot = insert(request, is_synchronous, channel, like)?;
    address::tell_addresses(slot, true)?;
    address::tell_path(slot)?;
    Ok(slot)
}
