//! What the tests share.

use std::ptr;
use std::sync::Once;

use crate::device::{ibv_free_device_list, ibv_get_device_list, ibv_open_device};
use crate::sys::{ibv_context, ibv_device};

/// The device.
pub fn device() -> *mut ibv_device {
    // SAFETY: a list is one pointer at least; nobody uses it after this.
    unsafe {
        let list = ibv_get_device_list(ptr::null_mut());
        let device = list.read();
        ibv_free_device_list(list);
        device
    }
}

/// An opening of the device, in a fabric of this process' own.
pub fn open() -> *mut ibv_context {
    static FABRIC: Once = Once::new();
    FABRIC.call_once(|| {
        let name = format!("abi-{}", std::process::id());
        // SAFETY: nobody reads the environment but by Rust's library, which takes turns.
        unsafe { std::env::set_var("RXE_LOOP_FABRIC", name) };
    });
    // SAFETY: any pointer may be opened.
    let context = unsafe { ibv_open_device(device()) };
    assert!(!context.is_null());
    context
}
