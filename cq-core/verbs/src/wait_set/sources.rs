//! What a wait sleeps on: the channels, and the sources of everything else.
//!
//! Each of the two groups has an epoll(7) descriptor, so that a sleep on both needs no list of all.

use alloc::sync::Arc;
use core::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use cq_core::transport::Woken;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use crate::descriptor::{Eventfd, refused, sleep};
use crate::queue_set::{Members, SetError};
use crate::setup::DeviceError;

/// A descriptor of a set. No other descriptor of the set has the same, also if this one is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DescriptorId(u64);

/// A channel that was not added to a set. It gives the channel back.
///
/// ```
/// use std::os::fd::AsFd;
///
/// use cq_verbs::queue_set::ChannelId;
/// use cq_verbs::wait_set::WaitSet;
///
/// /// Adds a channel, or returns it, to be served by a thread of its own.
/// fn add<T, C: AsFd>(set: &mut WaitSet<T, C>, channel: C) -> Result<ChannelId, C> {
///     set.add_channel(channel).map_err(|refused| {
///         let (channel, why) = refused.into_parts();
///         eprintln!("{why}");
///         channel
///     })
/// }
/// ```
#[derive(thiserror::Error)]
#[error("the channel was not added to the wait set")]
pub struct AddChannelError<C> {
    /// The channel.
    pub channel: C,
    /// What the system refused.
    #[source]
    pub why: DeviceError,
}

impl<C> AddChannelError<C> {
    /// The channel, and what the system refused.
    #[must_use]
    pub fn into_parts(self) -> (C, DeviceError) {
        (self.channel, self.why)
    }
}

cq_core::debug_of!([C] AddChannelError<C> { why });

/// Ends a wait from another thread or from a signal handler.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<Eventfd>);

impl StopHandle {
    /// Ends the present wait, or else the next one. It returns [`Ready::Stopped`](super::Ready::Stopped), after at most
    /// 64 other batches for each descriptor that is readable, too. Everything that this thread did before is visible to
    /// the thread that returns from the wait.
    ///
    /// It is async-signal-safe: it takes no lock and does not allocate.
    pub fn stop(&self) {
        self.0.set();
    }
}

/// What is ready, other than a channel.
pub enum Source {
    Stop,
    Descriptor(DescriptorId),
}

/// The number of the stop handle among the sources. No descriptor has it: they are numbered from 0.
const STOP: u64 = u64::MAX;

#[derive(Debug)]
pub struct Sources {
    /// Of the channels.
    channels: OwnedFd,
    /// Of the descriptors and the stop handle, by their numbers.
    others: OwnedFd,
    descriptors: Members<OwnedFd>,
    stop: Arc<Eventfd>,
}

impl Sources {
    pub fn new() -> Result<Self, DeviceError> {
        let stop = Arc::new(Eventfd::new()?);
        let [channels, others] = [create()?, create()?];
        add(&others, stop.as_fd(), STOP)?;
        Ok(Self { channels, others, descriptors: Members::new(), stop })
    }

    pub fn add_channel(&self, channel: &impl AsFd) -> Result<(), DeviceError> {
        add(&self.channels, channel.as_fd(), 0)
    }

    pub fn remove_channel(&self, channel: &impl AsFd) {
        remove(&self.channels, channel.as_fd());
    }

    /// Adds a duplicate, so that the caller may close his own.
    pub fn add(&mut self, fd: BorrowedFd<'_>) -> Result<DescriptorId, DeviceError> {
        let fd = fcntl_dupfd_cloexec(fd, 0);
        let fd = fd.map_err(|errno| refused("duplicate the descriptor", errno))?;
        add(&self.others, fd.as_fd(), self.descriptors.next_number())?;
        Ok(DescriptorId(self.descriptors.add(fd)))
    }

    pub fn remove(&mut self, id: DescriptorId) -> bool {
        let fd = self.descriptors.remove(id.0);
        fd.inspect(|(_, fd)| remove(&self.others, fd.as_fd())).is_some()
    }

    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.stop))
    }

    /// Sleeps. Returns why that ended, and whether a source may be ready.
    pub fn sleep(&self, deadline: Option<Instant>) -> Result<(Woken, bool), SetError> {
        let [channels, others] = [&self.channels, &self.others];
        let mut fds = [channels, others].map(|fd| PollFd::new(fd, PollFlags::IN));
        let woken = sleep(&mut fds, deadline).map_err(system)?;
        // A signal handler may have asked to stop.
        Ok((woken, woken == Woken::Interrupted || !fds[1].revents().is_empty()))
    }

    /// A source that is ready now. Successive calls return all that are ready in turn, as epoll_wait(2) does.
    pub fn ready(&self) -> Result<Option<Source>, SetError> {
        let mut ready = [MaybeUninit::uninit()];
        let (ready, _) =
            epoll::wait(&self.others, &mut ready, Some(&Timespec::default())).map_err(system)?;
        Ok(match ready {
            [] => None,
            [event, ..] if event.data.u64() == STOP => self.stop.take().then_some(Source::Stop),
            [event, ..] => Some(Source::Descriptor(DescriptorId(event.data.u64()))),
        })
    }
}

fn system(errno: Errno) -> SetError {
    SetError::System(refused("wait for descriptors", errno))
}

fn create() -> Result<OwnedFd, DeviceError> {
    epoll::create(CreateFlags::CLOEXEC).map_err(|errno| refused("create a wait set", errno))
}

fn add(epoll: &OwnedFd, fd: BorrowedFd<'_>, number: u64) -> Result<(), DeviceError> {
    epoll::add(epoll, fd, EventData::new_u64(number), EventFlags::IN)
        .map_err(|errno| refused("wait for this descriptor", errno))
}

/// What is open elsewhere, too, would stay in the set when it is closed here.
fn remove(epoll: &OwnedFd, fd: BorrowedFd<'_>) {
    // It fails only if the descriptor is not there, which is the aim.
    let _ = epoll::delete(epoll, fd);
}
