//! What goes wrong while a request is carried out, and how it is told: the table of Q7.

use cq_core::async_event::AsyncEventType;
use cq_core::wc::WcStatus;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A local piece has a key that is wrong, lies outside its region, or may not be written where the
    /// request writes it.
    LocalMemory,
    /// An atomic whose local pieces are not eight bytes in all, or a datagram that is longer than a packet.
    LocalLength,
    /// A window can't be bound so, or the key that is to be invalidated is none of this queue pair's.
    Window,
    /// The receive is too small for the message.
    ReceiveTooSmall,
    /// The receive names memory that it may not write.
    ReceiveMemory,
    /// The remote key is wrong, or the range, or the region lacks the right.
    RemoteMemory,
    /// The same for a WRITE with immediate data, which took a receive.
    RemoteMemoryWithImm,
    /// The responder's queue pair does not allow the operation, or no READ and no atomic at all
    /// (`max_dest_rd_atomic` 0), or the address of an atomic is no multiple of eight.
    RemoteRefusal,
    /// No receive was posted in time.
    NoReceive,
    /// The peer did not answer in time.
    NoAnswer,
}

/// How it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consequences {
    /// The status of the request. Its queue pair goes to ERR; an unreliable one, which nobody answers, to
    /// SQE.
    pub requester: WcStatus,
    /// The status of the receive that was taken, where one was.
    pub receive: Option<WcStatus>,
    /// Whether the responder's queue pair goes to ERR too.
    pub responder_breaks: bool,
    /// What is reported about the responder's queue pair, where no completion tells.
    pub report: Option<AsyncEventType>,
}

/// What becomes of a message that nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The request fails.
    Fails(Fault),
    /// It succeeds, and the receive that it took fails.
    BreaksReceiver(WcStatus),
    /// It succeeds, and nothing came of it.
    Dropped,
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

    /// How it is told where nobody answers (UC, UD): what is wrong with the requester's own side is told
    /// there, a bad receive at the receiver, and everything else nowhere.
    pub const fn unanswered(self) -> Unanswered {
        match self {
            Self::LocalMemory | Self::LocalLength | Self::Window => Unanswered::Fails(self),
            Self::ReceiveTooSmall => Unanswered::BreaksReceiver(WcStatus::LOC_LEN_ERR),
            Self::ReceiveMemory => Unanswered::BreaksReceiver(WcStatus::LOC_PROT_ERR),
            _ => Unanswered::Dropped,
        }
    }
}
