//! A protection domain.

#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;

use rdma_sys::{ibv_alloc_pd, ibv_dealloc_pd, ibv_pd};

use super::check;
use super::context::Context;
use super::object::Object;
use crate::trace;

/// A protection domain; deallocated when its last user is gone.
#[derive(Debug)]
pub struct Pd {
    raw: Object<ibv_pd>,
    context: Arc<Context>,
}

impl Pd {
    /// Allocates one.
    pub fn new(context: &Arc<Context>) -> io::Result<Self> {
        // SAFETY: the context is open; everything made of the domain keeps it alive.
        let raw = unsafe { Object::new(ibv_alloc_pd(context.raw()), ibv_dealloc_pd, check)? };
        Ok(Self { raw, context: Arc::clone(context) })
    }

    /// As libibverbs names it.
    pub const fn raw(&self) -> *mut ibv_pd {
        self.raw.raw()
    }

    /// Its number, as the driver has it.
    pub const fn number(&self) -> u32 {
        // SAFETY: it is alive, and its number stays as it is.
        unsafe { (*self.raw()).handle }
    }

    /// Of which device.
    pub const fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        if self.raw.is_ours() {
            trace::event!(DEBUG, pd = self.number(), "protection domain deallocated");
        }
    }
}
