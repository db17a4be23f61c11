//! Errors of requests, and how they are reported: the table of Q7.

use cq_core::wc::WcStatus;
use cq_verbs::async_event::AsyncEventType;

/// An error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A local SGE has a wrong key, is outside its region, or may not be written by a request that writes it.
    LocalMemory,
    /// An atomic whose local SGEs are not eight bytes in total, or a datagram that is longer than a packet.
    LocalLength,
    /// A window can't be bound so, or the key to invalidate is of no window of this queue pair.
    Window,
    /// The receive is too small for the message.
    ReceiveTooSmall,
    /// The receive may not write to the memory of its SGEs.
    ReceiveMemory,
    /// The remote key is wrong, or the range, or the region lacks the right.
    RemoteMemory,
    /// The same for a WRITE with immediate data, which consumes a receive.
    RemoteMemoryWithImm,
    /// The responder's queue pair does not allow the operation, or no READ and no atomic at all
    /// (`max_dest_rd_atomic` 0), or the address of an atomic is not a multiple of eight.
    RemoteRefusal,
    /// No receive was posted in time.
    NoReceive,
    /// The peer did not answer in time.
    NoAnswer,
}

/// How it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consequences {
    /// The status of the request. Its queue pair goes to ERR, or to SQE if it is of type UC or UD.
    pub requester: WcStatus,
    /// The status of the receive, if one was consumed.
    pub receive: Option<WcStatus>,
    /// Whether the responder's queue pair goes to ERR too.
    pub responder_breaks: bool,
    /// The asynchronous event of the responder's queue pair, if no completion reports the error.
    pub report: Option<AsyncEventType>,
}

impl Fault {
    /// Q7, line by line.
    pub const fn consequences(self) -> Consequences {
        use AsyncEventType as Report;
        use WcStatus as S;
        let (requester, receive, responder_breaks, report) = match self {
            Self::LocalMemory => (S::LOC_PROT_ERR, None, false, None),
            Self::LocalLength => (S::LOC_LEN_ERR, None, false, None),
            Self::Window => (S::MW_BIND_ERR, None, false, None),
            Self::ReceiveTooSmall => (S::REM_INV_REQ_ERR, Some(S::LOC_LEN_ERR), true, None),
            Self::ReceiveMemory => (S::REM_OP_ERR, Some(S::LOC_PROT_ERR), true, None),
            Self::RemoteMemory => (S::REM_ACCESS_ERR, None, true, Some(Report::QP_ACCESS_ERR)),
            Self::RemoteMemoryWithImm => (S::REM_ACCESS_ERR, Some(S::LOC_ACCESS_ERR), true, None),
            Self::RemoteRefusal => (S::REM_INV_REQ_ERR, None, true, Some(Report::QP_REQ_ERR)),
            Self::NoReceive => (S::RNR_RETRY_EXC_ERR, None, false, None),
            Self::NoAnswer => (S::RETRY_EXC_ERR, None, false, None),
        };
        Consequences { requester, receive, responder_breaks, report }
    }
}
