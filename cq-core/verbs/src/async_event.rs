//! Asynchronous events: what a device reports outside of completions, such as the overrun of a completion queue.
//!
//! ```
//! use cq_core::transport::CqKey;
//! use cq_verbs::async_event::{AsyncEvent, AsyncEventType, Element};
//!
//! let key = CqKey { index: 3, generation: 0 };
//! let event = AsyncEvent { event_type: AsyncEventType::CQ_ERR, element: Element::Cq(key) };
//! assert_eq!(event.to_string(), "CQ error: completion queue 3.0");
//! ```
//!
//! An event identifies its object by key or number, not by reference. The object exists when the event is taken: destroying
//! an object discards its unread events. Before the program handles the event, another thread may destroy the object, and a
//! device gives the number of a queue pair to a later one. So the thread that destroys queue pairs should also take the
//! events, or wait for the one that does.

use core::fmt;
use core::time::Duration;

use cq_core::transport::{CqKey, Deadline, EventError, WaitError, Woken};
use cq_core::{foreign_number, of_target};

foreign_number! {
    /// `enum ibv_event_type`: the type of an event. Any value is legal, because drivers add values
    /// ([C3](cq_core::contract#c3)). Displayed as `ibv_event_type_str(3)` has it.
    ///
    /// ```
    /// use cq_verbs::async_event::AsyncEventType;
    ///
    /// let event = AsyncEventType::SRQ_LIMIT_REACHED;
    /// assert_eq!((event.0, event.name()), (15, Some("SRQ_LIMIT_REACHED")));
    /// assert_eq!(event.to_string(), "SRQ limit reached");
    /// assert_eq!(AsyncEventType(99).to_string(), "unknown");
    /// ```
    AsyncEventType("ibv_event_type", "ibv_event_type_str"), "unknown" {
        /// A completion queue overran ([O2](cq_core::contract#o2)).
        CQ_ERR = 0, "CQ error";
        /// A queue pair went to ERR for a reason that no completion reports.
        QP_FATAL = 1, "local work queue catastrophic error";
        /// A queue pair refused an invalid request of its peer.
        QP_REQ_ERR = 2, "invalid request local work queue error";
        /// A queue pair refused a request of its peer for memory that the peer may not access.
        QP_ACCESS_ERR = 3, "local access violation work queue error";
        /// A queue pair received its first message before it was in RTS.
        COMM_EST = 4, "communication established";
        /// A send queue in SQD has finished all requests that it had started.
        SQ_DRAINED = 5, "send queue drained";
        /// A connection migrated to its alternate path.
        PATH_MIG = 6, "path migrated";
        /// A connection failed to migrate to its alternate path.
        PATH_MIG_ERR = 7, "path migration request error";
        /// The device failed permanently.
        DEVICE_FATAL = 8, "local catastrophic error";
        /// A port came up.
        PORT_ACTIVE = 9, "port active";
        /// A port went down.
        PORT_ERR = 10, "port error";
        /// A port's local identifier changed.
        LID_CHANGE = 11, "LID change";
        /// A port's table of partition keys changed.
        PKEY_CHANGE = 12, "P_Key change";
        /// The subnet manager of a port changed.
        SM_CHANGE = 13, "SM change";
        /// A shared receive queue failed.
        SRQ_ERR = 14, "SRQ catastrophic error";
        /// A shared receive queue fell below its limit.
        SRQ_LIMIT_REACHED = 15, "SRQ limit reached";
        /// A queue pair takes no more receives from its shared receive queue.
        QP_LAST_WQE_REACHED = 16, "last WQE reached";
        /// The subnet manager requests that all clients register again.
        CLIENT_REREGISTER = 17, "client reregistration";
        /// A port's GID table changed.
        GID_CHANGE = 18, "GID table change";
        /// A work queue failed.
        WQ_FATAL = 19, "WQ fatal";
    }
}

/// The object that an event affects.
///
/// See [`AsyncEvent`] for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Element {
    /// A completion queue.
    Cq(CqKey),
    /// A queue pair, by its number, which a later queue pair may have again.
    Qp(u32),
    /// A shared receive queue, by its number.
    Srq(u32),
    /// A port, by its number.
    Port(u8),
    /// The device.
    Device,
    /// An object that the transport did not create, as a queue that a C library made with the same context, or that is being
    /// destroyed. Nothing else is known of it.
    Unknown,
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cq(key) => write!(f, "completion queue {key}"),
            Self::Qp(number) => write!(f, "queue pair {number}"),
            Self::Srq(number) => write!(f, "shared receive queue {number}"),
            Self::Port(number) => write!(f, "port {number}"),
            Self::Device => f.write_str("the device"),
            Self::Unknown => f.write_str("an unknown object"),
        }
    }
}

/// An asynchronous event: `struct ibv_async_event`.
///
/// ```
/// use cq_verbs::async_event::{AsyncEvent, AsyncEventType, Element};
///
/// /// The number of a queue pair that takes no more receives of its shared receive queue.
/// fn drained(event: AsyncEvent) -> Option<u32> {
///     match (event.event_type, event.element) {
///         (AsyncEventType::QP_LAST_WQE_REACHED, Element::Qp(number)) => Some(number),
///         _ => None,
///     }
/// }
/// let event = AsyncEvent { event_type: AsyncEventType::QP_LAST_WQE_REACHED, element: Element::Qp(17) };
/// assert_eq!(drained(event), Some(17));
/// ```
#[doc(alias = "ibv_async_event")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AsyncEvent {
    /// The type of the event.
    pub event_type: AsyncEventType,
    /// The object that it affects.
    pub element: Element,
}

impl fmt::Display for AsyncEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.event_type, self.element)
    }
}

/// Reads asynchronous events from a device.
pub trait AsyncEvents {
    /// Takes and acknowledges one asynchronous event. Returns `None` if no event is pending.
    ///
    /// # Errors
    /// The device failed.
    #[doc(alias("ibv_get_async_event", "ibv_ack_async_event"))]
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError>;
}

/// Sleeps until a device reports an asynchronous event.
pub trait BlockAsync: AsyncEvents {
    /// The type of a deadline, as of [`Block`](cq_core::transport::Block).
    type Instant: Copy;

    /// Sleeps until an asynchronous event may be pending, the deadline has passed, or the sleep is interrupted; as
    /// [`Block::block`](cq_core::transport::Block::block).
    ///
    /// # Errors
    /// The device failed.
    fn block_async(&mut self, deadline: Option<Self::Instant>) -> Result<Woken, EventError>;

    /// Takes one asynchronous event, and waits for one if none is pending. Returns `None` once the deadline has passed;
    /// without a deadline it waits without limit.
    ///
    /// # Errors
    /// [`WaitError::Event`]: the device or the system failed. [`WaitError::Interrupted`]: the sleep was interrupted, and
    /// no event was pending.
    fn wait_async(
        &mut self,
        deadline: Option<Self::Instant>,
    ) -> Result<Option<AsyncEvent>, WaitError> {
        loop {
            if let Some(event) = self.take_async_event()? {
                return Ok(Some(event));
            }
            let woken = self.block_async(deadline)?;
            if woken == Woken::Event {
                continue;
            }
            return match self.take_async_event()? {
                None if woken == Woken::Interrupted => Err(WaitError::Interrupted),
                event => Ok(event),
            };
        }
    }

    /// [`wait_async`](Self::wait_async) for at most this time.
    ///
    /// # Errors
    /// The same as [`wait_async`](Self::wait_async).
    fn wait_async_timeout(&mut self, timeout: Duration) -> Result<Option<AsyncEvent>, WaitError>
    where
        Self::Instant: Deadline,
    {
        self.wait_async(Deadline::after(timeout))
    }
}

impl<T: AsyncEvents + ?Sized> AsyncEvents for &mut T {
    of_target! { (**self); take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError>; }
}

impl<T: BlockAsync + ?Sized> BlockAsync for &mut T {
    type Instant = T::Instant;

    of_target! { (**self);
        block_async(&mut self, deadline: Option<T::Instant>) -> Result<Woken, EventError>;
    }
}
