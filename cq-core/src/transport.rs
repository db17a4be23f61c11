//! The seams: what a transport implements so that [`CompletionQueue`](crate::cq::CompletionQueue) and the
//! code of an application run on it. Each is small, and a transport has only those that it can.
//!
//! A device on bare metal needs [`PollCq`] alone:
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
//! /// A DMA engine that carries out a ring of descriptors in their order, and writes to each how it ended.
//! struct DmaEngine<'m> {
//!     states: &'m [AtomicU32; 4], // in memory that the engine writes, on a real one
//!     next: usize,
//! }
//!
//! impl PollCq for DmaEngine<'_> {
//!     fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
//!         let mut count = 0;
//!         while count < out.len() {
//!             let state = &self.states[self.next % 4];
//!             // Before whatever the engine has moved is read.
//!             let status = match state.load(Acquire) {
//!                 DONE => WcStatus::SUCCESS,
//!                 FAILED => WcStatus::GENERAL_ERR,
//!                 _ => break,
//!             };
//!             // The descriptor can be used again.
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
//! // The engine is through with three of them, the second of which has failed.
//! [DONE, FAILED, DONE].iter().zip(&states).for_each(|(&how, state)| state.store(how, Release));
//! let mut room = [Wc::default(); 8];
//! let ended: Vec<_> = cq.poll(&mut room)?.iter().map(|wc| (wc.wr_id(), wc.status())).collect();
//! assert_eq!(ended, [(0, WcStatus::SUCCESS), (1, WcStatus::GENERAL_ERR), (2, WcStatus::SUCCESS)]);
//! assert!(cq.poll(&mut room)?.is_empty());
//! # Ok::<(), PollError>(())
//! ```
//!
//! # Which to implement
//!
//! | seam | who has it | rules |
//! |---|---|---|
//! | [`PollCq`] | every transport | P1–P7, O3 |
//! | [`Arm`] | one that can raise an event | N1–N4, N11 |
//! | [`Events`], [`Block`] | a channel that events are read from, and slept on | N5, N7–N10 |
//! | [`Signal`] | the producer's side of a channel | N9 |
//! | [`Post`] | a queue pair | Q3, Q4 |
//! | [`AsyncEvents`] | a device that reports what no completion tells | O2, Q7 |

mod lent;

use core::fmt;

use crate::async_event::AsyncEvent;
use crate::wc::Wc;
use crate::wr::{RecvWr, SendWr};

/// Takes completions.
pub trait PollCq {
    /// Moves up to `out.len()` completions, oldest first, to the start of `out`; says how many. Never
    /// blocks. Entries past the count stay as they are (P1–P6).
    ///
    /// # Errors
    /// The queue itself failed; an empty queue is `Ok(0)`.
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError>;
}

/// Asks for an event.
pub trait Arm: PollCq {
    /// Asks for one event at the next completion. Arming again never weakens what is armed (N4).
    ///
    /// # Errors
    /// The queue has no channel, or the device refused.
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError>;

    /// The name that this queue's events carry.
    fn key(&self) -> CqKey;
}

/// Reads a channel.
pub trait Events {
    /// Takes one event, which acknowledges it (N7); `None` if there is none now.
    ///
    /// # Errors
    /// The channel failed.
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError>;
}

/// Sleeps on a channel.
pub trait Block: Events {
    /// What deadlines are read from: `std::time::Instant`, or a tick counter of firmware. A channel without a
    /// clock has [`Infallible`](core::convert::Infallible), of which there is no deadline.
    type Instant: Copy;

    /// Sleeps until there may be an event, the deadline has passed, or something else than the channel ends
    /// the sleep. A channel that has an event does not sleep, whatever the deadline; `None` is none. A deadline
    /// stays the same however often a caller's loop is woken for nothing, so that the loop ends in time.
    ///
    /// # Errors
    /// The channel failed.
    fn block(&mut self, deadline: Option<Self::Instant>) -> Result<Woken, EventError>;
}

/// The producer's side of a channel: an eventfd, a waker, `SEV`.
pub trait Signal {
    /// Raises an event for `cq`. Never blocks, however many events nobody has read (N9). Whoever takes the
    /// event must see what was done before it was raised, as a system call, a lock or a pair of Release and
    /// Acquire makes sure. Where an event is merged with one that waits, this holds for both: set a flag by
    /// a swap, also where it is set already, not by a store, and never leave it out after a load.
    fn raise(&self, cq: CqKey);
}

/// A closure is a channel: `|key| …`.
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
    /// Stops at the first request that is refused, and says which; those before it are posted (Q4).
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError>;

    /// Posts a list of requests to the receive queue, in order.
    ///
    /// # Errors
    /// Stops at the first request that is refused, and says which; those before it are posted (Q4).
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError>;
}

/// Reads what a device reports on its own account.
pub trait AsyncEvents {
    /// Takes one asynchronous event, which acknowledges it; `None` if there is none now.
    ///
    /// # Errors
    /// The device failed.
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError>;
}

/// What an armed queue raises its event for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notify {
    /// The next receive that was sent SOLICITED, or the next failure (N3).
    Solicited,
    /// The next completion of any kind.
    Next,
}

/// What [`Arm::arm`] knows about completions that came before the arm took effect. They raise nothing
/// (N2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a completion may have come before the arm took effect: poll again unless this says `Armed`"]
pub enum Armed {
    /// There was none: it is safe to sleep.
    Armed,
    /// There may be one: poll again before sleeping.
    MayHaveMissed,
}

/// Why a sleep on a channel has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a sleep that has ended says nothing of an event yet"]
pub enum Woken {
    /// There may be an event: it is for [`Events::take_event`] to say (N5).
    Event,
    /// The deadline has passed.
    DeadlinePassed,
    /// Somebody wants the thread to do something else: a signal was handled (EINTR), or a stop was asked for.
    /// There may be an event all the same.
    Interrupted,
}

/// Names a completion queue in events: an index, and a generation that tells it from earlier queues with
/// the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CqKey {
    /// Which place of the device's table.
    pub index: u32,
    /// Which queue in that place.
    pub generation: u32,
}

impl fmt::Display for CqKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// Declares error texts beside the variants that they explain, and which of them have a cause.
macro_rules! sentences {
    ($name:ident { $($pattern:pat => ($($text:tt)+);)+ } $($cause:pat => $source:expr;)*) => {
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match *self {
                    $($pattern => write!(f, $($text)+),)+
                }
            }
        }

        impl core::error::Error for $name {
            fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                #[allow(unreachable_patterns)]
                match self {
                    $($cause => Some($source),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use sentences;

/// Why a completion queue can't be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PollError {
    /// More completions came than the queue can hold. What was stored has been handed out; from now on
    /// every poll says this (O3).
    Overrun {
        /// How many completions were lost so far, at least; `None` where the device does not tell.
        dropped: Option<u32>,
    },
    /// The queue was given up: its producers can't push any more. What was stored has been handed out.
    Failed,
    /// The queue's producers are gone, and everything that they stored has been handed out.
    Closed,
    /// The device failed with this code.
    Device(i32),
    /// The transport claimed more completions than it was asked for (P7).
    Misbehaved {
        /// How many there was room for.
        asked: usize,
        /// How many it claimed.
        returned: usize,
    },
}

sentences!(PollError {
    Self::Overrun { dropped: Some(count) } => ("the completion queue overran and dropped {count} completions: make it as large as everything outstanding on its queue pairs");
    Self::Overrun { dropped: None } => ("the completion queue overran: make it as large as everything outstanding on its queue pairs");
    Self::Failed => ("the completion queue was given up and gets no more completions: destroy it");
    Self::Closed => ("the completion queue's producers are gone, and everything they stored has been polled");
    Self::Device(code) => ("the device failed to poll the completion queue (code {code})");
    Self::Misbehaved { asked, returned } => ("the transport returned {returned} completions where there was room for {asked}");
});

/// Why a completion queue can't be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArmError {
    /// The queue was made without a completion channel, so no event could ever arrive (N11).
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
#[non_exhaustive]
pub enum EventError {
    /// The device, or the system under it, failed with this code.
    Device(i32),
}

sentences!(EventError {
    Self::Device(code) => ("the completion channel failed (code {code})");
});

/// Which request of a list was refused, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostError {
    /// How many requests were posted; the next one is the refused one.
    pub posted: usize,
    /// Why it was refused.
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
#[non_exhaustive]
pub enum Refused {
    /// Every slot of the queue is taken; poll completions to get some back (Q5).
    QueueFull,
    /// The request has more pieces than the queue pair allows.
    TooManySges {
        /// How many it allows.
        max: u32,
    },
    /// The request has more inline bytes than the queue pair allows.
    InlineTooLong {
        /// How many it allows.
        max: u32,
    },
    /// The message is longer than the device allows.
    TooLong {
        /// How many bytes it allows.
        max: u64,
    },
    /// The queue pair is in a state that takes no such request (Q3).
    WrongState,
    /// The device has no such operation.
    Unsupported,
    /// READ and atomics write their data, so it can't be inline.
    InlineResult,
    /// READ and atomics are turned off for the queue pair: `max_rd_atomic` is 0 (Q7).
    NoReadAtomic,
    /// A FLUSH that names no placement, or one that is none.
    BadPlacement,
    /// It is a datagram, and nothing says where it goes.
    NoDestination,
    /// The queue pair takes its receives from a shared receive queue (Q9).
    SharedReceives,
    /// The device refused with this code.
    Device(i32),
}

sentences!(Refused {
    Self::QueueFull => ("the queue is full: poll completions that cover its requests, or create it deeper");
    Self::TooManySges { max } => ("it has more scatter/gather elements than the queue pair's {max}");
    Self::InlineTooLong { max } => ("it has more inline bytes than the queue pair's {max}");
    Self::TooLong { max } => ("the message is longer than the device's {max} bytes");
    Self::WrongState => ("the queue pair's state takes no such request: move it to RTS to send, to INIT to receive");
    Self::Unsupported => ("the device does not have this operation");
    Self::InlineResult => ("READ and atomics write their data, so it can't be inline: give pieces of registered memory");
    Self::NoReadAtomic => ("the queue pair's max_rd_atomic is 0, which allows no READ and no atomic: set it when going to RTS");
    Self::BadPlacement => ("a FLUSH needs a placement: GLOBAL, PERSISTENT or both");
    Self::NoDestination => ("a datagram needs a destination: an address handle of the queue pair's own protection domain, a queue pair's number and its queue key");
    Self::SharedReceives => ("the queue pair takes its receives from a shared receive queue: post them there");
    Self::Device(code) => ("the device refused it (code {code})");
});
