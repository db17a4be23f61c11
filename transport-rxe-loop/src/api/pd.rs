//! Protection domains: which regions and queue pairs belong together.
//!
//! ```
//! use transport_rxe_loop::{Access, Context};
//!
//! let pd = Context::open("loop0")?.alloc_pd();
//! let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//!
//! // In use: the handle comes back (Q11).
//! let pd = pd.destroy().unwrap_err().handle;
//! region.deregister();
//! pd.destroy()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use cq_core::setup::{Access, InUse, SrqInit};
use cq_core::wc::Wc;

use crate::api::ah::{AddressError, AddressHandle, AddressVector};
use crate::api::domain::Domain;
use crate::api::mr::{MemoryRegion, OwnedRegion};
use crate::api::mw::MemoryWindow;
use crate::api::qp::{QpInit, QueuePair};
use crate::api::srq::SharedReceiveQueue;
use crate::completion::channel::EventChannel;
use crate::engine::requester::grh;
use crate::error::{CreateError, RegisterError};
use crate::lifecycle::Device;

/// A protection domain.
///
/// Destroying it twice does not compile:
/// ```compile_fail
/// # fn twice(pd: transport_rxe_loop::ProtectionDomain) {
/// pd.destroy();
/// pd.destroy();
/// # }
/// ```
#[derive(Debug)]
pub struct ProtectionDomain {
    domain: Arc<Domain>,
}

impl ProtectionDomain {
    pub(super) fn new(device: &'static Device, events: &Arc<EventChannel>) -> Self {
        Self { domain: Arc::new(Domain::new(device, events)) }
    }

    #[cfg(test)]
    pub(crate) const fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Memory of the device's, zeroed and registered: the safe way to have some, and the fastest for other
    /// processes to reach. It is in shared memory, all of it from the beginning.
    ///
    /// # Errors
    /// No bytes, no memory, no room in shared memory, rights that don't go together (Q10), too many regions.
    pub fn allocate(&self, len: usize, access: Access) -> Result<OwnedRegion, RegisterError> {
        self.domain.check_memory()?;
        OwnedRegion::new(&self.domain, len, access)
    }

    /// Registers memory of the caller's, which other processes reach by way of the [system](crate#processes) (X5).
    ///
    /// # Errors
    /// No bytes, rights that don't go together (Q10), too many regions.
    ///
    /// # Safety
    /// Until the region is deregistered or dropped (and for ever if it is leaked), the `len` bytes at
    /// `ptr` must stay mapped, and writable if `access` says LOCAL_WRITE; and since the device reads and
    /// writes them from other threads and processes at any time, they may be reached by atomic or volatile
    /// accesses only, but for moments when no request of any queue pair uses them.
    #[allow(unsafe_code)]
    pub unsafe fn register(
        &self,
        ptr: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<MemoryRegion, RegisterError> {
        self.domain.check_memory()?;
        // SAFETY: the caller's word, which is the same.
        unsafe { MemoryRegion::new(&self.domain, ptr, len, access) }
    }

    /// A memory window of type 2, which is not bound.
    ///
    /// # Errors
    /// Too many regions and windows.
    pub fn alloc_mw(&self) -> Result<MemoryWindow, RegisterError> {
        self.domain.check_memory()?;
        MemoryWindow::new(&self.domain)
    }

    /// A queue pair, in RESET.
    ///
    /// # Errors
    /// Capacities past the device's limits, too many queue pairs, no memory.
    pub fn create_qp(&self, init: &QpInit<'_>) -> Result<QueuePair, CreateError> {
        self.domain.check()?;
        QueuePair::new(&self.domain, init)
    }

    /// A shared receive queue (Q9).
    ///
    /// # Errors
    /// A capacity of 0 or past the device's limits, too many of them, no memory.
    pub fn create_srq(&self, init: &SrqInit) -> Result<SharedReceiveQueue, CreateError> {
        self.domain.check()?;
        SharedReceiveQueue::new(&self.domain, init)
    }

    /// One that got no number.
    #[cfg(test)]
    pub fn in_none(device: &'static Device, events: &Arc<EventChannel>) -> Self {
        Self { domain: Arc::new(Domain::in_none(device, events)) }
    }

    /// A handle of an address.
    ///
    /// # Errors
    /// It leads nowhere: there is one port, with one local and one global identifier.
    pub fn create_ah(&self, to: &AddressVector) -> Result<AddressHandle, AddressError> {
        AddressHandle::new(&self.domain, to)
    }

    /// A handle of [where a datagram came from](AddressVector::from_wc), for the answer.
    ///
    /// # Errors
    /// The completion is not that of a datagram, or a failure (C4), or the bytes are not what it came with.
    pub fn ah_from_wc(
        &self,
        wc: &Wc,
        grh: &[u8; grh::BYTES],
    ) -> Result<AddressHandle, AddressError> {
        self.create_ah(&AddressVector::from_wc(wc, grh)?)
    }

    /// Destroys it. Dropping does, too, once the last region, window, queue pair, shared receive queue and address handle are gone.
    ///
    /// # Errors
    /// One of them belongs to it; the handle comes back (EBUSY, Q11).
    pub fn destroy(self) -> Result<(), InUse<Self>> {
        Arc::try_unwrap(self.domain).map(drop).map_err(|domain| {
            InUse::new(
                Self { domain },
                "protection domain",
                "its memory regions, windows, queue pairs, shared receive queues and address handles",
            )
        })
    }
}
