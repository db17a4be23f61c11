//! What an errno of posting means: devices return the same few for many reasons.

use cq_core::setup::QpCaps;
use cq_core::transport::{PostError, Refused};
use cq_core::wr::{Data, RecvWr, SendWr};
use rustix::io::Errno;

use crate::sys::post::{Failure, Why};

/// Whether a queue pair supports so much inline data. The device must not check it: drivers read 2 GiB as a negative
/// length, and copy.
#[inline]
pub const fn of_inline(length: usize, caps: &QpCaps) -> Result<(), Refused> {
    match length > caps.max_inline as usize {
        true => Err(Refused::InlineTooLong { max: caps.max_inline }),
        false => Ok(()),
    }
}

/// Why a queue pair with these capacities refused a send. `longest` is the maximum message size of its port, if known.
#[cold]
pub fn of_send(
    failure: &Failure,
    list: &[SendWr<'_>],
    caps: &QpCaps,
    longest: Option<u64>,
) -> PostError {
    of(failure, list, |wr| match wr.data {
        Data::Sges(sges) if sges.len() > caps.max_send_sge as usize => {
            Some(Refused::TooManySges { max: caps.max_send_sge })
        }
        data => longest.filter(|&max| data.len() > max).map(|max| Refused::TooLong { max }),
    })
}

/// Why a queue whose receives have at most so many SGEs refused one.
#[cold]
pub fn of_recv(failure: &Failure, list: &[RecvWr<'_>], max_sge: u32) -> PostError {
    of(failure, list, |wr| {
        (wr.sges.len() > max_sge as usize).then_some(Refused::TooManySges { max: max_sge })
    })
}

/// Errors of the request itself are checked first: some devices return ENOMEM for them, too.
fn of<W>(failure: &Failure, list: &[W], limits: impl Fn(&W) -> Option<Refused>) -> PostError {
    let Failure { posted, why } = *failure;
    let why = match why {
        Why::Refused(why) => why,
        Why::Device(errno) => list.get(posted).and_then(limits).unwrap_or_else(|| by_errno(errno)),
    };
    PostError { posted, why }
}

/// By its number, since a device may return any (C3); some return it negative.
fn by_errno(errno: i32) -> Refused {
    const NOMEM: i32 = Errno::NOMEM.raw_os_error();
    const OPNOTSUPP: i32 = Errno::OPNOTSUPP.raw_os_error();
    const NOSYS: i32 = Errno::NOSYS.raw_os_error();
    match errno.wrapping_abs() {
        NOMEM => Refused::QueueFull,
        OPNOTSUPP | NOSYS => Refused::Unsupported,
        errno => Refused::Device(errno),
    }
}

#[cfg(test)]
mod tests;
