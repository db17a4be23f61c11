//! `rdma_create_srq(3)` and `rdma_destroy_srq(3)`: the shared receive queue of an identifier, which its queue pair takes
//! receives from.

use std::mem::offset_of;
use std::ptr;

use crate::errno::Errno;
use crate::raw::InOut;
use crate::rdmacm::devices::domain;
use crate::rdmacm::id::IDS;
use crate::srq;
use crate::sys::*;

const SRQ: usize = offset_of!(rdma_cm_id, srq);

/// `rdma_create_srq(3)`. -1 with EINVAL: the identifier is not bound to a device, or has a shared receive queue; a domain
/// of another context. EINVAL, ENOENT: no identifier. Else as for `ibv_create_srq`.
pub fn create_srq(
    id: *const rdma_cm_id,
    pd: *mut ibv_pd,
    attr: InOut<'_, ibv_srq_init_attr>,
) -> Result<(), Errno> {
    let attr = attr.changed()?;
    create(id, pd, attr.srq_context, &mut attr.attr)
}

/// What `rdma_create_srq_ex` knows to make.
const KNOWN: u32 = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;

/// `rdma_create_srq_ex`, which no page documents: as `rdma_create_srq`, of what `ibv_create_srq_ex(3)` takes. EOPNOTSUPP:
/// queues of other types than the basic one.
pub fn create_srq_ex(
    id: *const rdma_cm_id,
    attr: InOut<'_, ibv_srq_init_attr_ex>,
) -> Result<(), Errno> {
    let attr = attr.changed()?;
    let has = |field| attr.comp_mask & field != 0;
    if has(!KNOWN) || has(IBV_SRQ_INIT_ATTR_TYPE) && attr.srq_type != IBV_SRQT_BASIC {
        return Err(Errno::OPNOTSUPP);
    }
    let pd = if has(IBV_SRQ_INIT_ATTR_PD) { attr.pd } else { ptr::null_mut() };
    create(id, pd, attr.srq_context, &mut attr.attr)
}

/// Makes the queue, and tells it in the identifier.
fn create(
    id: *const rdma_cm_id,
    pd: *mut ibv_pd,
    srq_context: *mut c_void,
    attr: &mut ibv_srq_attr,
) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    slot.with(|_| {
        if !slot.load::<*mut ibv_srq>(SRQ).is_null() {
            return Err(Errno::INVAL);
        }
        let pd = domain(slot, pd)?;
        slot.store(SRQ, srq::create(pd, srq_context, attr)?);
        slot.store(offset_of!(rdma_cm_id, pd), pd);
        Ok(())
    })?
}

/// `rdma_destroy_srq(3)`, once every event of it is acknowledged (N7). Nothing happens where there is none, or a queue pair
/// takes from it.
pub fn destroy_srq(id: *const rdma_cm_id) {
    let Ok(slot) = IDS.find(id) else { return };
    // Without the lock, since it may wait.
    if srq::destroy_srq(slot.load::<*mut ibv_srq>(SRQ)).is_ok() {
        slot.store(SRQ, ptr::null_mut::<ibv_srq>());
    }
}
