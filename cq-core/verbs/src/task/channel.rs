//! A channel with a descriptor, for a task.
#![allow(unsafe_code)]

use core::task::{Context, Poll, Waker};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use cq_core::transport::{CqKey, EventError, Events, RegisterWaker};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::coop;

/// A completion channel that a task awaits: [`CompletionQueue::next_batch`](cq_core::cq::CompletionQueue::next_batch)
/// takes it.
///
/// ```
/// use std::error::Error;
/// use std::os::fd::AsFd;
///
/// use cq_core::cq::CompletionQueue;
/// use cq_core::wc::Wc;
/// use cq_verbs::device::Device;
/// use cq_verbs::task::TaskChannel;
///
/// async fn serve<D: Device<Channel: AsFd>>(device: &D) -> Result<(), Box<dyn Error>> {
///     let mut channel = TaskChannel::new(device.create_channel()?)?;
///     let mut cq = CompletionQueue::new(device.cq(64).channel(channel.get_ref()).create()?);
///     let mut buffer = [Wc::default(); 16];
///     loop {
///         let batch = cq.next_batch(&mut buffer, &mut channel).await?;
///         println!("{} completions", batch.len());
///     }
/// }
/// ```
#[derive(Debug)]
pub struct TaskChannel<C> {
    channel: C,
    fd: AsyncFd<OwnedFd>,
    /// Why the runtime can't wait for the descriptor any more.
    failed: Option<EventError>,
}

impl<C: AsFd> TaskChannel<C> {
    /// Registers a duplicate of the channel's descriptor with the runtime.
    ///
    /// # Errors
    /// The process has no descriptors left, or the system refused to add it to the runtime's epoll(7).
    ///
    /// # Panics
    /// The caller is not in a runtime of tokio, or in one without I/O.
    pub fn new(channel: C) -> io::Result<Self> {
        let fd = watch(&channel)?;
        Ok(Self { channel, fd, failed: None })
    }
}

impl<C> TaskChannel<C> {
    /// Returns the channel, to create completion queues for it.
    pub const fn get_ref(&self) -> &C {
        &self.channel
    }

    /// Returns the channel.
    pub fn into_inner(self) -> C {
        self.channel
    }
}

impl<C: Events> Events for TaskChannel<C> {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        match self.failed {
            Some(error) => Err(error),
            None => self.channel.take_event(),
        }
    }

    cq_core::of_target! { self.channel;
        forget(&mut self, key: CqKey);
        serves(&self, key: CqKey) -> bool;
    }
}

impl<C: Events> RegisterWaker for TaskChannel<C> {
    fn register(&mut self, task: &Waker) {
        // The runtime watches for edges. Readiness that it has seen is cleared, since the caller reads events next; one
        // that is raised from here on is another edge.
        let mut context = Context::from_waker(task);
        loop {
            match self.fd.poll_read_ready(&mut context) {
                Poll::Pending => return,
                Poll::Ready(Ok(mut guard)) => guard.clear_ready(),
                Poll::Ready(Err(error)) => {
                    self.failed = Some(failed(&error));
                    return;
                }
            }
        }
    }

    fn poll_budget(&mut self, task: &mut Context<'_>) -> Poll<()> {
        // It is not spent: dropping what is returned restores it.
        coop::poll_proceed(task).map(drop)
    }

    fn spend_budget(&mut self, task: &mut Context<'_>) {
        if let Poll::Ready(budget) = coop::poll_proceed(task) {
            budget.made_progress();
        }
    }
}

/// Registers a duplicate of a descriptor with the runtime.
pub(super) fn watch(source: &impl AsFd) -> io::Result<AsyncFd<OwnedFd>> {
    let fd = source.as_fd().try_clone_to_owned()?;
    // SAFETY: an `OwnedFd` is an open descriptor, and the same one until it is dropped.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
}

/// The runtime's error: it shuts down, or the system refuses.
pub(super) fn failed(error: &io::Error) -> EventError {
    EventError::Device(error.raw_os_error().unwrap_or_default())
}
