//! A protection domain.

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys::{ibv_alloc_pd, ibv_dealloc_pd, ibv_pd};

use super::context::Context;

/// A protection domain; deallocated when its last user is gone.
#[derive(Debug)]
pub struct Pd {
    raw: NonNull<ibv_pd>,
    context: Arc<Context>,
}

// SAFETY: libibverbs may be called from any thread, with the same domain from several at once.
unsafe impl Send for Pd {}
// SAFETY: as above.
unsafe impl Sync for Pd {}

impl Pd {
    /// Allocates one.
    pub fn new(context: &Arc<Context>) -> io::Result<Self> {
        // SAFETY: the context is open.
        let raw = unsafe { ibv_alloc_pd(context.raw()) };
        let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { raw, context: Arc::clone(context) })
    }

    /// As libibverbs names it.
    pub const fn raw(&self) -> *mut ibv_pd {
        self.raw.as_ptr()
    }

    /// Of which device.
    pub const fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: everything made of it keeps it alive, so nothing refers to it any more.
        unsafe { ibv_dealloc_pd(self.raw()) };
    }
}
