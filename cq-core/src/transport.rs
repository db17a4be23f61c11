//! The traits that a transport implements to support [`CompletionQueue`](crate::cq::CompletionQueue) and application
//! code. A transport implements only the traits that its device supports.
//!
//! A device on bare metal needs only [`PollCq`]:
//!
//! ```
//! use core::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::transport::{PollCq, PollError};
//! use cq_core::wc::{Wc, WcOpcode, WcStatus};
//!
//! const DONE: u32 = 1;
//! const FAILED: u32 = 2;
//!
//! /// A DMA engine that executes a ring of descriptors in order and writes a status to each.
//! struct DmaEngine<'m> {
//!     states: &'m [AtomicU32; 4], // on real hardware, memory that the engine writes
//!     next: usize,
//! }
//!
//! impl PollCq for DmaEngine<'_> {
//!     fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
//!         let mut count = 0;
//!         while count < out.len() {
//!             let state = &self.states[self.next % 4];
//!             // Acquire: the caller reads the moved data after this load.
//!             let status = match state.load(Acquire) {
//!                 DONE => WcStatus::SUCCESS,
//!                 FAILED => WcStatus::GENERAL_ERR,
//!                 _ => break,
//!             };
//!             // Free the descriptor.
//!             state.store(0, Relaxed);
//!             out[count] = Wc::new(self.next as u64, status, 0).with_opcode(WcOpcode::RDMA_WRITE);
//!             (count, self.next) = (count + 1, self.next.wrapping_add(1));
//!         }
//!         Ok(count)
//!     }
//! }
//!
//! let states = [const { AtomicU32::new(0) }; 4];
//! let mut cq = CompletionQueue::new(DmaEngine { states: &states, next: 0 });
//! // The engine has finished three descriptors. The second one failed.
//! [DONE, FAILED, DONE].iter().zip(&states).for_each(|(&status, state)| state.store(status, Release));
//! let mut buffer = [Wc::default(); 8];
//! let done: Vec<_> = cq.poll(&mut buffer)?.iter().map(|wc| (wc.wr_id(), wc.status())).collect();
//! assert_eq!(done, [(0, WcStatus::SUCCESS), (1, WcStatus::GENERAL_ERR), (2, WcStatus::SUCCESS)]);
//! assert!(cq.poll(&mut buffer)?.is_empty());
//! # Ok::<(), PollError>(())
//! ```
//!
//! # Which to implement
//!
//! | trait | implemented by | rules |
//! |---|---|---|
//! | [`PollCq`] | every transport | [P1](crate::contract#p1)–[P7](crate::contract#p7), [O3](crate::contract#o3) |
//! | [`Arm`] | a transport that can raise events | [N1](crate::contract#n1)–[N4](crate::contract#n4), [N11](crate::contract#n11) |
//! | [`Events`], [`Block`] | the consumer side of a channel | [N5](crate::contract#n5), [N7](crate::contract#n7)–[N10](crate::contract#n10) |
//! | [`AsyncChannel`] | a channel that a task waits for | [N5](crate::contract#n5), [N6](crate::contract#n6) |
//! | [`Signal`] | the producer side of a channel | [N9](crate::contract#n9) |
//! | [`Post`] | a queue pair | [Q3](crate::contract#q3), [Q4](crate::contract#q4) |
//! | [`AsyncEvents`], [`BlockAsync`] | a device that reports asynchronous events | [O2](crate::contract#o2), [Q7](crate::contract#q7) |

mod lent;

use core::fmt;
use core::task::Waker;

use crate::async_event::AsyncEvent;
pub use crate::cq_key::CqKey;
use crate::sentences::{from, sentences};
use crate::wc::Wc;
use crate::wr::{RecvWr, SendWr};

/// Polls a completion queue.
pub trait PollCq {
    /// Moves up to `out.len()` completions, oldest first, to the start of `out` and returns their number. Never blocks.
    /// Entries past that number are unchanged ([P1](crate::contract#p1)–[P6](crate::contract#p6)).
    ///
    /// # Errors
    /// The queue itself failed. An empty queue is `Ok(0)`.
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError>;
}

/// Arms a completion queue for an event.
#[diagnostic::on_unimplemented(
    note = "a queue is armed for events of its channel: make it with `split_with` instead of `split`"
)]
pub trait Arm: PollCq {
    /// Requests one event for the next completion that matches `on`. Arming again never weakens an earlier arm
    /// ([N4](crate::contract#n4)).
    ///
    /// In software, arming races with the device. Both sides need a `fence(SeqCst)`: here between the store of the arm
    /// and the load of the next completion, in the device between publishing a completion and the load of the arm. The
    /// device disarms before it raises the event. At least one side then sees the other's store
    /// ([N6](crate::contract#n6)).
    ///
    /// # Errors
    /// The queue has no channel, or the device refused.
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError>;

    /// Returns the key that this queue's events carry.
    fn key(&self) -> CqKey;
}

/// Reads events from a completion channel.
pub trait Events {
    /// Takes and acknowledges one event ([N7](crate::contract#n7)). Returns `None` if no event is pending.
    ///
    /// # Errors
    /// The channel failed.
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError>;
}

/// Sleeps on a completion channel.
pub trait Block: Events {
    /// The type of a deadline: `std::time::Instant`, or a tick count in firmware. A channel without a clock uses
    /// [`Infallible`](core::convert::Infallible), so that no deadline can be given.
    type Instant: Copy;

    /// Sleeps until an event may be pending, the deadline has passed, or the sleep is interrupted. Returns at once if
    /// an event is pending, even if the deadline has passed. `None` means no deadline. The deadline is absolute, so
    /// spurious wake-ups do not extend a caller's loop.
    ///
    /// # Errors
    /// The channel failed.
    fn block(&mut self, deadline: Option<Self::Instant>) -> Result<Woken, EventError>;
}

/// Waits on a channel as a task.
pub trait AsyncChannel: Events {
    /// The next event wakes this task, and no other. A registration is good for one wake-up, so register before each
    /// check for events: an event that is raised after the registration must wake the task.
    fn register(&mut self, task: &Waker);
}

/// The producer side of a channel: an eventfd, a waker, `SEV`.
pub trait Signal {
    /// Raises an event for `cq`. Never waits for the reader, no matter how many events are unread
    /// ([N9](crate::contract#n9)).
    ///
    /// Raising an event must synchronize with taking it: the thread that takes the event must see all writes made
    /// before the call. A system call, a lock, or a Release/Acquire pair ensures this. It must also hold for both
    /// events when one is merged with a pending one: set a flag by a swap, even if it is already set. Do not use a
    /// plain store, and do not skip the swap after a load.
    fn raise(&self, cq: CqKey);
}

/// A closure can serve as a channel: `|key| …`.
impl<F: Fn(CqKey)> Signal for F {
    fn raise(&self, cq: CqKey) {
        self(cq);
    }
}

/// Posts work requests.
pub trait Post {
    /// Posts a list of requests to the send queue, in order.
    ///
    /// # Errors
    /// A request was refused. The requests before it are posted; it and those after it are not
    /// ([Q4](crate::contract#q4)).
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError>;

    /// Posts a list of requests to the receive queue, in order.
    ///
    /// # Errors
    /// A request was refused. The requests before it are posted; it and those after it are not
    /// ([Q4](crate::contract#q4)).
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError>;
}

/// Reads asynchronous events from a device.
pub trait AsyncEvents {
    /// Takes and acknowledges one asynchronous event. Returns `None` if no event is pending.
    ///
    /// # Errors
    /// The device failed.
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError>;
}

/// Sleeps until a device reports an asynchronous event.
pub trait BlockAsync: AsyncEvents {
    /// The type of a deadline, as of [`Block`].
    type Instant: Copy;

    /// Sleeps until an asynchronous event may be pending, the deadline has passed, or the sleep is interrupted; as
    /// [`Block::block`].
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
}

/// The completions that an armed queue raises its event for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Notify {
    /// The next receive of a message sent SOLICITED, or the next failed completion ([N3](crate::contract#n3)).
    Solicited,
    /// The next completion of any kind.
    Next,
}

/// Whether completions may have been added before [`Arm::arm`] took effect. Such completions raise no event
/// ([N2](crate::contract#n2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[must_use = "a completion may have been added before the arm took effect: poll again unless this is `Armed`"]
pub enum Armed {
    /// The queue was empty. It is safe to sleep.
    Armed,
    /// The queue may hold completions. Poll again before sleeping.
    MayHaveMissed,
}

/// Why a sleep on a channel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
#[must_use = "a wake-up does not mean that an event is pending"]
pub enum Woken {
    /// An event may be pending. [`Events::take_event`] tells whether one is ([N5](crate::contract#n5)).
    Event,
    /// The deadline has passed.
    DeadlinePassed,
    /// The thread handled a signal (EINTR), or a stop was requested. An event may be pending as well.
    Interrupted,
}

/// Why a completion queue can't be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum PollError {
    /// The queue overran. All stored completions have been returned; every later poll fails with this error
    /// ([O3](crate::contract#o3)).
    Overrun {
        /// Lower bound on the completions dropped so far; `None` if the device does not report it.
        dropped: Option<u32>,
    },
    /// The consumer has failed the queue. All stored completions have been polled.
    Failed,
    /// The queue's producers are gone. All stored completions have been returned.
    Closed,
    /// The device failed with this code.
    Device(i32),
    /// The transport claimed more completions than the buffer holds ([P7](crate::contract#p7)).
    Misbehaved {
        /// Length of the buffer.
        asked: usize,
        /// Number of completions that the transport claimed.
        returned: usize,
    },
}

sentences!(PollError {
    Self::Overrun { dropped: Some(count) } => ("the completion queue overran and dropped {count} completions: make it large enough for all requests outstanding on its queue pairs");
    Self::Overrun { dropped: None } => ("the completion queue overran: make it large enough for all requests outstanding on its queue pairs");
    Self::Failed => ("the completion queue has failed and gets no more completions: destroy it");
    Self::Closed => ("the completion queue's producers are gone, and everything they stored has been polled");
    Self::Device(code) => ("the device failed to poll the completion queue (code {code})");
    Self::Misbehaved { asked, returned } => ("the transport returned {returned} completions for a buffer of {asked}");
});

/// Why a completion queue can't be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ArmError {
    /// The queue was created without a completion channel, so it can't raise events ([N11](crate::contract#n11)).
    NoChannel,
    /// The device refused with this code.
    Device(i32),
}

sentences!(ArmError {
    Self::NoChannel => ("the completion queue has no completion channel: create it with one to arm it");
    Self::Device(code) => ("the device failed to arm the completion queue (code {code})");
});

/// Why a channel can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum EventError {
    /// The device or the operating system failed with this code.
    Device(i32),
}

sentences!(EventError {
    Self::Device(code) => ("the completion channel failed (code {code})");
});

/// Why waiting failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// The queue failed.
    Poll(PollError),
    /// The queue can't be armed.
    Arm(ArmError),
    /// The channel, or the device, failed.
    Event(EventError),
    /// The channel is shared, and the event that was taken belongs to this other queue. Pass it on to that queue.
    OtherQueue(CqKey),
    /// A signal handler or a stop request interrupted the sleep, and nothing had come.
    Interrupted,
}

from! {
    PollError => WaitError::Poll;
    ArmError => WaitError::Arm;
    EventError => WaitError::Event;
}

sentences!(WaitError {
    Self::Poll(_) => ("the completion queue can't be polled");
    Self::Arm(_) => ("the completion queue can't be armed");
    Self::Event(_) => ("the channel can't be read or slept on");
    Self::OtherQueue(key) => ("the channel also serves completion queue {key}, whose event was taken: wait on a channel of this queue alone");
    Self::Interrupted => ("the wait was interrupted, by a signal or because a stop was asked for");
}
    Self::Poll(error) => error;
    Self::Arm(error) => error;
    Self::Event(error) => error;
);

/// Which request of a list was refused, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PostError {
    /// Number of requests posted before the refused one, which is also its index in the list.
    pub posted: usize,
    /// The reason.
    pub why: Refused,
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request {} of the list was refused", self.posted)
    }
}

impl core::error::Error for PostError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.why)
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Refused {
    /// The queue is full. Polling completions frees slots ([Q5](crate::contract#q5)).
    QueueFull,
    /// The request has more scatter/gather elements (SGEs) than the queue pair allows.
    TooManySges {
        /// The queue pair's limit.
        max: u32,
    },
    /// The request has more inline bytes than the queue pair allows.
    InlineTooLong {
        /// The queue pair's limit.
        max: u32,
    },
    /// The message is longer than the device allows.
    TooLong {
        /// The device's limit, in bytes.
        max: u64,
    },
    /// The queue pair's state does not accept such a request ([Q3](crate::contract#q3)).
    WrongState,
    /// The device does not support the operation.
    Unsupported,
    /// A READ or an atomic with inline data. These operations write to their SGEs.
    InlineResult,
    /// A READ or an atomic on a queue pair whose `max_rd_atomic` is 0 ([Q7](crate::contract#q7)).
    NoReadAtomic,
    /// A FLUSH with no placement or an invalid one.
    BadPlacement,
    /// A datagram without a destination in the queue pair's protection domain.
    NoDestination,
    /// The queue pair takes its receives from a shared receive queue ([Q9](crate::contract#q9)).
    SharedReceives,
    /// The device refused with this code.
    Device(i32),
}

sentences!(Refused {
    Self::QueueFull => ("the queue is full: poll completions that cover its requests, or create it with a larger max_send_wr or max_recv_wr");
    Self::TooManySges { max } => ("it has more scatter/gather elements than the queue pair's {max}");
    Self::InlineTooLong { max } => ("it has more inline bytes than the queue pair's {max}");
    Self::TooLong { max } => ("the message is longer than the device's {max} bytes");
    Self::WrongState => ("the queue pair's state takes no such request: move it to RTS to send, to INIT to receive");
    Self::Unsupported => ("the device does not have this operation");
    Self::InlineResult => ("READ and atomics write their data, so it can't be inline: give scatter/gather elements of registered memory");
    Self::NoReadAtomic => ("the queue pair's max_rd_atomic is 0, which allows no READ and no atomic: set it when going to RTS");
    Self::BadPlacement => ("a FLUSH needs a placement: GLOBAL, PERSISTENT or both");
    Self::NoDestination => ("a datagram needs a destination: an address handle of the queue pair's own protection domain, a queue pair's number and its queue key");
    Self::SharedReceives => ("the queue pair takes its receives from a shared receive queue: post them there");
    Self::Device(code) => ("the device refused it (code {code})");
});
