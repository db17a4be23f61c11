//! The device that identifiers are bound to: one context of `loop0`, which a process opens when it first needs it, and
//! keeps.

use std::mem::offset_of;

use crate::context::OPENINGS;
use crate::device;
use crate::errno::Errno;
use crate::pd::{self, DOMAINS};
use crate::raw::system::to_c;
use crate::raw::{Functions, Out, Slot};
use crate::rdmacm::id::{DEVICE, Device, Id};
use crate::sys::*;

/// The device of this process, open.
///
/// # Errors
/// ENODEV: there is none. As for `ibv_open_device` and `ibv_alloc_pd`.
pub fn device(functions: &'static Functions) -> Result<Device, Errno> {
    let mut device = DEVICE.get().lock();
    match *device {
        Some(device) => Ok(device),
        None => Ok(*device.insert(open(functions)?)),
    }
}

/// The device, which identifiers have that exist.
///
/// # Errors
/// ENODEV: none was opened, or this is a forked child.
pub fn existing() -> Result<Device, Errno> {
    DEVICE.get().lock().ok_or(Errno::NODEV)
}

/// Opens it.
fn open(functions: &'static Functions) -> Result<Device, Errno> {
    let context = device::open_device(device::first()?, functions)?;
    let pd = pd::alloc_pd(context).and_then(|pd| DOMAINS.find(pd));
    let made = pd.and_then(|pd| Ok(Device { context: OPENINGS.find(context)?, pd }));
    made.inspect_err(|_| _ = device::close_device(context))
}

/// `rdma_get_devices(3)`, with the functions that its context carries. ENOMEM; the errors of [`device()`].
pub fn get_devices(
    num_devices: Out<'_, c_int>,
    functions: &'static Functions,
) -> Result<*mut *mut ibv_context, Errno> {
    let contexts = [device(functions)?.context.face()];
    let list = to_c(&contexts).ok_or(Errno::NOMEM)?;
    // The number is optional.
    let _ = num_devices.put(contexts.len() as c_int);
    Ok(list)
}

/// The context that an identifier is bound to.
///
/// # Errors
/// EINVAL: to none.
pub fn bound(id: &Slot<Id>) -> Result<*mut ibv_context, Errno> {
    let context = id.load::<*mut ibv_context>(offset_of!(rdma_cm_id, verbs));
    if context.is_null() { Err(Errno::INVAL) } else { Ok(context) }
}

/// The protection domain that something of an identifier is made in: the `given` one, else the identifier's, else the
/// default one.
///
/// # Errors
/// EINVAL: it is of another context than the identifier is bound to. EINVAL, ENOENT: there is none.
pub fn domain(id: &Slot<Id>, given: *mut ibv_pd) -> Result<*mut ibv_pd, Errno> {
    let default = || DEVICE.get().lock().map(|device| device.pd.face());
    let known = [given, id.load(offset_of!(rdma_cm_id, pd))].into_iter().find(|pd| !pd.is_null());
    let pd = known.or_else(default).ok_or(Errno::INVAL)?;
    let context = DOMAINS.find(pd)?.with(|domain| domain.opening.face())?;
    if context == bound(id)? { Ok(pd) } else { Err(Errno::INVAL) }
}
