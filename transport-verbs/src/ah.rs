//! Address handles: the destinations of datagrams.

use cq_core::wc::Wc;
use cq_verbs::setup::{AddressError, AddressVector, Port};

use crate::attr;
use crate::error::Attempt;
use crate::pd::ProtectionDomain;
use crate::sys::ah::Ah;

/// An address handle, for datagrams.
///
/// ```no_run
/// use transport_verbs::{AddressVector, Context, Wc};
///
/// # let (received, buffer) = (Wc::default(), [0_u8; 1064]);
/// let context = Context::open_first()?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let there = pd.create_ah(&AddressVector::new(&port, "::ffff:10.0.0.2".parse()?, 0))?;
///
/// // The source of a datagram, for a reply: the receive buffer begins with its GRH.
/// let back = pd.ah_from_wc(&port, &received, buffer.first_chunk().unwrap())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A [`Directed`](crate::Directed) borrows it while requests are posted. Devices may use it until the requests are
/// carried out: keep it until they have completed. Requests that are outstanding when it is dropped may be lost or fail.
#[doc(alias("ibv_ah", "ibv_destroy_ah"))]
#[derive(Debug)]
pub struct AddressHandle {
    pub(crate) raw: Ah,
}

impl AddressHandle {
    /// Destroys the handle, as dropping does.
    pub fn destroy(self) {
        drop(self);
    }
}

impl ProtectionDomain {
    /// Creates an address handle.
    ///
    /// # Errors
    /// The device has no path there: no such port, or no route to the GID.
    #[doc(alias = "ibv_create_ah")]
    pub fn create_ah(&self, to: &AddressVector) -> Result<AddressHandle, AddressError> {
        let raw = Ah::new(&self.raw, attr::raw_path(to)).attempt("create an address handle")?;
        Ok(AddressHandle { raw })
    }

    /// Creates a handle of the source of a datagram that this port received, for replies. `wc` is the receive completion
    /// and `grh` the first 40 bytes of the receive buffer, which hold the GRH.
    ///
    /// # Errors
    /// The completion is not a successful one of a receive ([C4](cq_core::contract#c4)), or the device has no path
    /// there.
    pub fn ah_from_wc(
        &self,
        port: &Port,
        wc: &Wc,
        grh: &[u8; 40],
    ) -> Result<AddressHandle, AddressError> {
        if wc.result().is_err() {
            return Err(AddressError::NoDatagram);
        }
        let raw = Ah::from_wc(&self.raw, port.number, wc, grh);
        let raw = raw.attempt("create an address handle of a received datagram")?;
        Ok(AddressHandle { raw })
    }
}
