//! Completion channels: a thread waits here for the events of armed completion queues.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use cq_core::transport::{Block, CqKey, EventError, Events, Woken};
use cq_verbs::setup::InUseError;

use crate::completion::channel::{EventChannel, Source};
use crate::completion::queue;
use crate::protocol::number::CqIndex;

/// A completion channel. Its descriptor is readable exactly while there is an event to take, and each event is an edge
/// ([N14](cq_core::contract#n14)).
///
/// ```
/// use std::time::Duration;
///
/// use transport_rxe_loop::{CompletionQueue, Context, Wc};
///
/// let context = Context::open("loop0")?;
/// let mut channel = context.create_channel()?;
/// let mut cq = CompletionQueue::new(context.cq(16).channel(&channel).create()?);
///
/// // Nothing is posted, so there is no completion.
/// let mut wcs = [Wc::default(); 4];
/// assert!(cq.wait_timeout(&mut wcs, &mut channel, Duration::from_millis(1))?.is_empty());
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
#[doc(alias("ibv_comp_channel", "ibv_get_cq_event", "ibv_ack_cq_events"))]
#[derive(Debug)]
pub struct CompletionChannel {
    pub(crate) events: Arc<EventChannel>,
}

impl CompletionChannel {
    /// Destroys the channel. Dropping destroys it once its last completion queue is destroyed.
    ///
    /// # Errors
    /// A completion queue uses it; the handle is returned (EBUSY, [N8](cq_core::contract#n8)).
    pub fn destroy(self) -> Result<(), InUseError<Self>> {
        Arc::try_unwrap(self.events).map(drop).map_err(|events| {
            InUseError::new(Self { events }, "completion channel", "its completion queues")
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
        let completions = self.events.completions;
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
        queue::key(self.events.completions, cq) == key && self.events.has(Source::Completion(cq))
    }
}

impl Block for CompletionChannel {
    type Instant = Instant;

    /// Waits until there is an event, the deadline has passed, or this thread has handled a signal.
    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        self.events.block(deadline)
    }
}
