//! Protection domains.

use std::mem::offset_of;

use transport_rxe_loop::ProtectionDomain;

use crate::context::{OPENINGS, Opening};
use crate::errno::Errno;
use crate::raw::{Functions, Kind, Slot, Table};
use crate::sys::*;

/// A protection domain, with what things that are made in it need of the opening.
pub struct Domain {
    /// The domain.
    pub pd: ProtectionDomain,
    /// The opening's number.
    pub id: u64,
    /// What C finds the functions of queue pairs in.
    pub functions: &'static Functions,
    /// Which opening that is: what C sees of it stays.
    pub opening: &'static Slot<Opening>,
}

impl Kind for Domain {
    type Public = ibv_pd;
    type Face = ibv_pd;
    const HANDLE: Option<usize> = Some(offset_of!(ibv_pd, handle));
}

/// Those of this process.
pub static DOMAINS: Table<Domain> = Table::new();

/// `ibv_alloc_pd(3)`. EINVAL, ENOENT: no context. ENOMEM: too many. ENODEV: this is a forked child.
pub fn alloc_pd(context: *const ibv_context) -> Result<*mut ibv_pd, Errno> {
    let opening = OPENINGS.find(context)?;
    let domain = opening.with(|Opening { device, id, functions, .. }| {
        let pd = device.alloc_pd()?;
        Ok::<_, Errno>(Domain { pd, id: *id, functions, opening })
    })??;
    let public = |handle| ibv_pd { context: opening.face(), handle };
    Ok(DOMAINS.insert(domain, public)?.face())
}

/// `ibv_dealloc_pd(3)`. EINVAL, ENOENT: no domain. EBUSY: something belongs to it.
pub fn dealloc_pd(pd: *const ibv_pd) -> Result<(), Errno> {
    DOMAINS.destroy(pd, |domain| {
        let back = |pd| (Domain { pd, ..domain }, Errno::BUSY);
        domain.pd.destroy().map_err(|used| back(used.handle))
    })
}

/// Makes something in a domain. With it comes the context that it belongs to.
///
/// # Errors
/// EINVAL, ENOENT: no domain. Why it could not be made.
pub fn make_in<T, E: Into<Errno>>(
    pd: *const ibv_pd,
    make: impl FnOnce(&Domain) -> Result<T, E>,
) -> Result<(T, *mut ibv_context), Errno> {
    let (made, opening) = DOMAINS.find(pd)?.with(|domain| (make(domain), domain.opening))?;
    Ok((made.map_err(E::into)?, opening.face()))
}
