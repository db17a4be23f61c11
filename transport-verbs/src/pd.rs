//! Protection domains.

use std::sync::Arc;

use cq_verbs::setup::{CreateError, InUseError};

use crate::device::Context;
use crate::error::Attempt;
use crate::sys::pd::Pd;
use crate::trace;

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
    pub(crate) raw: Arc<Pd>,
}

impl Context {
    /// Allocates a protection domain.
    ///
    /// # Errors
    /// There are too many.
    #[doc(alias = "ibv_alloc_pd")]
    pub fn alloc_pd(&self) -> Result<ProtectionDomain, CreateError> {
        let raw = Pd::new(&self.raw).attempt("allocate a protection domain")?;
        trace::event!(DEBUG, pd = raw.number(), "protection domain allocated");
        Ok(ProtectionDomain { raw: Arc::new(raw) })
    }
}

impl ProtectionDomain {
    /// Destroys the domain. Dropping destroys it once its last object is destroyed.
    ///
    /// # Errors
    /// An object in it exists; the handle is returned (EBUSY, [Q11](cq_core::contract#q11)).
    pub fn destroy(self) -> Result<(), InUseError<Self>> {
        Arc::try_unwrap(self.raw).map(drop).map_err(|raw| {
            InUseError::new(Self { raw }, "protection domain", "its memory regions and queue pairs")
        })
    }
}
