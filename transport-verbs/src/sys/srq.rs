//! A shared receive queue.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::Arc;
use std::{io, mem, ptr};

use cq_verbs::wr::RecvWr;
use rdma_sys::{
    ibv_create_srq, ibv_destroy_srq, ibv_modify_srq, ibv_query_srq, ibv_recv_wr, ibv_srq,
    ibv_srq_attr, ibv_srq_attr_mask, ibv_srq_init_attr,
};

use super::check;
use super::object::Object;
use super::pd::Pd;
use super::post::{self, Failure};
use crate::trace;

type PostRecv =
    unsafe extern "C" fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int;

/// A shared receive queue; destroyed when its last queue pair is gone.
#[derive(Debug)]
pub struct Srq {
    raw: Object<ibv_srq>,
    post_recv: PostRecv,
    number: u32,
    pd: Arc<Pd>,
}

impl Srq {
    /// Creates one whose events carry `number`; returns its capacities.
    pub fn new(
        pd: &Arc<Pd>,
        number: u32,
        max_wr: u32,
        max_sge: u32,
    ) -> io::Result<(Self, ibv_srq_attr)> {
        let mut init = ibv_srq_init_attr {
            srq_context: ptr::null_mut(),
            attr: ibv_srq_attr { max_wr, max_sge, srq_limit: 0 },
        };
        // SAFETY: the domain and the attributes are alive; every queue pair of the queue keeps it alive.
        let raw =
            unsafe { Object::new(ibv_create_srq(pd.raw(), &mut init), ibv_destroy_srq, check)? };
        pd.context().named.srqs.add(raw.raw(), number);
        // SAFETY: the context is open; its table of operations does not change.
        let post_recv = unsafe { (*pd.context().raw()).ops.post_srq_recv };
        let post_recv =
            post_recv.expect("a device that makes these queues takes receives for them");
        Ok((Self { raw, post_recv, number, pd: Arc::clone(pd) }, init.attr))
    }

    /// As libibverbs names it.
    pub const fn raw(&self) -> *mut ibv_srq {
        self.raw.raw()
    }

    /// The domain that it belongs to.
    pub const fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// `ibv_post_srq_recv(3)`.
    #[inline]
    pub fn post_recv(&self, list: &[RecvWr<'_>]) -> Result<(), Failure> {
        // SAFETY: the queue is alive, and so are the SGEs while the device's call reads them.
        unsafe { post::post_recvs(list, |first, bad| (self.post_recv)(self.raw(), first, bad)) }
    }

    /// Asks for an event once fewer receives than this are left.
    pub fn arm_limit(&self, srq_limit: u32) -> io::Result<()> {
        let mut attr = ibv_srq_attr { max_wr: 0, max_sge: 0, srq_limit };
        let mask = ibv_srq_attr_mask::IBV_SRQ_LIMIT.0 as c_int;
        // SAFETY: the queue and the attributes are alive.
        check(unsafe { ibv_modify_srq(self.raw(), &mut attr, mask) })
    }

    /// The limit in force; 0 is none.
    pub fn limit(&self) -> io::Result<u32> {
        // SAFETY: these are numbers, for which zero is a value.
        let mut attr: ibv_srq_attr = unsafe { mem::zeroed() };
        // SAFETY: the queue and the attributes are alive.
        check(unsafe { ibv_query_srq(self.raw(), &mut attr) })?;
        Ok(attr.srq_limit)
    }
}

impl Drop for Srq {
    fn drop(&mut self) {
        if self.raw.is_ours() {
            trace::event!(DEBUG, srq = self.number, "shared receive queue destroyed");
            self.pd.context().named.srqs.remove(self.raw());
        }
    }
}
