//! Which devices there are; opening and closing them.

use std::fmt;
use std::os::fd::AsFd;
use std::ptr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cq_verbs::causes::Causes;
use transport_rxe_loop::{Context, OpenOptions, devices};

use crate::context::{COMP_VECTORS, OPENINGS, Opening};
use crate::errno::Errno;
use crate::fork;
use crate::query::GUID;
use crate::raw::system::to_c;
use crate::raw::{Functions, Out};
use crate::stderr;
use crate::sys::*;
use crate::wait::Descriptor;
use crate::words::fixed;

/// What C reads of a device.
#[repr(C)]
struct Public {
    device: ibv_device,
    /// Libraries of drivers, such as libmlx5, compare this with theirs to see whether a device is one of their own.
    driver: usize,
}

impl Public {
    /// What programs have as a pointer.
    const fn face(&self) -> *const ibv_device {
        ptr::from_ref(self).cast()
    }
}

/// The devices' names, and what C reads of each, as long as the process lives: pointers to it stay good when a list of them
/// is freed. No path leads to one: the system does not know of it.
static DEVICES: LazyLock<Box<[(String, Public)]>> = LazyLock::new(|| {
    let public = |name: &str| Public {
        device: ibv_device {
            node_type: IBV_NODE_CA,
            transport_type: IBV_TRANSPORT_IB,
            name: fixed(name),
            dev_name: fixed(name),
            ..ibv_device::ZEROED
        },
        driver: 0,
    };
    let names = devices().unwrap_or_default().into_iter();
    let with_its_name = |name: String| {
        let device = public(&name);
        (name, device)
    };
    names.map(with_its_name).collect()
});

/// The device behind a pointer of C's, which may be anything.
fn find(device: *const ibv_device) -> Result<&'static (String, Public), Errno> {
    if device.is_null() {
        return Err(Errno::INVAL);
    }
    DEVICES.iter().find(|(_, public)| public.face() == device).ok_or(Errno::NOENT)
}

/// The first device.
///
/// # Errors
/// ENODEV: there is none.
pub fn first() -> Result<*const ibv_device, Errno> {
    DEVICES.first().map(|(_, public)| public.face()).ok_or(Errno::NODEV)
}

/// Gives an opening of the device a place, and programs a pointer there.
///
/// # Errors
/// ENOMEM: no place.
fn publish(
    (context, events): (Context, Descriptor),
    device: *const ibv_device,
    functions: &'static Functions,
) -> Result<*mut ibv_context, Errno> {
    let public = ibv_context {
        device: device.cast_mut(),
        // There is no other descriptor, and programs duplicate this one to import the device.
        cmd_fd: events.number(),
        async_fd: events.number(),
        num_comp_vectors: COMP_VECTORS,
        mutex: libc::PTHREAD_MUTEX_INITIALIZER,
        abi_compat: VERBS_ABI_IS_EXTENDED,
        ..functions.context.context
    };
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let id = OPENED.fetch_add(1, Ordering::Relaxed);
    let opening = Opening { device: context, id, functions, events };
    let slot =
        OPENINGS.insert(opening, |_| verbs_context { context: public, ..functions.context })?;
    Ok(slot.face())
}

/// `ibv_get_device_list(3)`: this library's devices, and no others that the machine may have. ENOMEM.
pub fn get_device_list(num_devices: Out<'_, c_int>) -> Result<*mut *mut ibv_device, Errno> {
    let faces: Vec<_> = DEVICES.iter().map(|(_, public)| public.face().cast_mut()).collect();
    let list = to_c(&faces).ok_or(Errno::NOMEM)?;
    // The number is optional.
    let _ = num_devices.put(faces.len() as c_int);
    Ok(list)
}

/// `ibv_get_device_name(3)`.
pub fn get_device_name(device: *const ibv_device) -> Result<*mut c_char, Errno> {
    Ok(find(device)?.1.device.name.as_ptr().cast_mut())
}

/// `ibv_get_device_guid(3)`, in network order; 0 if there is no such device.
pub fn get_device_guid(device: *const ibv_device) -> u64 {
    find(device).map_or(0, |_| GUID)
}

/// `ibv_open_device(3)`. EINVAL, ENOENT: no device. EINVAL: the environment says what nobody understands. EIO:
/// its fabric can't be used. ENOMEM: no place in it. Or the error of a system call. The reason is a line on stderr, too, with
/// what to do. The first context takes five descriptors, each further one two.
pub fn open_device(
    device: *const ibv_device,
    functions: &'static Functions,
) -> Result<*mut ibv_context, Errno> {
    let (name, public) = find(device)?;
    let say = |why: fmt::Arguments<'_>| stderr::say(name, why);
    fork::watch().inspect_err(|why| say(format_args!("{why}")))?;
    let opened = OpenOptions::new().open(name);
    let context = opened.inspect_err(|why| say(format_args!("{}", Causes(why))))?;
    if let Some(other) = context.other_limits() {
        // It goes on by those, and fails later where they are too few: then this says why.
        say(format_args!("RXE_LOOP_LIMITS: {other}"));
    }
    let events = Descriptor::over(context.as_fd()).inspect_err(|why| say(format_args!("{why}")))?;
    publish((context, events), public.face(), functions)
        .inspect_err(|_| say(format_args!("too many contexts are open: close some")))
}

/// `ibv_close_device(3)`. -1 with EINVAL, ENOENT: it is not open. What was made through it works on.
pub fn close_device(context: *const ibv_context) -> Result<(), Errno> {
    OPENINGS.remove(context)
}

#[cfg(test)]
mod tests;
