//! Asynchronous events: what a device reports that no completion tells, such as the overrun of a
//! completion queue.
//!
//! ```
//! use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
//! use cq_core::transport::CqKey;
//!
//! let key = CqKey { index: 3, generation: 0 };
//! let event = AsyncEvent { event_type: AsyncEventType::CQ_ERR, element: Element::Cq(key) };
//! assert_eq!(event.to_string(), "CQ error: completion queue 3.0");
//! ```
//!
//! Events name what they are about by its key or number, never by a reference: it may be gone by the time
//! the event is read.

use core::fmt;

use crate::foreign_number;
use crate::transport::CqKey;

foreign_number! {
    /// `enum ibv_event_type`: what happened. Any number is legal: drivers add values (C3).
    AsyncEventType {
        /// A completion queue overran (O2).
        CQ_ERR = 0, "CQ error";
        /// A queue pair went to ERR for a reason that no completion tells.
        QP_FATAL = 1, "local work queue catastrophic error";
        /// A queue pair refused a request of its peer as invalid.
        QP_REQ_ERR = 2, "invalid request local work queue error";
        /// A queue pair refused a request of its peer that named memory which it may not use.
        QP_ACCESS_ERR = 3, "local access violation work queue error";
        /// The first message came in before the queue pair was in RTS.
        COMM_EST = 4, "communication established";
        /// A send queue in SQD has carried out everything that it had begun.
        SQ_DRAINED = 5, "send queue drained";
        /// The connection moved to its other path.
        PATH_MIG = 6, "path migrated";
        /// The connection could not move to its other path.
        PATH_MIG_ERR = 7, "path migration request error";
        /// The device failed for good.
        DEVICE_FATAL = 8, "local catastrophic error";
        /// A port came up.
        PORT_ACTIVE = 9, "port active";
        /// A port went down.
        PORT_ERR = 10, "port error";
        /// A port's local identifier changed.
        LID_CHANGE = 11, "LID change";
        /// A port's table of partition keys changed.
        PKEY_CHANGE = 12, "P_Key change";
        /// A port has another subnet manager.
        SM_CHANGE = 13, "SM change";
        /// A shared receive queue failed.
        SRQ_ERR = 14, "SRQ catastrophic error";
        /// A shared receive queue fell below its limit.
        SRQ_LIMIT_REACHED = 15, "SRQ limit reached";
        /// A queue pair will take no further receive from its shared receive queue.
        QP_LAST_WQE_REACHED = 16, "last WQE reached";
        /// The subnet manager asks every client to register again.
        CLIENT_REREGISTER = 17, "client reregistration";
        /// A port's table of global identifiers changed.
        GID_CHANGE = 18, "GID table change";
        /// A work queue failed.
        WQ_FATAL = 19, "WQ fatal";
    }
}

impl fmt::Display for AsyncEventType {
    /// The text of `ibv_event_type_str(3)`; "unknown" for a number without one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text().unwrap_or("unknown"))
    }
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Element {
    /// A completion queue.
    Cq(CqKey),
    /// A queue pair, by its number.
    Qp(u32),
    /// A shared receive queue, by its number.
    Srq(u32),
    /// A port, by its number.
    Port(u8),
    /// The device.
    Device,
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cq(key) => write!(f, "completion queue {key}"),
            Self::Qp(number) => write!(f, "queue pair {number}"),
            Self::Srq(number) => write!(f, "shared receive queue {number}"),
            Self::Port(number) => write!(f, "port {number}"),
            Self::Device => f.write_str("the device"),
        }
    }
}

/// What a device reports: `struct ibv_async_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsyncEvent {
    /// What happened.
    pub event_type: AsyncEventType,
    /// To what.
    pub element: Element,
}

impl fmt::Display for AsyncEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.event_type, self.element)
    }
}
