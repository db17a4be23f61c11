//! Several completion queues that one thread serves: polled in turn, and armed together before the thread sleeps.
//! Feature `alloc`.
//!
//! A set does not sleep itself: a program sleeps on the channels' descriptors in its own event loop, or on the channel.
//! On Linux, a `WaitSet` (feature `std`) sleeps on all of them, and on other descriptors.
//!
//! ```
//! use cq_core::channel::thread;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::transport::Block;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_verbs::queue_set::QueueSet;
//!
//! let (raiser, events) = thread::channel(2);
//! let (mut sends, send_cq) = HeapCq::new(16)?.split_with(raiser);
//! let (mut receives, recv_cq) = HeapCq::new(16)?.split_with(events.raiser());
//!
//! let mut set = QueueSet::new();
//! let channel = set.add_channel(events);
//! let send_cq = set.add_queue(CompletionQueue::new(send_cq));
//! let recv_cq = set.add_queue(CompletionQueue::new(recv_cq));
//!
//! let device = std::thread::spawn(move || {
//!     for wr_id in 0..100 {
//!         sends.push_or_wait(&Wc::new(wr_id, WcStatus::SUCCESS, 5), std::thread::yield_now).unwrap();
//!         receives.push_or_wait(&Wc::new(wr_id, WcStatus::SUCCESS, 5), std::thread::yield_now).unwrap();
//!     }
//!     (sends, receives)
//! });
//! let (mut batch, mut sent, mut received) = ([Wc::default(); 8], 0, 0);
//! while sent + received < 200 {
//!     match set.poll_or_arm(&mut batch)? {
//!         Some((queue, batch)) if queue == send_cq => sent += batch.len(),
//!         Some((_, batch)) => received += batch.len(),
//!         // All queues are empty and armed.
//!         None => _ = set.channel_mut(channel).unwrap().block(None)?,
//!     }
//! }
//! assert_eq!((sent, received), (100, 100));
//! # device.join().unwrap();
//! assert!(set.remove_queue(recv_cq).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Fairness
//! Each poll returns a batch of one queue, at most as long as the buffer, and begins with the queue after the one that
//! was served last. So between two batches of a queue, every other queue that holds completions has one.
//!
//! # Arming
//! A queue that was armed raises one event ([N1](cq_core::contract#n1)), whose key names the queue that must be armed again.
//! So a set arms a queue once for each event, and not before each sleep. Before it arms, it takes the events of all
//! channels ([N6](cq_core::contract#n6)). At most one event of each queue is unread then, however many polls succeed in
//! between ([N9](cq_core::contract#n9)), and two after [`queue_mut`](QueueSet::queue_mut), which lets the set arm the
//! queue again.
//!
//! The channel of each queue must be in the set, as is checked before queues are armed, and all queues of a channel must be: the events of others are taken
//! and ignored, as are those of queues that were removed. If queues of several channels have the same key, an event of
//! one lets the set arm all of them again, which does no harm.

mod error;
mod members;

use cq_core::cq::CompletionQueue;
use cq_core::transport::{Armed, Events, Notify};
use cq_core::wc::Wc;

use crate::polling::{ArmWc, PollWc};

pub use self::error::SetError;
pub(crate) use self::members::Members;

/// A completion queue of a set. No other queue of the set has the same, also if this one is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct QueueId(u64);

/// A channel of a set. No other channel of the set has the same, also if this one is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ChannelId(u64);

/// Completion queues, and their channels. See [the module](self).
///
/// See [the module](self) for an example.
///
/// With queues of a device, on one channel:
/// ```
/// use cq_core::cq::CompletionQueue;
/// use cq_verbs::device::Device;
/// use cq_verbs::queue_set::QueueSet;
/// use cq_verbs::setup::CreateError;
///
/// fn create<D: Device>(device: &D) -> Result<QueueSet<D::Cq, D::Channel>, CreateError> {
///     let (mut set, channel) = (QueueSet::new(), device.create_channel()?);
///     for capacity in [64, 1024] {
///         set.add_queue(CompletionQueue::new(device.cq(capacity).channel(&channel).create()?));
///     }
///     set.add_channel(channel);
///     Ok(set)
/// }
/// ```
#[derive(Debug)]
pub struct QueueSet<T, C> {
    queues: Members<Queue<T>>,
    channels: Members<C>,
    /// The place of the queue that is polled next; past the last one, it is the first.
    turn: usize,
}

#[derive(Debug)]
struct Queue<T> {
    cq: CompletionQueue<T>,
    /// The queue was armed, and no event of it was taken since: it is still armed, or its event is unread, or is about
    /// to be raised. Each ends a sleep.
    is_armed: bool,
}

impl<T, C> QueueSet<T, C> {
    /// An empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { queues: Members::new(), channels: Members::new(), turn: 0 }
    }

    /// Adds a channel. The set takes its events, and nobody else may.
    pub fn add_channel(&mut self, channel: C) -> ChannelId {
        ChannelId(self.channels.add(channel))
    }

    /// Adds a queue, whose channel is in the set.
    pub fn add_queue(&mut self, cq: CompletionQueue<T>) -> QueueId {
        QueueId(self.queues.add(Queue { cq, is_armed: false }))
    }

    /// The queue; `None` if it was removed.
    #[must_use]
    pub fn queue(&self, id: QueueId) -> Option<&CompletionQueue<T>> {
        self.queues.get(id.0).map(|queue| &queue.cq)
    }

    /// The queue, to poll it, arm it or resize it; `None` if it was removed. It is armed again before the next sleep.
    pub fn queue_mut(&mut self, id: QueueId) -> Option<&mut CompletionQueue<T>> {
        let queue = self.queues.get_mut(id.0)?;
        queue.is_armed = false;
        Some(&mut queue.cq)
    }

    /// The channel, to create queues with it; `None` if it was removed.
    #[must_use]
    pub fn channel(&self, id: ChannelId) -> Option<&C> {
        self.channels.get(id.0)
    }

    /// The channel, to sleep on it; `None` if it was removed.
    pub fn channel_mut(&mut self, id: ChannelId) -> Option<&mut C> {
        self.channels.get_mut(id.0)
    }

    /// Removes a queue and returns it; `None` if it was removed before. If it is armed, its event is ignored.
    pub fn remove_queue(&mut self, id: QueueId) -> Option<CompletionQueue<T>> {
        let (place, queue) = self.queues.remove(id.0)?;
        // The turn stays with the same queue.
        self.turn -= usize::from(place < self.turn);
        Some(queue.cq)
    }

    /// Removes a channel and returns it; `None` if it was removed before. First remove its queues, which nothing wakes
    /// any more.
    pub fn remove_channel(&mut self, id: ChannelId) -> Option<C> {
        self.channels.remove(id.0).map(|(_, channel)| channel)
    }

    /// Looks at each queue in turn until one has completions. Returns which, and how many.
    #[inline]
    fn each(
        &mut self,
        mut look: impl FnMut(QueueId, &mut Queue<T>) -> Result<usize, SetError>,
    ) -> Result<Option<(QueueId, usize)>, SetError> {
        for _ in 0..self.queues.len() {
            let Some((place, id, queue)) = self.queues.at_or_first(self.turn) else { break };
            self.turn = place + 1;
            match look(QueueId(id), queue)? {
                0 => {}
                count => return Ok(Some((QueueId(id), count))),
            }
        }
        Ok(None)
    }
}

impl<T: PollWc, C> QueueSet<T, C> {
    /// Takes up to `buffer.len()` completions of the first queue, in turn, that has some. Never blocks. `None` if all
    /// queues are empty.
    ///
    /// # Errors
    /// [`SetError::Poll`] names a queue that failed; the others are polled by the next calls, before this one again.
    /// [`SetError::EmptyBuffer`].
    pub fn poll<'r>(
        &mut self,
        buffer: &'r mut [Wc],
    ) -> Result<Option<(QueueId, &'r [Wc])>, SetError> {
        let found = self.take(buffer)?;
        Ok(found.map(|(queue, count)| (queue, &buffer[..count])))
    }

    #[inline]
    pub(crate) fn take(&mut self, buffer: &mut [Wc]) -> Result<Option<(QueueId, usize)>, SetError> {
        if buffer.is_empty() {
            return Err(SetError::EmptyBuffer);
        }
        self.each(|id, queue| queue.take(id, buffer))
    }
}

impl<T: ArmWc, C: Events> QueueSet<T, C> {
    /// Polls as [`poll`](Self::poll) does. If all queues are empty, takes the events of all channels, arms the queues
    /// that are not armed, and polls them again. `None` means that all queues are armed and it is safe to sleep until
    /// the next event of any channel ([N2](cq_core::contract#n2), [N6](cq_core::contract#n6)).
    ///
    /// # Errors
    /// As of `poll`. A queue can't be armed, a channel can't be read, or no channel of the set serves a queue.
    pub fn poll_or_arm<'r>(
        &mut self,
        buffer: &'r mut [Wc],
    ) -> Result<Option<(QueueId, &'r [Wc])>, SetError> {
        let found = match self.take(buffer)? {
            None => self.arm(buffer)?,
            found => found,
        };
        Ok(found.map(|(queue, count)| (queue, &buffer[..count])))
    }

    /// Arms all queues, after they were found empty. Returns what came before they were armed.
    pub(crate) fn arm(&mut self, buffer: &mut [Wc]) -> Result<Option<(QueueId, usize)>, SetError> {
        for (id, queue) in self.queues.iter() {
            let key = queue.cq.get_ref().key();
            if !self.channels.iter().any(|(_, channel)| channel.serves(key)) {
                return Err(SetError::NoChannel { queue: QueueId(id) });
            }
        }
        // Take events before arming: one taken later may be of this arm, and the sleep would then miss it.
        self.take_events()?;
        self.each(|id, queue| queue.arm(id, buffer))
    }

    /// Takes the pending events, up to more than these queues can have. If one is left, the next sleep on its channel
    /// returns at once.
    fn take_events(&mut self) -> Result<(), SetError> {
        const SPURIOUS: usize = 16;
        let most = 2 * self.queues.len() + SPURIOUS;
        for (id, channel) in self.channels.iter_mut() {
            for _ in 0..most {
                let event = channel.take_event();
                let event =
                    event.map_err(|error| SetError::Event { channel: ChannelId(id), error })?;
                let Some(key) = event else { break };
                let of_key = |queue: &Queue<T>| queue.cq.get_ref().key() == key;
                // All of them first: an observer may panic in `took_events`.
                for (_, queue) in self.queues.iter_mut() {
                    queue.is_armed &= !of_key(queue);
                }
                for (_, queue) in self.queues.iter_mut().filter(|(_, queue)| of_key(queue)) {
                    queue.cq.get_mut().took_events(1);
                }
            }
        }
        Ok(())
    }
}

impl<T, C> Default for QueueSet<T, C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: PollWc> Queue<T> {
    #[inline]
    fn take(&mut self, queue: QueueId, buffer: &mut [Wc]) -> Result<usize, SetError> {
        self.cq.poll(buffer).map(<[Wc]>::len).map_err(|error| SetError::Poll { queue, error })
    }
}

impl<T: ArmWc> Queue<T> {
    /// Arms the queue unless it is armed. Returns how many completions came before.
    fn arm(&mut self, queue: QueueId, buffer: &mut [Wc]) -> Result<usize, SetError> {
        if self.is_armed {
            return Ok(0);
        }
        let armed = self.cq.get_mut().arm(Notify::Next);
        let armed = armed.map_err(|error| SetError::Arm { queue, error })?;
        self.is_armed = true;
        match armed {
            Armed::MayHaveMissed => self.take(queue, buffer),
            Armed::Armed => Ok(0),
        }
    }
}
