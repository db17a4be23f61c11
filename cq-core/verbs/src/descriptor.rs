//! A channel with a descriptor, for poll(2), epoll(7) and the event loops that are built on them, such as a `WaitSet`.
//! And [`block`], by which the channel of a transport sleeps on its descriptor. Feature `std`; Linux.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_verbs::descriptor;
//! use std::time::Duration;
//!
//! let (raiser, mut events) = descriptor::channel(1)?;
//! let (mut producer, consumer) = HeapCq::new(16)?.split_with(raiser);
//! let device = std::thread::spawn(move || {
//!     producer.push(&Wc::new(7, WcStatus::SUCCESS, 5)).unwrap();
//!     producer
//! });
//!
//! let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
//! assert_eq!(cq.wait_timeout(&mut batch, &mut events, Duration::from_secs(10))?.len(), 1);
//! # device.join().unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Several queues may share a channel, each with a raiser of its own ([`Receiver::raiser`]): each event names its queue
//! ([N8](cq_core::contract#n8)). A queue has at most one unread event, however often its event is raised ([N9](cq_core::contract#n9)). Each event costs the producer a system
//! call.

use alloc::sync::Arc;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Instant;

use cq_core::channel::thread;
use cq_core::of_target;
use cq_core::queue::{SplitSignal, Token};
use cq_core::transport::{Block, CqKey, EventError, Events, Signal, Woken};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{self, Errno};

use crate::setup::{self, DeviceError};

/// A channel with space for the events of `queues` queues, if there is memory for that, and the raiser of the first one.
/// It works for more; raising an event may allocate then.
///
/// # Errors
/// The system gave no descriptor.
pub fn channel(queues: usize) -> Result<(Raiser, Receiver), DeviceError> {
    let readable = Arc::new(Eventfd::new()?);
    let (raiser, events) = thread::channel(queues);
    Ok((Raiser { events: raiser, readable: Arc::clone(&readable) }, Receiver { events, readable }))
}

/// The side of one queue's producers. It can't be cloned: [`Receiver::raiser`] makes another queue's.
#[derive(Debug)]
pub struct Raiser {
    events: thread::Raiser,
    readable: Arc<Eventfd>,
}

impl Signal for Raiser {
    of_target! { self.events; key(&self) -> CqKey; }

    fn raise(&self) {
        self.events.raise_and(|| self.readable.set());
    }
}

impl SplitSignal for Raiser {
    fn copy(&self, token: &Token) -> Self {
        Self { events: self.events.copy(token), readable: Arc::clone(&self.readable) }
    }
}

/// The consumer's side. Its descriptor is readable exactly while there is an event ([N14](cq_core::contract#n14)).
#[derive(Debug)]
pub struct Receiver {
    events: thread::Receiver,
    readable: Arc<Eventfd>,
}

impl Receiver {
    /// The raiser of one more queue.
    #[must_use]
    pub fn raiser(&self) -> Raiser {
        Raiser { events: self.events.raiser(), readable: Arc::clone(&self.readable) }
    }
}

impl Events for Receiver {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.events.take_and(|| _ = self.readable.take()))
    }

    fn forget(&mut self, key: CqKey) {
        self.events.forget_and(key, || _ = self.readable.take());
    }

    of_target! { self.events; serves(&self, key: CqKey) -> bool; }
}

impl Block for Receiver {
    type Instant = Instant;

    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        block(self, deadline)
    }
}

impl AsFd for Receiver {
    of_target! { self.readable; as_fd(&self) -> BorrowedFd<'_>; }
}

impl AsRawFd for Receiver {
    of_target! { self.as_fd(); as_raw_fd(&self) -> RawFd; }
}

/// [`Block::block`] for a channel with a descriptor, by poll(2): waits until the descriptor is readable or has failed,
/// the deadline has passed, or this thread has handled a signal.
///
/// # Errors
/// The system failed, with this error number.
pub fn block(fd: impl AsFd, deadline: Option<Instant>) -> Result<Woken, EventError> {
    sleep(&mut [PollFd::new(&fd, PollFlags::IN)], deadline)
        .map_err(|errno| EventError::Device(errno.raw_os_error()))
}

/// The same for several descriptors.
pub(crate) fn sleep(fds: &mut [PollFd<'_>], deadline: Option<Instant>) -> Result<Woken, Errno> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    // A time that `Timespec` can't express is longer than anyone waits.
    let limit = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(fds, limit.as_ref()) {
        Ok(0) => Ok(Woken::DeadlinePassed),
        Ok(_) => Ok(Woken::Event),
        Err(Errno::INTR) => Ok(Woken::Interrupted),
        Err(errno) => Err(errno),
    }
}

/// A descriptor that is readable from when it is set until it is taken.
#[derive(Debug)]
pub(crate) struct Eventfd(OwnedFd);

impl Eventfd {
    pub(crate) fn new() -> Result<Self, DeviceError> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map(Self)
            .map_err(|errno| refused("create an eventfd", errno))
    }

    /// Makes it readable. Async-signal-safe.
    pub(crate) fn set(&self) {
        // It fails only if the counter is full, and then the descriptor is readable.
        let _ = io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Whether it was set since it was taken last.
    pub(crate) fn take(&self) -> bool {
        io::read(&self.0, &mut [0; 8]).is_ok()
    }
}

impl AsFd for Eventfd {
    of_target! { self.0; as_fd(&self) -> BorrowedFd<'_>; }
}

/// What the system refused.
pub(crate) fn refused(attempt: &'static str, errno: Errno) -> DeviceError {
    DeviceError::cannot(attempt, setup::Errno(errno.raw_os_error()))
}
