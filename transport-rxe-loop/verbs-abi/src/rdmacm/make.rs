//! Identifiers that begin, move and end: `rdma_create_id(3)`, those that come with requests, `rdma_migrate_id(3)`,
//! `rdma_destroy_id(3)`.

use std::mem::{offset_of, replace};
use std::ptr;

use cq_verbs::setup::QpType;
use transport_rxe_loop::cm::{CmId, EventChannel, PortSpace};

use crate::errno::Errno;
use crate::raw::{Functions, Out, Slot};
use crate::rdmacm::address;
use crate::rdmacm::channel;
use crate::rdmacm::devices::{device, existing};
use crate::rdmacm::id::{BY_KEY, IDS, Id, channel_of};
use crate::rdmacm::objects::{CHANNELS, Channel, forget_event};
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
    let (space, of) = (PortSpace(ps as u16), QpType(qp_type));
    device(functions)?;
    on_channel(channel, |on| {
        let cm = on.with(|on| CmId::new(&on.0, space, of))??;
        insert(cm, channel.is_none(), on, (context, ps, qp_type))
    })
}

/// Does something with a channel, or without one with a new one, which goes again if that fails.
fn on_channel<T>(
    given: Option<&'static Slot<Channel>>,
    work: impl FnOnce(&'static Slot<Channel>) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let channel = given.map_or_else(|| channel::create(existing()?), Ok)?;
    work(channel).inspect_err(|_| {
        if given.is_none() {
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

/// The identifier of a request that was taken from a channel: on that one, or on one of its own where the listener is
/// synchronous. If it can't be made, the peer is rejected.
pub fn requested(
    listener: &'static Slot<Id>,
    channel: &'static Slot<Channel>,
    request: CmId,
) -> Result<&'static Slot<Id>, Errno> {
    let is_synchronous = listener.with(|id| id.is_synchronous)?;
    let load = |at| listener.load(at);
    let like = (
        listener.load(offset_of!(rdma_cm_id, context)),
        load(offset_of!(rdma_cm_id, ps)),
        load(offset_of!(rdma_cm_id, qp_type)),
    );
    let slot = on_channel((!is_synchronous).then_some(channel), |on| {
        if is_synchronous {
            on.with(|own| request.migrate(&own.0))??;
        }
        insert(request, is_synchronous, on, like)
    })?;
    let told = address::tell_addresses(slot, true).and_then(|()| address::tell_path(slot));
    told.inspect_err(|_| _ = destroy_id(slot.face()))?;
    Ok(slot)
}

/// `rdma_migrate_id(3)`; without a channel it becomes synchronous. Its events come there at once; it returns when as many are
/// acknowledged as had been taken before. One that is taken from the new channel and acknowledged meanwhile counts, too, as it
/// does in librdmacm. -1 with EINVAL: it is synchronous, and no channel is given. EINVAL, ENOENT: no
/// identifier, no channel.
pub fn migrate_id(id: *const rdma_cm_id, channel: *const rdma_event_channel) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    let to = if channel.is_null() { None } else { Some(CHANNELS.find(channel)?) };
    let from = CHANNELS.find(channel_of(slot))?;
    let move_to = |on: &'static Slot<Channel>| {
        let moved = with_both(from, on, |channel| {
            slot.with(|id| {
                if to.is_none() && id.is_synchronous {
                    return Err(Errno::INVAL);
                }
                id.cm()?.migrate(channel)?;
                let own = replace(&mut id.is_synchronous, to.is_none()).then(|| channel_of(slot));
                slot.store(offset_of!(rdma_cm_id, channel), on.face());
                Ok((own, slot.side().reports.taken()))
            })
        });
        moved??
    };
    let (own, taken) = on_channel(to, move_to)?;
    if let Some(own) = own {
        forget_event(slot);
        channel::destroy_event_channel(own);
    }
    slot.side().reports.wait_for(taken);
    Ok(())
}

/// Works with the second channel while nobody takes an event of either. Their locks are taken in one order, as others may move
/// something the other way.
fn with_both<T>(
    from: &Slot<Channel>,
    to: &Slot<Channel>,
    work: impl FnOnce(&EventChannel) -> T,
) -> Result<T, Errno> {
    if ptr::eq(from, to) {
        to.with(|to| work(&to.0))
    } else if from.face() < to.face() {
        from.with(|_| to.with(|to| work(&to.0)))?
    } else {
        to.with(|to| from.with(|_| work(&to.0)))?
    }
}

/// `rdma_destroy_id(3)`: the peer is told, and the port is free. It waits until every event of it is acknowledged. -1 with
/// EINVAL, ENOENT: no identifier.
pub fn destroy_id(id: *const rdma_cm_id) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    let (cm, is_synchronous) = slot.with(|id| (id.cm.take(), id.is_synchronous))?;
    let cm = cm.ok_or(Errno::NOENT)?;
    BY_KEY.get().lock().remove(&cm.key());
    drop(cm);
    forget_event(slot);
    if is_synchronous {
        channel::destroy_event_channel(channel_of(slot));
    }
    IDS.remove(id)
}

#[cfg(test)]
mod tests;
