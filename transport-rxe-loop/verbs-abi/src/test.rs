//! What the tests share. They import all of it.

pub mod cancel;
pub mod census;
pub mod ends;
pub mod fault;
mod handles;
#[path = "../../tests/inside/name_space.rs"]
pub mod name_space;
pub mod strict;
pub mod traffic;

use std::mem::offset_of;
use std::process::{Command, Output};
use std::sync::Once;
pub use std::sync::mpsc;
pub use std::{ptr, thread};

pub use cq_core::wc::WcStatus as S;
pub use cq_verbs::setup::Access;

pub use self::census::*;
pub use self::ends::*;
pub use self::traffic::*;
pub use crate::errno::Errno;
pub use crate::exports::*;
pub use crate::sys::*;

/// Calls a function that an object of C's carries.
macro_rules! call {
    ($object:expr, $function:ident($($argument:expr),*)) => {{
        let object = $object;
        // SAFETY: an object that has this function, and arguments that are what they should be.
        unsafe { (*object).$function.unwrap()(object, $($argument),*) }
    }};
}
pub(crate) use call;

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

/// What is opened after this is in a fabric of this process' own.
pub fn in_own_fabric() {
    static FABRIC: Once = Once::new();
    FABRIC.call_once(|| {
        let name = format!("abi-{}", std::process::id());
        // SAFETY: nobody reads the environment but by Rust's library, which takes turns.
        unsafe { std::env::set_var("RXE_LOOP_FABRIC", name) };
    });
}

/// An opening of the device, in that fabric.
pub fn open() -> *mut ibv_context {
    in_own_fabric();
    // SAFETY: any pointer may be opened.
    let context = unsafe { ibv_open_device(device()) };
    assert!(!context.is_null());
    context
}

/// A protection domain of an opening of its own.
pub fn domain() -> *mut ibv_pd {
    // SAFETY: any pointer may be handed in.
    let pd = unsafe { ibv_alloc_pd(open()) };
    assert!(!pd.is_null());
    pd
}

/// The context that all identifiers of this process are bound to, as `rdma_get_devices` tells it.
pub fn shared_context() -> *mut ibv_context {
    in_own_fabric();
    let mut count = 0;
    // SAFETY: a buffer; a list is one pointer at least, and nobody uses it after this.
    unsafe {
        let list = rdma_get_devices(&raw mut count);
        assert_eq!(count, 1);
        let [context, end] = list.cast::<[*mut ibv_context; 2]>().read();
        assert!(!context.is_null() && end.is_null());
        rdma_free_devices(list);
        context
    }
}

/// The functions around a context, found as the header's inline functions find them.
pub fn extended(context: *mut ibv_context) -> &'static verbs_context {
    // SAFETY: contexts stay where they are, inside of this.
    unsafe {
        assert_eq!((*context).abi_compat, VERBS_ABI_IS_EXTENDED);
        let around = context.wrapping_byte_sub(offset_of!(verbs_context, context));
        let extended = around.cast::<verbs_context>().as_ref().unwrap();
        assert_eq!(extended.sz, size_of::<verbs_context>());
        extended
    }
}

/// Runs an ignored test of this binary alone in a process of its own, in this environment besides the usual one.
pub fn alone(test: &str, environment: &[(&str, &str)]) -> Output {
    alone_by(Command::new(std::env::current_exe().unwrap()), test, environment)
}

/// The same, by a command that executes this binary.
pub fn alone_by(mut command: Command, test: &str, environment: &[(&str, &str)]) -> Output {
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    let run = command.envs(environment.iter().copied()).output().unwrap();
    assert!(String::from_utf8_lossy(&run.stdout).contains("running 1 test"), "{test}");
    run
}
