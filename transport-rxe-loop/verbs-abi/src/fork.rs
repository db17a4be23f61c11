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

    use cq_core::setup::Access;

    use super::*;
    use crate::device::{ibv_close_device, ibv_open_device};
    use crate::errno::Errno;
    use crate::mr::{ibv_dereg_mr, ibv_reg_mr};
    use crate::mw::{alloc_mw, dealloc_mw};
    use crate::pd::{ibv_alloc_pd, ibv_dealloc_pd};
    use crate::sys::{IBV_MW_TYPE_2, ibv_context, ibv_mr, ibv_pd};
    use crate::test::{alone, device, open};

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

    fn register(pd: *mut ibv_pd) -> *mut ibv_mr {
        let memory = Box::leak(Box::new([0_u64; 8]));
        let access = Access::EVERY.bits().cast_signed();
        // SAFETY: the memory stays.
        unsafe { ibv_reg_mr(pd, ptr::from_mut(memory).cast(), 64, access) }
    }

    /// Whether everything works that base verbs do.
    fn works(context: *mut ibv_context) -> bool {
        // SAFETY: any pointer may be handed in.
        unsafe {
            let pd = ibv_alloc_pd(context);
            let (region, window) = (register(pd), alloc_mw(pd, IBV_MW_TYPE_2));
            [ibv_dereg_mr(region), dealloc_mw(window), ibv_dealloc_pd(pd)] == [0; 3]
        }
    }

    /// In the child: nothing can be made of what was inherited, destroying it does nothing, and the device can
    /// be opened anew.
    fn finds_no_use(context: *mut ibv_context, pd: *mut ibv_pd, region: *mut ibv_mr) -> bool {
        // SAFETY: any pointer may be handed in.
        unsafe {
            let is_refused = register(pd).is_null() && Errno::last() == Errno::NODEV;
            let is_refused = is_refused && alloc_mw(pd, IBV_MW_TYPE_2).is_null();
            let all = [ibv_dereg_mr(region), ibv_dealloc_pd(pd), ibv_close_device(context)];
            is_refused && all == [0; 3] && works(ibv_open_device(device()))
        }
    }

    /// Alone, so that no other test holds a lock while it forks.
    #[test]
    #[ignore = "forks: the next test runs it in a process of its own"]
    fn forks() {
        let context = open();
        // SAFETY: any pointer may be handed in.
        let pd = unsafe { ibv_alloc_pd(context) };
        let region = register(pd);
        // SAFETY: no other thread does anything, so the child may do what it likes; it ends without a word.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(20);
                libc::_exit(finds_no_use(context, pd, region).into());
            }
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            status
        };
        assert!(libc::WIFEXITED(status), "{status:#x}");
        assert_eq!(libc::WEXITSTATUS(status), 1);
        // SAFETY: any pointer may be handed in.
        unsafe { assert_eq!([ibv_dereg_mr(region), ibv_dealloc_pd(pd)], [0; 2]) };
        assert!(works(context));
    }

    #[test]
    fn x07_a_forked_child_is_refused_and_its_parent_goes_on() {
        let run = alone("fork::tests::forks", &[]);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    }
}
