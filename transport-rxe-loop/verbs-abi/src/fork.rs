//! Forked processes. The device is the parent's alone, whatever was said before the fork: a child reaches nothing
//! through what it inherits, and opens the device anew. Memory needs no protection from a fork, since the device
//! looks at a process' own.

use std::ffi::{c_int, c_void};

use crate::sys::{IBV_FORK_UNNEEDED, ibv_fork_status};

/// `ibv_fork_init(3)`. Nothing has to be prepared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_fork_init() -> c_int {
    0
}

/// `ibv_is_fork_initialized(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_is_fork_initialized() -> ibv_fork_status {
    IBV_FORK_UNNEEDED
}

/// What `<infiniband/driver.h>` has to keep memory from a child. There is no need to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_dontfork_range(_base: *mut c_void, _size: usize) -> c_int {
    0
}

/// What undoes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_dofork_range(_base: *mut c_void, _size: usize) -> c_int {
    0
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn a_fork_needs_no_preparation() {
        // SAFETY: nothing is looked at.
        unsafe {
            assert_eq!(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
            assert_eq!(ibv_fork_init(), 0);
            assert_eq!(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
            assert_eq!(ibv_dontfork_range(ptr::null_mut(), 4096), 0);
            assert_eq!(ibv_dofork_range(ptr::null_mut(), 4096), 0);
        }
    }
}
