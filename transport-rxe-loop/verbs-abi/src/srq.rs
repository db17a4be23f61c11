//! Shared receive queues: `ibv_create_srq(3)`, and what is done with one (Q9).

use std::mem::offset_of;

use cq_verbs::async_event::Element;
use transport_rxe_loop::{SharedReceiveQueue, SrqInit};

use crate::errno::Errno;
use crate::pd::{Domain, make_in};
use crate::raw::{In, InOut, Key, Kind, Out, Table};
use crate::sys::*;

/// A shared receive queue.
pub struct Shared {
    /// The device's.
    pub srq: SharedReceiveQueue,
    /// The opening's number.
    id: u64,
}

impl Kind for Shared {
    type Public = ibv_srq;
    type Face = ibv_srq;
    const HANDLE: Option<usize> = Some(offset_of!(ibv_srq, handle));

    fn key(&self) -> Option<Key> {
        Some((self.id, Element::Srq(self.srq.number())))
    }
}

/// Those of this process.
pub static SHARED: Table<Shared> = Table::new();

/// `ibv_create_srq(3)`. EINVAL: a capacity of 0, or past the device's limit. ENOMEM: too many, or no memory.
pub fn create_srq(
    pd: *mut ibv_pd,
    init: InOut<'_, ibv_srq_init_attr>,
) -> Result<*mut ibv_srq, Errno> {
    let init = init.changed()?;
    create(pd, init.srq_context, &mut init.attr)
}

/// Does what `ibv_create_srq` does, with its errors.
pub fn create(
    pd: *mut ibv_pd,
    srq_context: *mut c_void,
    attr: &mut ibv_srq_attr,
) -> Result<*mut ibv_srq, Errno> {
    let wanted = SrqInit::new(attr.max_wr).max_sge(attr.max_sge);
    let (shared, context) = make_in(pd, |Domain { pd, id, .. }| {
        pd.create_srq(&wanted).map(|srq| Shared { srq, id: *id })
    })?;
    let caps = shared.srq.caps();
    let slot = SHARED.insert(shared, |handle| ibv_srq {
        context,
        srq_context,
        pd,
        handle,
        ..ibv_srq::ZEROED
    })?;
    (attr.max_wr, attr.max_sge) = (caps.max_wr, caps.max_sge);
    Ok(slot.face())
}

/// `ibv_destroy_srq(3)`, once every event of it is acknowledged (N7). EBUSY: a queue pair takes from it.
pub fn destroy_srq(srq: *const ibv_srq) -> Result<(), Errno> {
    SHARED.destroy(srq, |Shared { srq, id }| {
        srq.destroy().map_err(|in_use| (Shared { srq: in_use.handle, id }, Errno::BUSY))
    })
}

/// `ibv_modify_srq(3)`. EINVAL: a limit past what it takes, or an unknown attribute. EOPNOTSUPP: another size.
pub fn modify_srq(
    srq: *const ibv_srq,
    attr: In<'_, ibv_srq_attr>,
    attr_mask: c_int,
) -> Result<(), Errno> {
    let (attr, mask) = (attr.given()?, attr_mask.cast_unsigned());
    let slot = SHARED.find(srq)?;
    if mask & !(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR) != 0 {
        return Err(Errno::INVAL);
    }
    if mask & IBV_SRQ_MAX_WR != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    if mask & IBV_SRQ_LIMIT != 0 {
        slot.with(|shared| shared.srq.arm_limit(attr.srq_limit))??;
    }
    Ok(())
}

/// `ibv_query_srq(3)`.
pub fn query_srq(srq: *const ibv_srq, attr: Out<'_, ibv_srq_attr>) -> Result<(), Errno> {
    attr.put(SHARED.find(srq)?.with(|Shared { srq, .. }| {
        let SrqInit { max_wr, max_sge, .. } = srq.caps();
        Ok::<_, Errno>(ibv_srq_attr { max_wr, max_sge, srq_limit: srq.limit()? })
    })??)
}

/// `ibv_get_srq_num(3)`.
pub fn get_srq_num(srq: *const ibv_srq, srq_num: Out<'_, u32>) -> Result<(), Errno> {
    srq_num.put(SHARED.find(srq)?.with(|shared| shared.srq.number())?)
}

#[cfg(test)]
mod tests;
