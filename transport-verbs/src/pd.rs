//! Protection domains: which regions, queue pairs, shared receive queues and addresses belong together.

use std::sync::Arc;

use cq_core::setup::{Access, InUse};

use crate::error::{Attempt, DeviceError, RegisterError};
use crate::mr::{MemoryRegion, OwnedRegion};
use crate::sys::{context::Context, pd::Pd};

/// A protection domain.
///
/// ```no_run
/// use transport_verbs::{Access, Context};
///
/// let pd = Context::open_first()?.alloc_pd()?;
/// let region = pd.allocate(64, Access::LOCAL_WRITE)?;
///
/// // In use: the handle comes back (Q11).
/// let pd = pd.destroy().unwrap_err().handle;
/// region.deregister();
/// pd.destroy()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Destroying it twice does not compile:
/// ```compile_fail,E0382
/// # fn twice(pd: transport_verbs::ProtectionDomain) {
/// pd.destroy();
/// pd.destroy();
/// # }
/// ```
#[derive(Debug)]
pub struct ProtectionDomain {
    raw: Arc<Pd>,
}

impl ProtectionDomain {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, DeviceError> {
        let raw = Pd::new(context).attempt("allocate a protection domain")?;
        Ok(Self { raw: Arc::new(raw) })
    }

    pub(crate) const fn raw(&self) -> &Arc<Pd> {
        &self.raw
    }

    /// Memory of the system's, zeroed and registered: the safe way to have some.
    ///
    /// # Errors
    /// No bytes, no memory, rights that don't go together (Q10), or the device refused.
    pub fn allocate(&self, len: usize, access: Access) -> Result<OwnedRegion, RegisterError> {
        OwnedRegion::new(&self.raw, len, access)
    }

    /// Registers memory of the caller's.
    ///
    /// # Errors
    /// No bytes, rights that don't go together (Q10), or the device refused.
    ///
    /// # Safety
    /// Until the region is deregistered or dropped (and for ever if it is leaked, or if the device fails to
    /// deregister it, as while a memory window that was made elsewhere is bound to it), the `len` bytes at
    /// `ptr` must stay mapped, and writable if `access` says LOCAL_WRITE; and since the device reads and
    /// writes them at any time, they may be reached by atomic or volatile accesses only, but for moments
    /// when no request of any queue pair uses them.
    #[allow(unsafe_code)]
    pub unsafe fn register(
        &self,
        ptr: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<MemoryRegion, RegisterError> {
        // SAFETY: the caller's word, which is the same.
        unsafe { MemoryRegion::new(&self.raw, ptr, len, access) }
    }

    /// Destroys it. Dropping does, too, once the last of what was made of it is gone.
    ///
    /// # Errors
    /// Something belongs to it; the handle comes back (EBUSY, Q11).
    pub fn destroy(self) -> Result<(), InUse<Self>> {
        Arc::try_unwrap(self.raw).map(drop).map_err(|raw| {
            InUse::new(Self { raw }, "protection domain", "its memory regions and queue pairs")
        })
    }
}
