//! Waiting on several things at once: completion queues on one or several channels, other descriptors, and a request to
//! stop. Feature `std`; Linux.
//!
//! ```
//! use std::io;
//! use std::os::fd::AsFd;
//! use std::os::unix::net::UnixListener;
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::wc::Wc;
//! use cq_verbs::device::Device;
//! use cq_verbs::wait_set::{Ready, StopHandle, WaitSet};
//!
//! /// Serves two queues, new clients, and a signal handler or another thread that asks it to stop.
//! fn serve<D: Device<Channel: AsFd>>(
//!     device: &D,
//!     listener: &UnixListener, // nonblocking
//!     started: impl FnOnce(StopHandle),
//! ) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut set = WaitSet::new()?;
//!     let channel = set.add_channel(device.create_channel()?).map_err(|refused| refused.why)?;
//!     let [_requests, _answers] = [
//!         device.cq(64).channel(set.channel(channel)).create()?,
//!         device.cq(64).channel(set.channel(channel)).create()?,
//!     ]
//!     .map(|cq| set.add_queue(CompletionQueue::new(cq)));
//!     let clients = set.add_descriptor(listener)?;
//!     started(set.stop_handle());
//!
//!     let mut buffer = [Wc::default(); 32];
//!     loop {
//!         match set.wait(&mut buffer, None)? {
//!             Ready::Completions(queue, batch) => println!("{} completions of {queue:?}", batch.len()),
//!             Ready::Descriptor(ready) if ready == clients => match listener.accept() {
//!                 Ok((_client, _)) => println!("a client"),
//!                 Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
//!                 Err(error) => return Err(error.into()),
//!             },
//!             Ready::Stopped => return Ok(()),
//!             _ => {}
//!         }
//!     }
//! }
//! ```
//!
//! # What a wait does
//! 1. It polls the queues in turn, and returns the first batch that it finds. A queue that is always full delays no
//!    other ([`queue_set`](crate::queue_set#fairness)).
//! 2. If all queues are empty, it polls for the time of [`set_spin`](WaitSet::set_spin), which is zero by default.
//! 3. It takes the events of all channels, and arms the queues that are not armed; a completion that came before is
//!    returned ([N2](cq_core::contract#n2), [N6](cq_core::contract#n6)).
//! 4. It sleeps on all channels, descriptors and the stop handle, by one poll(2).
//!
//! While there are completions, it makes no system call, except that it checks the descriptors and the stop handle
//! once in 64 rounds of 1 and 2. Each check returns one that is ready, in turn, and between two checks each queue that
//! holds completions has a batch. Readiness is level-triggered: a descriptor is returned again until it is not readable
//! any more.
//!
//! # Cost
//! No step allocates. Compared with polling four queues in turn by hand, a wait that returns a batch was measured at 4 ns
//! more, of which 2 ns are its share of the checks; a sleep takes as long as
//! [`CompletionQueue::wait`](cq_core::cq::CompletionQueue::wait), 4 µs for a round trip between two threads that sleep.

mod sources;
#[cfg(all(test, not(loom)))]
mod tests;

use core::hint::spin_loop;
use core::time::Duration;
use std::os::fd::AsFd;
use std::time::Instant;

use cq_core::cq::CompletionQueue;
use cq_core::transport::{Deadline, Events, Woken};
use cq_core::wc::Wc;

pub use self::sources::{AddChannelError, DescriptorId, StopHandle};
use self::sources::{Source, Sources};
use crate::polling::ArmWc;
use crate::queue_set::{ChannelId, QueueId, QueueSet, SetError};
use crate::setup::DeviceError;

/// How many rounds of polling there are between two checks of the descriptors. A check that finds none was measured at
/// 130 ns, 2 ns for each of these rounds.
const ROUNDS: u32 = 64;

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[must_use = "the completions are removed from their queue"]
pub enum Ready<'r> {
    /// Completions of a queue, at least one, oldest first.
    Completions(QueueId, &'r [Wc]),
    /// A descriptor is readable, at its end, or has failed.
    Descriptor(DescriptorId),
    /// A [`StopHandle`] asked to stop. Returned once, also if several have asked.
    Stopped,
    /// The deadline has passed, and all queues were empty.
    DeadlinePassed,
    /// This thread has handled a signal, and all queues were empty.
    Interrupted,
}

/// Completion queues with their channels, and descriptors. See [the module](self).
///
/// See [the module](self) for an example.
///
/// With a software queue:
/// ```
/// use cq_core::cq::CompletionQueue;
/// use cq_core::queue::HeapCq;
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_verbs::descriptor;
/// use cq_verbs::wait_set::{Ready, WaitSet};
///
/// let (raiser, events) = descriptor::channel(1)?;
/// let (mut device, consumer) = HeapCq::new(16)?.split_with(raiser);
/// let mut set = WaitSet::new()?;
/// set.add_channel(events)?;
/// let queue = set.add_queue(CompletionQueue::new(consumer));
///
/// let wc = Wc::new(1, WcStatus::SUCCESS, 5);
/// device.push(&wc)?;
/// let mut buffer = [Wc::default(); 4];
/// assert_eq!(set.wait(&mut buffer, None)?, Ready::Completions(queue, &[wc]));
/// set.stop_handle().stop(); // usually in another thread
/// assert_eq!(set.wait(&mut buffer, None)?, Ready::Stopped);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WaitSet<T, C> {
    set: QueueSet<T, C>,
    sources: Sources,
    spin: Duration,
    /// How many rounds there were since the last check of the descriptors.
    rounds: u32,
}

impl<T, C: AsFd> WaitSet<T, C> {
    /// An empty set.
    ///
    /// # Errors
    /// The system gave no descriptor.
    pub fn new() -> Result<Self, DeviceError> {
        let sources = Sources::new()?;
        Ok(Self { set: QueueSet::new(), sources, spin: Duration::ZERO, rounds: 0 })
    }

    /// Adds a channel. The set takes its events, and nobody else may. All queues of the channel must be in the set: the
    /// events of others are ignored.
    ///
    /// # Errors
    /// The system refused its descriptor. The channel is returned.
    pub fn add_channel(&mut self, channel: C) -> Result<ChannelId, AddChannelError<C>> {
        match self.sources.add_channel(&channel) {
            Ok(()) => Ok(self.set.add_channel(channel)),
            Err(why) => Err(AddChannelError { channel, why }),
        }
    }

    /// The channel, to create queues with it; `None` if it was removed.
    #[must_use]
    pub fn channel(&self, id: ChannelId) -> Option<&C> {
        self.set.channel(id)
    }

    /// Removes a channel and returns it; `None` if it was removed before. First remove its queues, which nothing wakes
    /// any more.
    pub fn remove_channel(&mut self, id: ChannelId) -> Option<C> {
        self.sources.remove_channel(self.set.channel(id)?);
        self.set.remove_channel(id)
    }

    /// Adds a queue, whose channel is in the set: otherwise a wait fails before it sleeps, or does not end if the channels
    /// does not know which queues they serve.
    pub fn add_queue(&mut self, cq: CompletionQueue<T>) -> QueueId {
        self.set.add_queue(cq)
    }

    /// The queue, to create queue pairs for it; `None` if it was removed.
    #[must_use]
    pub fn queue(&self, id: QueueId) -> Option<&CompletionQueue<T>> {
        self.set.queue(id)
    }

    /// The queue, to poll it or to resize it; `None` if it was removed. It is armed again before the next sleep.
    pub fn queue_mut(&mut self, id: QueueId) -> Option<&mut CompletionQueue<T>> {
        self.set.queue_mut(id)
    }

    /// Removes a queue and returns it; `None` if it was removed before. Its later events are ignored.
    pub fn remove_queue(&mut self, id: QueueId) -> Option<CompletionQueue<T>> {
        self.set.remove_queue(id)
    }

    /// Adds a duplicate of a descriptor, to wait until it is readable: a listener, a socket, the asynchronous events of
    /// a device's context. Make it nonblocking: another thread or process may read first what made it ready.
    ///
    /// The duplicate is closed when another program is executed. A duplicate of a socket keeps it open: if the program drops its own, the peer sees no end before
    /// [`remove_descriptor`](Self::remove_descriptor), or the end of the set.
    ///
    /// # Errors
    /// There are too many descriptors, or this one can't be waited for: a regular file, for example.
    pub fn add_descriptor(&mut self, fd: impl AsFd) -> Result<DescriptorId, DeviceError> {
        self.sources.add(fd.as_fd())
    }

    /// Removes a descriptor. Returns whether it was in the set.
    pub fn remove_descriptor(&mut self, id: DescriptorId) -> bool {
        self.sources.remove(id)
    }

    /// A handle by which other threads, or a signal handler, end a wait.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.sources.stop_handle()
    }

    /// How long a wait polls empty queues before it arms them and sleeps. Zero by default.
    ///
    /// Start with twice the time that a wake-up takes, if completions mostly come within it: 50 µs in a virtual machine,
    /// 10 µs on bare metal. Where they come seldom, leave it at zero. A shorter spin than the usual pause only adds to the
    /// sleep. Measured between two threads on the loopback, on two virtual cores, where a wake-up takes some 25 µs; the
    /// processor time is that of both:
    ///
    /// | pause between messages | no spin | 2 µs | 50 µs |
    /// |---|---|---|---|
    /// | none | round trip 56 µs, processor time 43 µs | 1 µs, 4 µs | 1 µs, 8 µs |
    /// | 20 µs | 60 µs, 65 µs | 49 µs, 64 µs | 0.3 µs, 41 µs |
    /// | 200 µs | processor time 33 µs | 33 µs | 106 µs |
    pub const fn set_spin(&mut self, spin: Duration) {
        self.spin = spin;
    }
}

impl<T: ArmWc, C: Events + AsFd> WaitSet<T, C> {
    /// Waits until there are completions, a descriptor is readable, a stop was asked for, or the deadline has passed. A
    /// deadline of `None` waits indefinitely. Completions, up to `buffer.len()` of one queue, are returned even if the
    /// deadline has passed.
    ///
    /// # Errors
    /// A queue or a channel failed, or can't be armed: the error names it. It is reported again until it is removed,
    /// and the others are served in turn, but no wait sleeps. [`SetError::EmptyBuffer`]; [`SetError::System`].
    #[inline]
    pub fn wait<'r>(
        &mut self,
        buffer: &'r mut [Wc],
        deadline: Option<Instant>,
    ) -> Result<Ready<'r>, SetError> {
        if let Some(ready) = self.look_in_turn()? {
            return Ok(ready);
        }
        if let Some((queue, count)) = self.set.take(buffer)? {
            return Ok(Ready::Completions(queue, &buffer[..count]));
        }
        self.wait_longer(buffer, deadline)
    }

    /// [`wait`](Self::wait) for at most this time.
    ///
    /// # Errors
    /// The same as [`wait`](Self::wait).
    pub fn wait_timeout<'r>(
        &mut self,
        buffer: &'r mut [Wc],
        timeout: Duration,
    ) -> Result<Ready<'r>, SetError> {
        self.wait(buffer, Deadline::after(timeout))
    }

    /// The same, after a round that found nothing.
    fn wait_longer<'r>(
        &mut self,
        buffer: &'r mut [Wc],
        deadline: Option<Instant>,
    ) -> Result<Ready<'r>, SetError> {
        let mut spin = Spin { limit: self.spin, deadline, start: None, rounds: 0 };
        loop {
            if !spin.goes_on() {
                if let Some((queue, count)) = self.set.arm(buffer)? {
                    return Ok(Ready::Completions(queue, &buffer[..count]));
                }
                let (woken, is_source_ready) = self.sources.sleep(deadline)?;
                if is_source_ready {
                    self.rounds = ROUNDS;
                }
                if woken != Woken::Event {
                    return self.look_again(buffer, woken);
                }
            }
            if let Some(ready) = self.look_in_turn()? {
                return Ok(ready);
            }
            if let Some((queue, count)) = self.set.take(buffer)? {
                return Ok(Ready::Completions(queue, &buffer[..count]));
            }
        }
    }

    /// After a sleep that no event ended.
    fn look_again<'r>(
        &mut self,
        buffer: &'r mut [Wc],
        woken: Woken,
    ) -> Result<Ready<'r>, SetError> {
        if let Some((queue, count)) = self.set.take(buffer)? {
            return Ok(Ready::Completions(queue, &buffer[..count]));
        }
        let ready = self.look_in_turn()?;
        Ok(ready.unwrap_or(match woken {
            Woken::Interrupted => Ready::Interrupted,
            _ => Ready::DeadlinePassed,
        }))
    }

    /// Looks at the descriptors where it is their turn.
    #[inline]
    fn look_in_turn(&mut self) -> Result<Option<Ready<'static>>, SetError> {
        if self.rounds < ROUNDS {
            self.rounds += 1;
            return Ok(None);
        }
        self.rounds = 0;
        self.look()
    }

    #[cold]
    fn look(&self) -> Result<Option<Ready<'static>>, SetError> {
        let ready = self.sources.ready()?;
        Ok(ready.map(|source| match source {
            Source::Stop => Ready::Stopped,
            Source::Descriptor(id) => Ready::Descriptor(id),
        }))
    }
}

/// Polling before a sleep.
struct Spin {
    limit: Duration,
    deadline: Option<Instant>,
    start: Option<Instant>,
    /// Since the clock was read.
    rounds: u32,
}

impl Spin {
    /// Whether to poll once more. The clock is read every few rounds.
    fn goes_on(&mut self) -> bool {
        const CLOCK: u32 = 16;
        if self.limit.is_zero() {
            return false;
        }
        spin_loop();
        self.rounds = (self.rounds + 1) % CLOCK;
        if self.rounds != 1 {
            return true;
        }
        let now = Instant::now();
        let start = *self.start.get_or_insert(now);
        now - start < self.limit && self.deadline.is_none_or(|deadline| now < deadline)
    }
}
