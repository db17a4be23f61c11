//! An address handle: where datagrams go.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::{io, ptr};

use cq_core::wc::Wc;
use rdma_sys::{
    ibv_ah, ibv_ah_attr, ibv_create_ah, ibv_create_ah_from_wc, ibv_destroy_ah, ibv_grh,
};

use super::check;
use super::object::Object;
use super::pd::Pd;

/// An address handle.
#[derive(Debug)]
pub struct Ah {
    raw: Object<ibv_ah>,
    pd: Arc<Pd>,
}

impl Ah {
    /// Makes one of an address.
    pub fn new(pd: &Arc<Pd>, mut attr: ibv_ah_attr) -> io::Result<Self> {
        // SAFETY: the domain and the attributes are alive; a post that reads the handle borrows it.
        let raw =
            unsafe { Object::new(ibv_create_ah(pd.raw(), &mut attr), ibv_destroy_ah, check)? };
        Ok(Self { raw, pd: Arc::clone(pd) })
    }

    /// Makes one of where a datagram came from.
    pub fn from_wc(pd: &Arc<Pd>, port: u8, wc: &Wc, grh: &[u8; 40]) -> io::Result<Self> {
        const { assert!(size_of::<ibv_grh>() == 40) };
        let mut wc = *wc;
        // SAFETY: it is as long as that, and any bytes are such a header.
        let mut grh: ibv_grh = unsafe { ptr::from_ref(grh).cast::<ibv_grh>().read_unaligned() };
        let raw_wc = ptr::from_mut(&mut wc).cast();
        // SAFETY: the domain and both copies are alive; `Wc` is `ibv_wc` (asserted in `layout`). As above.
        let raw = unsafe {
            Object::new(
                ibv_create_ah_from_wc(pd.raw(), raw_wc, &mut grh, port),
                ibv_destroy_ah,
                check,
            )?
        };
        Ok(Self { raw, pd: Arc::clone(pd) })
    }

    /// As libibverbs names it.
    pub const fn raw(&self) -> *mut ibv_ah {
        self.raw.raw()
    }

    /// The domain that it belongs to.
    pub const fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }
}
