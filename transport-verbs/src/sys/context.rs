//! An open device.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;

use rdma_sys::{
    ibv_close_device, ibv_context, ibv_device, ibv_free_device_list, ibv_get_device_list,
    ibv_get_device_name, ibv_open_device,
};

/// The devices of the system.
pub struct DeviceList {
    list: NonNull<*mut ibv_device>,
    count: usize,
}

impl DeviceList {
    /// Asks for them.
    pub fn new() -> io::Result<Self> {
        let mut count: c_int = 0;
        // SAFETY: `count` outlives the call.
        let list = unsafe { ibv_get_device_list(&mut count) };
        let list = NonNull::new(list).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { list, count: usize::try_from(count).unwrap_or(0) })
    }

    /// Their names, in the system's order.
    pub fn names(&self) -> Vec<String> {
        (0..self.count).map(|nth| self.name(nth)).collect()
    }

    fn name(&self, nth: usize) -> String {
        // SAFETY: the list has `count` devices, which live as long as it does, and a device's name is a
        // string within the device.
        let name = unsafe { CStr::from_ptr(ibv_get_device_name(self.device(nth))) };
        name.to_string_lossy().into_owned()
    }

    /// Opens the device at this place of [`names`](Self::names).
    pub fn open(&self, nth: usize) -> io::Result<Context> {
        // SAFETY: the device lives as long as the list; the context keeps it alive after that.
        let raw = unsafe { ibv_open_device(self.device(nth)) };
        NonNull::new(raw).map(Context).ok_or_else(io::Error::last_os_error)
    }

    fn device(&self, nth: usize) -> *mut ibv_device {
        assert!(nth < self.count, "it is in the list");
        // SAFETY: the list has `count` entries.
        unsafe { *self.list.as_ptr().add(nth) }
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: it came from `ibv_get_device_list` and is freed once.
        unsafe { ibv_free_device_list(self.list.as_ptr()) };
    }
}

/// An open device; closed when the last user is gone.
#[derive(Debug)]
pub struct Context(NonNull<ibv_context>);

// SAFETY: libibverbs may be called from any thread, with the same context from several at once.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// As libibverbs names it.
    pub const fn raw(&self) -> *mut ibv_context {
        self.0.as_ptr()
    }
}

impl AsFd for Context {
    /// Where asynchronous events are read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the context is.
        unsafe { BorrowedFd::borrow_raw((*self.raw()).async_fd) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: everything made of it keeps it alive, so nothing refers to it any more.
        unsafe { ibv_close_device(self.raw()) };
    }
}
