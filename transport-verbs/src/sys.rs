//! The modules that call libibverbs and librdmacm: each owns one kind of object, keeps alive what the
//! object refers to, and destroys it. What is above them is safe code.

pub mod ah;
pub mod async_event;
pub mod channel;
pub mod cm;
pub mod context;
pub mod cq;
pub mod ext;
mod fork;
mod layout;
pub mod memory;
pub mod mr;
mod object;
pub mod pd;
pub mod poll;
pub mod polling;
pub mod port;
pub mod post;
pub mod qp;
mod registry;
pub mod reports;
pub mod srq;

use std::ffi::c_int;
use std::io;
use std::ptr::NonNull;

/// Of a call that returns 0 or an errno, as most of libibverbs: it need not set `errno`. Some drivers return the number
/// negative.
fn check(returned: c_int) -> io::Result<()> {
    match returned {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno.wrapping_abs())),
    }
}

/// Of a call that returns 0, or -1 and sets `errno`: those of librdmacm, reading events, and closing a device. Releases
/// before 2012 returned the negative errno in places.
fn check_errno(returned: c_int) -> io::Result<()> {
    match returned {
        -1 => Err(io::Error::last_os_error()),
        returned => check(returned),
    }
}

/// Of a call that returns a pointer, or null and sets `errno`: those that create something.
fn check_null<T>(returned: *mut T) -> io::Result<NonNull<T>> {
    NonNull::new(returned).ok_or_else(io::Error::last_os_error)
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;

    #[test]
    fn each_call_fails_with_the_number_that_its_convention_has() {
        let number = |checked: io::Result<()>| checked.err().map(|error| error.raw_os_error());
        // SAFETY: the thread's own.
        unsafe { *libc::__errno_location() = 5 };
        assert_eq!([check(0), check_errno(0)].map(number), [None; 2]);
        assert_eq!([16, -16].map(|returned| number(check(returned))), [Some(Some(16)); 2]);
        assert_eq!(
            [-1, -16].map(|returned| number(check_errno(returned))),
            [Some(Some(5)), Some(Some(16))]
        );
        assert_eq!(number(check_null::<u8>(std::ptr::null_mut()).map(drop)), Some(Some(5)));
        assert_eq!(check_null(std::ptr::dangling_mut::<u8>()).unwrap(), NonNull::dangling());
    }
}
