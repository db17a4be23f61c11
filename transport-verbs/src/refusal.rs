//! What an errno of a post means: devices give the same few for many reasons.

use cq_core::transport::{PostError, Refused};
use cq_core::wr::{Data, RecvWr, SendWr};
use rustix::io::Errno;

use crate::qp::QpCaps;
use crate::sys::post::{Failure, Why};

/// Why a send was refused, by a queue pair that takes so much.
#[cold]
pub fn of_send(failure: &Failure, list: &[SendWr<'_>], caps: &QpCaps) -> PostError {
    of(failure, list, |wr| match wr.data {
        Data::Sges(sges) => too_many(sges.len(), caps.max_send_sge),
        Data::Inline(bytes) => (bytes.len() > caps.max_inline as usize)
            .then_some(Refused::InlineTooLong { max: caps.max_inline }),
    })
}

/// Why a receive was refused, by a queue whose receives have at most so many pieces.
#[cold]
pub fn of_recv(failure: &Failure, list: &[RecvWr<'_>], max_sge: u32) -> PostError {
    of(failure, list, |wr| too_many(wr.sges.len(), max_sge))
}

fn too_many(count: usize, max: u32) -> Option<Refused> {
    (count > max as usize).then_some(Refused::TooManySges { max })
}

/// What is wrong with the request itself comes first: some devices say ENOMEM there, too.
fn of<W>(failure: &Failure, list: &[W], limits: impl Fn(&W) -> Option<Refused>) -> PostError {
    let Failure { posted, why } = *failure;
    let why = match why {
        Why::Refused(why) => why,
        Why::Device(errno) => list.get(posted).and_then(limits).unwrap_or_else(|| by_errno(errno)),
    };
    PostError { posted, why }
}

fn by_errno(errno: i32) -> Refused {
    match Errno::from_raw_os_error(errno.abs()) {
        Errno::NOMEM => Refused::QueueFull,
        Errno::OPNOTSUPP | Errno::NOSYS => Refused::Unsupported,
        errno => Refused::Device(errno.raw_os_error()),
    }
}
