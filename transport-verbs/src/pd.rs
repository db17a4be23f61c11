//! Protection domains: they create regions, queue pairs, shared receive queues and address handles.

use std::sync::Arc;

use cq_core::setup::{Access, CreateError, InUse, RegisterError};

use crate::error::Attempt;
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
/// // In use: the handle is returned (Q11).
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
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, CreateError> {
        let raw = Pd::new(context).attempt("allocate a protection domain")?;
        Ok(Self { raw: Arc::new(raw) })
    }

    pub(crate) const fn raw(&self) -> &Arc<Pd> {
        &self.raw
    }

    /// Allocates and registers memory, zeroed. This is safe.
    ///
    /// # Errors
    /// The length is 0, there is no memory, the rights are invalid ([Q10](cq_core::contract#q10)), or the device
    /// refused.
    pub fn allocate(&self, len: usize, access: Access) -> Result<OwnedRegion, RegisterError> {
        OwnedRegion::new(&self.raw, len, access)
    }

    /// Registers memory of the caller.
    ///
    /// # Errors
    /// The length is 0, the rights are invalid ([Q10](cq_core::contract#q10)), or the device refused.
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

    /// Destroys the domain. Dropping destroys it once its last object is destroyed.
    ///
    /// # Errors
    /// An object in it exists; the handle is returned (EBUSY, [Q11](cq_core::contract#q11)).
    pub fn destroy(self) -> Result<(), InUse<Self>> {
        Arc::try_unwrap(self.raw).map(drop).map_err(|raw| {
            InUse::new(Self { raw }, "protection domain", "its memory regions and queue pairs")
        })
    }
}
