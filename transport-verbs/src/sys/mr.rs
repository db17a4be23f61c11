//! A registration: what a key stands for.

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys::{ibv_dereg_mr, ibv_mr, ibv_reg_mr_iova2};

use super::memory::Memory;
use super::pd::Pd;

/// A key, from registering to deregistering.
#[derive(Debug)]
pub struct Mr {
    raw: NonNull<ibv_mr>,
    memory: Option<Arc<Memory>>,
    _pd: Arc<Pd>,
}

// SAFETY: libibverbs may be called from any thread; nothing but dropping changes a registration.
unsafe impl Send for Mr {}
// SAFETY: as above.
unsafe impl Sync for Mr {}

impl Mr {
    /// Registers memory. This call leaves out optional rights that the kernel does not know.
    ///
    /// # Safety
    /// Until this is dropped, and for ever if it is leaked, the memory stays mapped, is writable if the
    /// rights let the device write, and is reached by others only as memory of a device is.
    pub unsafe fn new(pd: &Arc<Pd>, ptr: *mut u8, len: usize, access: u32) -> io::Result<Self> {
        // SAFETY: the domain is alive; the caller speaks for the memory.
        let raw = unsafe {
            ibv_reg_mr_iova2(pd.raw(), ptr.cast(), len, ptr.expose_provenance() as u64, access)
        };
        let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { raw, memory: None, _pd: Arc::clone(pd) })
    }

    /// What the key stands for: it stays mapped for ever should the device fail to deregister it.
    pub fn keep(&mut self, memory: &Arc<Memory>) {
        self.memory = Some(Arc::clone(memory));
    }

    /// The key that requests of this side use.
    pub const fn lkey(&self) -> u32 {
        // SAFETY: it is alive, and its keys stay as they are.
        unsafe { (*self.raw.as_ptr()).lkey }
    }

    /// The key that the peer uses.
    pub const fn rkey(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.raw.as_ptr()).rkey }
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        // SAFETY: it is deregistered once. Requests that name its keys fail from now on.
        let deregistered = unsafe { ibv_dereg_mr(self.raw.as_ptr()) };
        if deregistered != 0 {
            // The device may still write it.
            std::mem::forget(self.memory.take());
        }
    }
}

#[cfg(test)]
mod tests;
