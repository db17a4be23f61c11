//! The list of devices, and an open device.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use rdma_sys::{
    ___ibv_query_port, ibv_close_device, ibv_context, ibv_device, ibv_free_device_list,
    ibv_get_device_list, ibv_get_device_name, ibv_gid_entry, ibv_open_device, ibv_port_attr,
};
use rustix::io::Errno;

use super::ext::{self, operation};
use super::object::Object;
use super::registry::Named;
use super::{check, check_errno, check_null};
use cq_verbs::setup::DeviceAttr;

unsafe extern "C" {
    // What the inline `ibv_query_gid_table` calls; `rdma-sys` leaves it out.
    fn _ibv_query_gid_table(
        context: *mut ibv_context,
        entries: *mut ibv_gid_entry,
        max_entries: usize,
        flags: u32,
        entry_size: usize,
    ) -> isize;
}

/// The devices of the system.
pub struct DeviceList {
    /// Null where there are none.
    list: *mut *mut ibv_device,
    count: usize,
}

impl DeviceList {
    /// Asks for them.
    pub fn new() -> io::Result<Self> {
        let mut count: c_int = 0;
        // SAFETY: `count` outlives the call.
        let list = unsafe { ibv_get_device_list(&mut count) };
        match check_null(list) {
            Ok(_) => Ok(Self { list, count: usize::try_from(count).unwrap_or(0) }),
            // What a kernel without RDMA says.
            Err(error) if error.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => {
                Ok(Self { list, count: 0 })
            }
            Err(error) => Err(error),
        }
    }

    /// Their names, in the system's order.
    pub fn names(&self) -> Vec<String> {
        // SAFETY: the list has `count` devices, which live as long as it does.
        (0..self.count).map(|nth| unsafe { name(self.device(nth)) }).collect()
    }

    /// Opens the device at this place of [`names`](Self::names).
    pub fn open(&self, nth: usize) -> io::Result<Context> {
        // SAFETY: the device lives as long as the list; the context keeps it alive after that, and everything made of the
        // context keeps that alive.
        let raw = unsafe {
            Object::new(ibv_open_device(self.device(nth)), ibv_close_device, check_errno)?
        };
        // SAFETY: it is open, and what describes it stays as it is.
        let (name, attributes) =
            unsafe { (name((*raw.raw()).device), ext::attributes(raw.raw())?) };
        let context = Context { raw, name, attributes, named: Named::default() };
        rustix::io::ioctl_fionbio(&context, true)?;
        Ok(context)
    }

    fn device(&self, nth: usize) -> *mut ibv_device {
        assert!(nth < self.count, "it is in the list");
        // SAFETY: the list has `count` entries.
        unsafe { *self.list.add(nth) }
    }
}

/// # Safety
/// The device is in a list that is alive, or open.
unsafe fn name(device: *mut ibv_device) -> String {
    // SAFETY: the device is alive (the caller's word); its name is a string within it.
    unsafe { CStr::from_ptr(ibv_get_device_name(device)) }.to_string_lossy().into_owned()
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        if !self.list.is_null() {
            // SAFETY: it came from `ibv_get_device_list` and is freed once.
            unsafe { ibv_free_device_list(self.list) };
        }
    }
}

/// An open device; closed when the last user is gone.
#[derive(Debug)]
pub struct Context {
    raw: Object<ibv_context>,
    name: String,
    /// What the device can do at most.
    pub attributes: DeviceAttr,
    /// The queues that its events may name.
    pub named: Named,
}

impl Context {
    /// As libibverbs names it.
    pub const fn raw(&self) -> *mut ibv_context {
        self.raw.raw()
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `ibv_query_port(3)`.
    pub fn query_port(&self, number: u8) -> io::Result<ibv_port_attr> {
        // SAFETY: all zero is a value of each field, all of them numbers.
        let mut attr: ibv_port_attr = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the context is open; there is space for so many bytes.
        check(unsafe {
            match operation!(self.raw(), query_port) {
                Some(query) => query(self.raw(), number, &mut attr, size_of_val(&attr)),
                None => ___ibv_query_port(self.raw(), number, &mut attr),
            }
        })?;
        Ok(attr)
    }

    /// `ibv_query_gid_table(3)`: the entries of all ports that are in use, at most `max_entries`.
    pub fn query_gids(&self, max_entries: usize) -> io::Result<Vec<ibv_gid_entry>> {
        let mut entries = Vec::new();
        // How long its tables are is the device's word.
        entries.try_reserve_exact(max_entries).map_err(|_| Errno::NOMEM)?;
        let (at, size) = (entries.as_mut_ptr(), size_of::<ibv_gid_entry>());
        // SAFETY: the context is open; the vector has space for so many entries of this size.
        let count = unsafe { _ibv_query_gid_table(self.raw(), at, entries.capacity(), 0, size) };
        let count = usize::try_from(count).map_err(|_| {
            io::Error::from_raw_os_error(c_int::try_from(count.wrapping_neg()).unwrap_or(0))
        })?;
        // SAFETY: so many were written, and no more than there is space for.
        unsafe { entries.set_len(count.min(max_entries)) };
        Ok(entries)
    }
}

/// Where asynchronous events are read. It does not block.
impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the context is.
        unsafe { BorrowedFd::borrow_raw((*self.raw()).async_fd) }
    }
}
