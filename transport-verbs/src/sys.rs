//! The modules that call libibverbs and librdmacm: each owns one kind of object, keeps alive what the
//! object refers to, and destroys it. What is above them is safe code.

pub mod ah;
pub mod async_event;
pub mod channel;
pub mod cm;
pub mod context;
pub mod cq;
pub mod ext;
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
pub mod reports;
pub mod srq;

use std::ffi::c_int;
use std::io;

/// A call that returns 0 or an errno, as most of libibverbs do. (Those that set `errno` say so.)
fn check(returned: c_int) -> io::Result<()> {
    match returned {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno.wrapping_abs())),
    }
}
