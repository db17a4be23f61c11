//! A sender and a receiver in one thread, for measuring a transport: messages go from one to the other, and
//! each completion is looked at, whether it is the next one and whether it is good.
//!
//! ```
//! use bench::delivery::Delivery;
//! use bench::transport::loopback::Loopback;
//!
//! let mut delivery = Delivery::new(&Loopback::open()?)?;
//! delivery.fill(3)?;
//! delivery.receiver.collect(3)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::{Duration, Instant};

use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::transport::{Block, EventError, Events, Notify, PollError, Post, PostError, Woken};
use cq_core::wc::{Failed, Wc};
use cq_core::wr::{RecvWr, SendWr, Sge};

use crate::transport::{End, Memory, Needs, SetUpError, Transport};

/// How many messages can be under way at once.
pub const DEPTH: u32 = 1024;

/// How many completions can be taken at once.
pub const ROOM: usize = 64;

/// Bytes in a message.
const MESSAGE: u32 = 64;

/// How long anything may take. A device that is emulated takes long.
const LIMIT: Duration = Duration::from_secs(20);

/// Why a message did not arrive as it should.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// A request was not posted.
    #[error(transparent)]
    Post(#[from] PostError),
    /// A completion queue can't be polled.
    #[error(transparent)]
    Poll(#[from] PollError),
    /// A completion queue can't be polled or armed.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// A channel can't be read.
    #[error(transparent)]
    Event(#[from] EventError),
    /// A request failed.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// A completion came that was not the next one.
    #[error("request {came} completed where {due} was due")]
    OutOfOrder {
        /// The request that completed.
        came: u64,
        /// The one that was to be the next.
        due: u64,
    },
    /// There were more or fewer completions than there had to be.
    #[error("{came} completions were there instead of {due}")]
    Count {
        /// How many there were.
        came: usize,
        /// How many there had to be.
        due: usize,
    },
    /// Nothing came in time.
    #[error("nothing completed for {} seconds", LIMIT.as_secs())]
    Late,
}

/// The two ends.
pub struct Delivery<T: Transport> {
    /// The end that sends.
    pub sender: Side<T>,
    /// The end that receives.
    pub receiver: Side<T>,
}

impl<T: Transport> Delivery<T> {
    /// Connects two ends.
    ///
    /// # Errors
    /// What the device said.
    pub fn new(transport: &T) -> Result<Self, SetUpError> {
        let bytes = MESSAGE as usize;
        let needs =
            Needs { sends: DEPTH, receives: DEPTH, bytes, events: true, ..Needs::default() };
        let [sender, receiver] = transport.pair(&[needs; 2])?.map(Side::new);
        Ok(Self { sender, receiver })
    }

    /// Gives the receiver's queue `count` completions, and takes those that the sender gets. Nothing may be
    /// under way, and the receiver's queue has to be empty.
    ///
    /// # Errors
    /// A message did not arrive.
    pub fn fill(&mut self, count: u32) -> Result<(), DeliveryError> {
        self.receiver.receive(count)?;
        self.receiver.arm(Notify::Solicited)?;
        for nth in 1..=count {
            // The others come before this one (C10), whose event says that all are there.
            self.sender.send(nth == count)?;
        }
        self.receiver.event()?;
        self.sender.collect(count)
    }
}

/// One end.
pub struct Side<T: Transport> {
    /// Where its requests complete.
    pub queue: CompletionQueue<T::Queue>,
    channel: T::Channel,
    pair: T::Pair,
    message: Sge,
    /// Registered as long as it is here.
    _memory: T::Memory,
    room: [Wc; ROOM],
    posted: u64,
    completed: u64,
}

impl<T: Transport> Side<T> {
    fn new(end: End<T>) -> Self {
        Self {
            queue: CompletionQueue::new(end.queue),
            channel: end.channel.expect("it was asked for"),
            pair: end.pair,
            message: end.memory.sge(0, MESSAGE),
            _memory: end.memory,
            room: [Wc::default(); ROOM],
            posted: 0,
            completed: 0,
        }
    }

    /// Posts a message.
    ///
    /// # Errors
    /// The device refused.
    #[inline]
    pub fn send(&mut self, solicited: bool) -> Result<(), DeliveryError> {
        let pieces = [self.message];
        let send = SendWr::send(self.posted, &pieces);
        self.pair.post_send(&[if solicited { send.solicited() } else { send }])?;
        self.posted += 1;
        Ok(())
    }

    /// Posts room for `count` messages.
    ///
    /// # Errors
    /// The device refused.
    pub fn receive(&mut self, count: u32) -> Result<(), DeliveryError> {
        for _ in 0..count {
            self.pair.post_recv(&[RecvWr::new(self.posted, &[self.message])])?;
            self.posted += 1;
        }
        Ok(())
    }

    /// Arms the queue, which has to be empty.
    ///
    /// # Errors
    /// It is not, or the device refused.
    #[inline]
    pub fn arm(&mut self, on: Notify) -> Result<(), DeliveryError> {
        match self.queue.poll_or_arm(&mut self.room, on)?.len() {
            0 => Ok(()),
            came => Err(DeliveryError::Count { came, due: 0 }),
        }
    }

    /// Sleeps until there is an event, and takes it.
    ///
    /// # Errors
    /// None comes.
    #[inline]
    pub fn event(&mut self) -> Result<(), DeliveryError> {
        let deadline = Instant::now() + LIMIT;
        while self.channel.take_event()?.is_none() {
            if self.channel.block(Some(deadline))? == Woken::DeadlinePassed {
                return Err(DeliveryError::Late);
            }
        }
        Ok(())
    }

    /// Polls until `count` completions have come.
    ///
    /// # Errors
    /// They don't, or one is not as it should be.
    #[inline]
    pub fn collect(&mut self, count: u32) -> Result<(), DeliveryError> {
        let (mut due, mut patience) = (count as usize, Patience::new());
        while due > 0 {
            match self.poll(due)? {
                0 => patience.look()?,
                came => due -= came,
            }
        }
        Ok(())
    }

    /// Polls once, for `due` completions that have to be there, at most [`ROOM`].
    ///
    /// # Errors
    /// They are not, or one is not as it should be.
    #[inline]
    pub fn take(&mut self, due: usize) -> Result<(), DeliveryError> {
        match self.poll(due)? {
            came if came == due => Ok(()),
            came => Err(DeliveryError::Count { came, due }),
        }
    }

    #[inline]
    fn poll(&mut self, most: usize) -> Result<usize, DeliveryError> {
        let batch = self.queue.poll(&mut self.room[..most.min(ROOM)])?;
        for wc in batch {
            let (came, due) = (wc.result()?.wr_id(), self.completed);
            if came != due {
                return Err(DeliveryError::OutOfOrder { came, due });
            }
            self.completed += 1;
        }
        Ok(batch.len())
    }
}

/// Looks at the clock once in a while, so that what is measured is not that.
struct Patience {
    looks: u32,
    end: Option<Instant>,
}

impl Patience {
    /// Looks at a queue between two at the clock.
    const LOOKS: u32 = 1 << 10;

    const fn new() -> Self {
        Self { looks: 0, end: None }
    }

    #[inline]
    fn look(&mut self) -> Result<(), DeliveryError> {
        self.looks += 1;
        if self.looks.is_multiple_of(Self::LOOKS) {
            let now = Instant::now();
            if now > *self.end.get_or_insert(now + LIMIT) {
                return Err(DeliveryError::Late);
            }
        }
        Ok(())
    }
}
