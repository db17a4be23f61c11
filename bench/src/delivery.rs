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
//! # Ok::<(), bench::Failure>(())
//! ```

use std::time::{Duration, Instant};

use cq_core::cq::CompletionQueue;
use cq_core::transport::{Block, Events, Notify, Woken};
use cq_core::wc::Wc;
use cq_verbs::device::Memory;
use cq_verbs::post::Post;
use cq_verbs::wr::{RecvWr, SendWr, Sge};

use crate::failure::Failure;
use crate::transport::{End, Needs, SetUpError, Transport};

/// How many messages can be under way at once.
pub const DEPTH: u32 = 1024;

/// How many completions can be taken at once.
pub const BATCH: usize = 64;

/// Bytes in a message.
const MESSAGE: u32 = 64;

/// How long anything may take. A device that is emulated takes long.
const LIMIT: Duration = Duration::from_secs(20);

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
    pub fn fill(&mut self, count: u32) -> Result<(), Failure> {
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
    _memory: Box<dyn Memory>,
    buffer: [Wc; BATCH],
    posted: u64,
    completed: u64,
}

impl<T: Transport> Side<T> {
    fn new(end: End<T>) -> Self {
        Self {
            queue: CompletionQueue::new(end.queue),
            channel: end.channel.expect("it was asked for"),
            pair: end.pair,
            message: end.memory.registered().sge(..MESSAGE as usize).expect("it is inside"),
            _memory: end.memory,
            buffer: [Wc::default(); BATCH],
            posted: 0,
            completed: 0,
        }
    }

    /// Posts a message.
    ///
    /// # Errors
    /// The device refused.
    #[inline]
    pub fn send(&mut self, solicited: bool) -> Result<(), Failure> {
        let sges = [self.message];
        let send = SendWr::send(self.posted, &sges);
        self.pair.post_send(&[if solicited { send.solicited() } else { send }])?;
        self.posted += 1;
        Ok(())
    }

    /// Posts room for `count` messages.
    ///
    /// # Errors
    /// The device refused.
    pub fn receive(&mut self, count: u32) -> Result<(), Failure> {
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
    pub fn arm(&mut self, on: Notify) -> Result<(), Failure> {
        counted(self.queue.poll_or_arm(&mut self.buffer, on)?.len(), 0)
    }

    /// Sleeps until there is an event, and takes it.
    ///
    /// # Errors
    /// None comes.
    #[inline]
    pub fn event(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + LIMIT;
        while self.channel.take_event()?.is_none() {
            if self.channel.block(Some(deadline))? == Woken::DeadlinePassed {
                return Err(late());
            }
        }
        Ok(())
    }

    /// Polls until `count` completions have come.
    ///
    /// # Errors
    /// They don't, or one is not as it should be.
    #[inline]
    pub fn collect(&mut self, count: u32) -> Result<(), Failure> {
        let (mut due, mut patience) = (count as usize, Patience::default());
        while due > 0 {
            match self.poll(due)? {
                0 => patience.look()?,
                came => due -= came,
            }
        }
        Ok(())
    }

    /// Polls once, for `due` completions that have to be there, at most [`BATCH`].
    ///
    /// # Errors
    /// They are not, or one is not as it should be.
    #[inline]
    pub fn take(&mut self, due: usize) -> Result<(), Failure> {
        counted(self.poll(due)?, due)
    }

    #[inline]
    fn poll(&mut self, most: usize) -> Result<usize, Failure> {
        let batch = self.queue.poll(&mut self.buffer[..most.min(BATCH)])?;
        for wc in batch {
            let (came, due) = (wc.result()?.wr_id(), self.completed);
            if came != due {
                return Err(format!("request {came} completed where {due} was due").into());
            }
            self.completed += 1;
        }
        Ok(batch.len())
    }
}

/// Checks that there are as many completions as there have to be.
///
/// # Errors
/// There are more or fewer.
#[inline]
pub fn counted(came: usize, due: usize) -> Result<(), Failure> {
    match came {
        _ if came == due => Ok(()),
        _ => Err(format!("{came} completions were there instead of {due}").into()),
    }
}

fn late() -> Failure {
    format!("nothing completed for {} seconds", LIMIT.as_secs()).into()
}

/// Ends a wait for what never comes. It looks at the clock once in a while, so that what is measured is not that.
#[derive(Default)]
pub struct Patience {
    looks: u32,
    end: Option<Instant>,
}

impl Patience {
    /// Looks at a queue between two at the clock.
    const LOOKS: u32 = 1 << 10;

    /// Called once each time that nothing has come.
    ///
    /// # Errors
    /// Nothing comes for too long.
    #[inline]
    pub fn look(&mut self) -> Result<(), Failure> {
        self.looks += 1;
        if self.looks.is_multiple_of(Self::LOOKS) {
            let now = Instant::now();
            if now > *self.end.get_or_insert(now + LIMIT) {
                return Err(late());
            }
        }
        Ok(())
    }
}
