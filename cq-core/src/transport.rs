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
//!     type Entry = Wc;
//!
//!     fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
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
//! | [`Capacity`] | a queue that knows how many completions it holds | [O1](crate::contract#o1) |
//! | [`Arm`] | a transport that can raise events | [N1](crate::contract#n1)–[N4](crate::contract#n4), [N6](crate::contract#n6), [N11](crate::contract#n11) |
//! | [`Events`], [`Block`] | the consumer side of a channel | [N5](crate::contract#n5), [N7](crate::contract#n7)–[N10](crate::contract#n10) |
//! | [`RegisterWaker`] | a channel that a task waits for | [N5](crate::contract#n5), [N6](crate::contract#n6) |
//! | [`Signal`] | the producer side of a channel | [N9](crate::contract#n9) |
//!
//! [`prelude`](crate::prelude) has an example of calls, and [`cq`](crate::cq) a function that is generic over them.

mod cq_key;
mod error;
mod lent;

use core::iter::FusedIterator;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use bytemuck::Pod;

pub use self::cq_key::CqKey;
pub use self::error::{ArmError, EventError, PollError, WaitError};
#[cfg(doc)]
use crate::wc::Wc;

/// Polls a completion queue.
pub trait PollCq {
    /// What the queue holds: [`Wc`], or any other plain old data. Only the engine's own queues need an
    /// [`Entry`](crate::entry::Entry).
    type Entry: Pod;

    /// Moves up to `out.len()` completions, oldest first, to the start of `out` and returns their number. Never blocks.
    /// Entries past that number are unchanged ([P1](crate::contract#p1)–[P6](crate::contract#p6)).
    ///
    /// # Errors
    /// The queue itself failed. An empty queue is `Ok(0)`.
    fn poll_into(&mut self, out: &mut [Self::Entry]) -> Result<usize, PollError>;

    /// Takes up to `buffer.len()` completions, oldest first, and returns them. Never blocks. The slice is empty if the queue
    /// is. Entries of `buffer` past the returned ones are unchanged ([P4](crate::contract#p4)).
    ///
    /// # Errors
    /// The queue itself failed, or the transport claimed more completions than the buffer holds
    /// ([P7](crate::contract#p7)).
    // A comparison around the transport's poll. Not inlined, an empty poll of an observed queue takes 6 ns more.
    #[inline(always)]
    fn poll<'r>(&mut self, buffer: &'r mut [Self::Entry]) -> Result<&'r [Self::Entry], PollError> {
        let count = poll_checked(self, buffer)?;
        Ok(&buffer[..count])
    }

    /// Takes the oldest completion. `None` if the queue is empty.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    #[inline]
    fn pop(&mut self) -> Result<Option<Self::Entry>, PollError> {
        let mut one = [bytemuck::zeroed()];
        Ok(self.poll(&mut one)?.first().copied())
    }

    /// Takes completions one at a time, until the queue is empty or has failed.
    #[inline]
    fn drain(&mut self) -> Drain<'_, Self>
    where
        Self: Sized,
    {
        Drain(Some(self))
    }

    /// Whether more than `count` completions wait to be polled, for statistics. `false` if there are
    /// not, and if the transport can't report it, as libibverbs can't.
    ///
    /// # Staleness
    /// There may be more by now.
    #[inline]
    fn holds_more_than(&self, count: usize) -> bool {
        let _ = count;
        false
    }
}

/// Takes completions from a queue: see [`PollCq::drain`]. What it has not yielded stays in the queue.
#[derive(Debug)]
pub struct Drain<'q, T>(Option<&'q mut T>);

impl<T: PollCq> Iterator for Drain<'_, T> {
    type Item = Result<T::Entry, PollError>;

    fn next(&mut self) -> Option<Self::Item> {
        let popped = self.0.as_mut()?.pop();
        if !matches!(popped, Ok(Some(_))) {
            self.0 = None;
        }
        popped.transpose()
    }
}

impl<T: PollCq> FusedIterator for Drain<'_, T> {}

/// A queue that knows its capacity.
pub trait Capacity {
    /// How many completions the queue holds ([O1](crate::contract#o1)).
    fn capacity(&self) -> usize;
}

/// Polls. A count above the length of `out` is an error ([P7](crate::contract#p7)).
#[inline(always)]
pub(crate) fn poll_checked<T: PollCq + ?Sized>(
    queue: &mut T,
    out: &mut [T::Entry],
) -> Result<usize, PollError> {
    let asked = out.len();
    match queue.poll_into(out)? {
        returned if returned > asked => Err(PollError::Misbehaved { asked, returned }),
        returned => Ok(returned),
    }
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
    #[doc(alias = "ibv_req_notify_cq")]
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError>;

    /// Returns the key that this queue's events carry.
    fn key(&self) -> CqKey;

    /// Tells the queue that `count` of its events were taken, for statistics: a transport need not
    /// know. [`CompletionQueue`](crate::cq::CompletionQueue) calls it for the events that its waits take. A program that
    /// takes them itself, for an event loop of its own, calls it before it polls.
    #[inline]
    fn took_events(&mut self, count: u32) {
        let _ = count;
    }
}

/// Reads events from a completion channel.
pub trait Events {
    /// Takes and acknowledges one event ([N7](crate::contract#n7)). Returns `None` if no event is pending.
    ///
    /// # Errors
    /// The channel failed.
    #[doc(alias("ibv_get_cq_event", "ibv_ack_cq_events"))]
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError>;

    /// Discards the unread events of a queue that is destroyed ([N7](crate::contract#n7)). By default there is nothing to
    /// do: a device does so when the queue is destroyed. A channel of software queues does not learn of that.
    #[inline]
    fn forget(&mut self, key: CqKey) {
        let _ = key;
    }

    /// Whether the events of the queue `key` come through this channel. A wait for a queue on a channel of another one
    /// fails, instead of never being woken. `true`, the default, also if the channel does not know.
    #[inline]
    fn serves(&self, key: CqKey) -> bool {
        let _ = key;
        true
    }
}

/// Sleeps on a completion channel.
pub trait Block: Events {
    /// The type of a deadline: `std::time::Instant`, or a tick count in firmware. If it is a [`Deadline`], waits have a
    /// timeout, too. A channel without a clock uses [`Infallible`](core::convert::Infallible), so that no deadline can be
    /// given.
    type Instant: Copy;

    /// Sleeps until an event may be pending, the deadline has passed, or the sleep is interrupted. Returns at once if
    /// an event is pending, even if the deadline has passed. `None` means no deadline. The deadline is absolute, so
    /// spurious wake-ups do not extend a caller's loop.
    ///
    /// # Errors
    /// The channel failed.
    fn block(&mut self, deadline: Option<Self::Instant>) -> Result<Woken, EventError>;
}

/// An instant of a clock that can be read, for waits with a timeout. With the feature `std`, `std::time::Instant` is one.
///
/// ```
/// use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// use core::time::Duration;
/// use cq_core::transport::Deadline;
///
/// static TICKS: AtomicU32 = AtomicU32::new(500); // counted by a timer's interrupt, each millisecond
///
/// #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
/// struct Tick(u32);
///
/// impl Deadline for Tick {
///     fn after(timeout: Duration) -> Option<Self> {
///         // Rounded up, and a tick more: the present one has begun.
///         let ticks = u32::try_from(timeout.as_nanos().div_ceil(1_000_000)).ok()?.checked_add(1)?;
///         TICKS.load(Relaxed).checked_add(ticks).map(Self)
///     }
/// }
///
/// assert_eq!(Tick::after(Duration::from_secs(1)), Some(Tick(1501)));
/// assert_eq!(Tick::after(Duration::MAX), None);
/// ```
pub trait Deadline: Copy {
    /// The instant that is `timeout` from now. `None`, which is no deadline, if that is later than the clock expresses.
    fn after(timeout: Duration) -> Option<Self>;
}

#[cfg(feature = "std")]
impl Deadline for std::time::Instant {
    fn after(timeout: Duration) -> Option<Self> {
        Self::now().checked_add(timeout)
    }
}

/// Waits on a channel as a task.
pub trait RegisterWaker: Events {
    /// The next event wakes this task, and no other. A registration is good for one wake-up, so register before each
    /// check for events: an event that is raised after the registration must wake the task.
    fn register(&mut self, task: &Waker);

    /// Whether the task may look for completions. `Pending` if it has used up its cooperative budget: then it is polled
    /// again after other tasks. For a channel of a runtime that has such a budget, as tokio; otherwise always `Ready`.
    #[inline]
    fn poll_budget(&mut self, task: &mut Context<'_>) -> Poll<()> {
        let _ = task;
        Poll::Ready(())
    }

    /// The task has found completions, which uses its cooperative budget.
    #[inline]
    fn spend_budget(&mut self, task: &mut Context<'_>) {
        let _ = task;
    }
}

/// The producer side of a channel, for one queue: an eventfd, a waker, `SEV`.
#[diagnostic::on_unimplemented(
    note = "a raiser is moved into its queue, not lent; a closure is a `Signal` with the key of its queue: `(key, || …)`"
)]
pub trait Signal {
    /// The key that the queue's events carry. It is always the same, and no other queue of the channel has it.
    fn key(&self) -> CqKey;

    /// Raises an event of the queue. Never waits for the reader, no matter how many events are unread
    /// ([N9](crate::contract#n9)).
    ///
    /// Raising an event must synchronize with taking it: the thread that takes the event must see all writes made
    /// before the call. A system call, a lock, or a Release/Acquire pair ensures this. It must also hold for both
    /// events when one is merged with a pending one: set a flag by a swap, even if it is already set. Do not use a
    /// plain store, and do not skip the swap after a load.
    fn raise(&self);
}

/// A key and a closure: `(key, || …)`.
///
/// ```
/// use cq_core::queue::HeapCq;
/// use cq_core::transport::{Arm, CqKey, Notify};
/// use cq_core::wc::{Wc, WcStatus};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// let events = Arc::new(AtomicU32::new(0));
/// let raised = Arc::clone(&events);
/// let signal = (CqKey { index: 0, generation: 1 }, move || _ = raised.fetch_add(1, Relaxed));
/// let (mut producer, mut consumer) = HeapCq::new(16)?.split_with(signal);
/// let _ = consumer.arm(Notify::Next)?;
/// producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
/// assert_eq!(events.load(Relaxed), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<F: Fn()> Signal for (CqKey, F) {
    fn key(&self) -> CqKey {
        self.0
    }

    fn raise(&self) {
        self.1();
    }
}

/// The completions that an armed queue raises its event for.
///
/// ```
/// use cq_core::channel::flag::Flag;
/// use cq_core::queue::SoftCq;
/// use cq_core::transport::{Arm, Armed, Notify};
///
/// let (mut flag, mut storage) = (Flag::new(), SoftCq::<4>::new());
/// let (raiser, _receiver) = flag.split();
/// let (_producer, mut consumer) = storage.split_with(raiser);
/// assert_eq!(consumer.arm(Notify::Solicited), Ok(Armed::Armed));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Notify {
    /// The next receive of a message sent SOLICITED, or the next failed completion ([N3](crate::contract#n3)); of other
    /// entries, the next [urgent](crate::entry::Entry::is_urgent) one. A queue that fills up with others raises no event: a
    /// producer that waits for a free slot waits until the consumer polls for another reason.
    Solicited,
    /// The next completion of any kind.
    Next,
}

/// Whether completions may have been added before [`Arm::arm`] took effect. Such completions raise no event
/// ([N2](crate::contract#n2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a completion may have been added before the arm took effect: poll again unless this is `Armed`"]
pub enum Armed {
    /// The queue was empty. It is safe to sleep.
    Armed,
    /// The queue may hold completions. Poll again before sleeping.
    MayHaveMissed,
}

/// Why a sleep on a channel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[must_use = "a wake-up does not mean that an event is pending"]
pub enum Woken {
    /// An event may be pending. [`Events::take_event`] returns it, if there is one ([N5](crate::contract#n5)).
    Event,
    /// The deadline has passed.
    DeadlinePassed,
    /// The thread handled a signal (EINTR), or a stop was requested. An event may be pending as well.
    Interrupted,
}
