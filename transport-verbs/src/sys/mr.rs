//! A registration: what a key stands for.

#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;

use rdma_sys::{ibv_dereg_mr, ibv_mr, ibv_reg_mr_iova2};

use super::check;
use super::memory::Memory;
use super::object::Object;
use super::pd::Pd;
use crate::trace;

/// A key, from registering to deregistering.
#[derive(Debug)]
pub struct Mr {
    raw: Object<ibv_mr>,
    _pd: Arc<Pd>,
}

impl Mr {
    /// Registers memory. This call leaves out optional rights that the kernel does not know.
    ///
    /// # Safety
    /// Until this is dropped, and for ever if it is leaked or the device fails to deregister it, the memory stays mapped, is
    /// writable if the rights let the device write, and is reached by others only as memory of a device is.
    pub unsafe fn new(pd: &Arc<Pd>, ptr: *mut u8, len: usize, access: u32) -> io::Result<Self> {
        let iova = ptr.expose_provenance() as u64;
        // SAFETY: the domain is alive; the caller speaks for the memory. Requests name the keys only.
        let raw = unsafe {
            Object::new(
                ibv_reg_mr_iova2(pd.raw(), ptr.cast(), len, iova, access),
                ibv_dereg_mr,
                check,
            )?
        };
        Ok(Self { raw, _pd: Arc::clone(pd) })
    }

    /// What the key stands for: it stays mapped for ever should the device fail to deregister it.
    pub fn keep(&mut self, memory: &Arc<Memory>) {
        self.raw.keep(Arc::<Memory>::clone(memory));
    }

    /// The key that requests of this side use.
    pub const fn lkey(&self) -> u32 {
        // SAFETY: it is alive, and its keys stay as they are.
        unsafe { (*self.raw.raw()).lkey }
    }

    /// The key that the peer uses.
    pub const fn rkey(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.raw.raw()).rkey }
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        if self.raw.is_ours() {
            trace::event!(DEBUG, rkey = self.rkey(), "memory region deregistered");
        }
    }
}
