//! Completion channels: a thread waits here for the events of armed completion queues.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use cq_core::transport::{Block, CqKey, EventError, Events, Woken};
use cq_verbs::setup::InUse;

use crate::completion::channel::{EventChannel, Source};
use crate::completion::queue;
use crate::error::CreateError;
use crate::lifecycle::{Device, deaths};
use crate::protocol::number::CqIndex;

/// A completion channel. Its descriptor is readable exactly while there is an event to take, and each event is an edge
/// ([N14](cq_core::contract#n14)).
///
/// ```
/// use std::time::{Duration, Instant};
/// use cq_core::cq::CompletionQueue;
/// use cq_core::wc::Wc;
/// use transport_rxe_loop::Context;
///
/// let context = Context::open("loop0")?;
/// let mut channel = context.create_channel()?;
/// let mut cq = CompletionQueue::new(context.create_cq(16, Some(&channel))?);
///
/// // Nothing is posted, so there is no completion.
/// let mut wcs = [Wc::default(); 4];
/// let deadline = Instant::now() + Duration::from_millis(1);
/// assert!(cq.wait(&mut wcs, &mut channel, Some(deadline))?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Destroying it twice does not compile:
/// ```compile_fail
/// # fn twice(channel: transport_rxe_loop::CompletionChannel) {
/// channel.destroy();
/// channel.destroy();
/// # }
/// ```
#[derive(Debug)]
pub struct CompletionChannel {
    events: Arc<EventChannel>,
}

impl CompletionChannel {
    pub(crate) fn new(device: &'static Device) -> Result<Self, CreateError> {
        let events =
            deaths::retry_after_recovery(device, || EventChannel::new(device.completions))?;
        Ok(Self { events: Arc::new(events) })
    }

    pub(crate) const fn events(&self) -> &Arc<EventChannel> {
        &self.events
    }

    /// Destroys the channel. Dropping destroys it once its last completion queue is destroyed.
    ///
    /// # Errors
    /// A completion queue uses it; the handle is returned (EBUSY, [N8](cq_core::contract#n8)).
    pub fn destroy(self) -> Result<(), InUse<Self>> {
        Arc::try_unwrap(self.events).map(drop).map_err(|events| {
            InUse::new(Self { events }, "completion channel", "its completion queues")
        })
    }
}

impl AsFd for CompletionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

impl AsRawFd for CompletionChannel {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Events for CompletionChannel {
    /// Takes the next event: the oldest one, unless thousands were unread, or a queue was destroyed or a process died while
    /// they were. Of a queue that has more than 65,536 unread events, further ones are merged with those.
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let completions = self.events.completions();
        self.events.take(|source| match source {
            Source::Completion(cq) | Source::Overrun(cq) => {
                if completions.counts_polls {
                    completions.counters(cq).event();
                }
                queue::key(completions, cq)
            }
            // Another process corrupted the channel: any queue is a spurious wake-up.
            Source::Srq(_) | Source::Qp(..) => queue::key(completions, CqIndex::default()),
        })
    }

    fn serves(&self, key: CqKey) -> bool {
        let cq = CqIndex::new(key.index);
        queue::key(self.events.completions(), cq) == key && self.events.has(Source::Completion(cq))
    }
}

impl Block for CompletionChannel {
    type Instant = Instant;

    /// Waits until there is an event, the deadline has passed, or this thread has handled a signal.
    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        self.events.block(deadline)
    }
}
