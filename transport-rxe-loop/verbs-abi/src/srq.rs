//! Shared receive queues: `ibv_create_srq(3)`, and what is done with one (Q9).

use std::ffi::{c_int, c_uint};
use std::mem::offset_of;
use std::sync::Arc;

use transport_rxe_loop::{SharedReceiveQueue, SrqInit};

use crate::arg::{changed, given, put};
use crate::errno::{Errno, pointer, status};
use crate::names::Names;
use crate::pd::DOMAINS;
use crate::side;
use crate::sys::{IBV_SRQ_LIMIT, IBV_SRQ_MAX_WR, ibv_pd, ibv_srq, ibv_srq_attr, ibv_srq_init_attr};
use crate::table::{Kind, Table};

/// A shared receive queue.
pub struct Shared {
    /// The device's.
    pub srq: SharedReceiveQueue,
    names: Arc<Names>,
}

impl Kind for Shared {
    type Public = ibv_srq;
    type Face = ibv_srq;
    const HANDLE: Option<usize> = Some(offset_of!(ibv_srq, handle));
    type Side = side::Shared;
}

/// Those of this process.
pub static SHARED: Table<Shared> = Table::new();

/// `ibv_create_srq(3)`. EINVAL: a capacity of 0, or past the device's limit. ENOMEM: too many, or no memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_srq(
    pd: *mut ibv_pd,
    init: *mut ibv_srq_init_attr,
) -> *mut ibv_srq {
    // SAFETY: C's word: what it made the queue of is its own to read and write during the call.
    pointer(unsafe { changed(init) }.and_then(|init| create_srq(pd, init)))
}

fn create_srq(pd: *mut ibv_pd, init: &mut ibv_srq_init_attr) -> Result<*mut ibv_srq, Errno> {
    let domain = DOMAINS.find(pd)?;
    let wanted = SrqInit { max_wr: init.attr.max_wr, max_sge: init.attr.max_sge };
    let (srq, names, opening) = domain.with(|domain| {
        let srq = domain.pd.create_srq(&wanted);
        srq.map(|srq| (srq, Arc::clone(&domain.names), domain.opening))
    })??;
    let (number, caps) = (srq.number(), srq.caps());
    let slot = SHARED.insert(Shared { srq, names: Arc::clone(&names) }, |handle| ibv_srq {
        context: opening.face(),
        srq_context: init.srq_context,
        pd,
        handle,
        ..ibv_srq::ZEROED
    })?;
    names.srqs.add(number, slot);
    (init.attr.max_wr, init.attr.max_sge) = (caps.max_wr, caps.max_sge);
    Ok(slot.face())
}

/// `ibv_destroy_srq(3)`, once every event of it is acknowledged (N7). EBUSY: a queue pair takes from it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_srq(srq: *mut ibv_srq) -> c_int {
    status(destroy_srq(srq))
}

fn destroy_srq(srq: *const ibv_srq) -> Result<(), Errno> {
    let slot = SHARED.find(srq)?;
    let (number, names) = slot.with(|shared| (shared.srq.number(), Arc::clone(&shared.names)))?;
    slot.end(|Shared { srq, names }| {
        srq.destroy().map_err(|in_use| (Shared { srq: in_use.handle, names }, Errno::BUSY))
    })?;
    names.srqs.remove(&number);
    slot.side().reports.wait();
    SHARED.free(slot);
    Ok(())
}

/// `ibv_modify_srq(3)`. EINVAL: a limit past what it takes, or an unknown attribute. EOPNOTSUPP: another size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_modify_srq(
    srq: *mut ibv_srq,
    attr: *mut ibv_srq_attr,
    attr_mask: c_int,
) -> c_int {
    // SAFETY: C's word: nobody changes it during the call.
    status(unsafe { given(attr) }.and_then(|attr| modify_srq(srq, attr, attr_mask.cast_unsigned())))
}

fn modify_srq(srq: *const ibv_srq, attr: &ibv_srq_attr, mask: c_uint) -> Result<(), Errno> {
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    let found = query_srq(srq);
    // SAFETY: C's word: there is room for attributes.
    status(found.and_then(|found| unsafe { put(attr, found) }))
}

fn query_srq(srq: *const ibv_srq) -> Result<ibv_srq_attr, Errno> {
    SHARED.find(srq)?.with(|Shared { srq, .. }| {
        let SrqInit { max_wr, max_sge } = srq.caps();
        ibv_srq_attr { max_wr, max_sge, srq_limit: srq.limit() }
    })
}

/// `ibv_get_srq_num(3)`.
pub unsafe extern "C" fn get_srq_num(srq: *mut ibv_srq, srq_num: *mut u32) -> c_int {
    let number = SHARED.find(srq).and_then(|slot| slot.with(|shared| shared.srq.number()));
    // SAFETY: C's word: there is room for a number.
    status(number.and_then(|number| unsafe { put(srq_num, number) }))
}

#[cfg(test)]
mod tests;
