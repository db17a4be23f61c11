//! What an errno of posting means: devices return the same few for many reasons.

use cq_verbs::post::{PostError, WrError};
use cq_verbs::setup::QpCaps;
use cq_verbs::wr::{Data, RecvWr, SendWr};
use rustix::io::Errno;

use crate::sys::post::{Failure, Why};

/// Whether a queue pair supports so much inline data. The device must not check it: drivers read 2 GiB as a negative
/// length, and copy.
#[inline]
pub const fn of_inline(length: usize, caps: &QpCaps) -> Result<(), WrError> {
    match length > caps.max_inline as usize {
        true => Err(WrError::InlineTooLong { max: caps.max_inline }),
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
    of(failure, list, |wr| of_send_limits(wr, caps, longest))
}

/// Whether a send exceeds these limits.
pub fn of_send_limits(wr: &SendWr<'_>, caps: &QpCaps, longest: Option<u64>) -> Result<(), WrError> {
    match (wr.data, longest) {
        (Data::Sges(sges), _) if sges.len() > caps.max_send_sge as usize => {
            Err(WrError::TooManySges { max: caps.max_send_sge })
        }
        (data, Some(max)) if data.len() > max => Err(WrError::TooLong { max }),
        _ => Ok(()),
    }
}

/// Why a queue whose receives have at most so many SGEs refused one.
#[cold]
pub fn of_recv(failure: &Failure, list: &[RecvWr<'_>], max_sge: u32) -> PostError {
    of(failure, list, |wr| of_recv_limits(wr, max_sge))
}

/// Whether a receive exceeds this limit.
pub const fn of_recv_limits(wr: &RecvWr<'_>, max_sge: u32) -> Result<(), WrError> {
    match wr.sges.len() > max_sge as usize {
        true => Err(WrError::TooManySges { max: max_sge }),
        false => Ok(()),
    }
}

/// Errors of the request itself are checked first: some devices return ENOMEM for them, too.
fn of<W>(failure: &Failure, list: &[W], limits: impl Fn(&W) -> Result<(), WrError>) -> PostError {
    let Failure { posted, why } = *failure;
    let why = match why {
        Why::Refused(why) => why,
        Why::Device(errno) => {
            let limit = list.get(posted).and_then(|wr| limits(wr).err());
            limit.unwrap_or_else(|| by_errno(errno))
        }
        // Not as a reason to post it again.
        Why::Unknown(errno) => WrError::Unknown(errno.wrapping_abs()),
    };
    PostError { posted, why }
}

/// By its number, since a device may return any (C3); some return it negative.
fn by_errno(errno: i32) -> WrError {
    const NOMEM: i32 = Errno::NOMEM.raw_os_error();
    const OPNOTSUPP: i32 = Errno::OPNOTSUPP.raw_os_error();
    const NOSYS: i32 = Errno::NOSYS.raw_os_error();
    match errno.wrapping_abs() {
        NOMEM => WrError::QueueFull,
        OPNOTSUPP | NOSYS => WrError::Unsupported,
        errno => WrError::Device(errno),
    }
}

#[cfg(test)]
mod tests;
