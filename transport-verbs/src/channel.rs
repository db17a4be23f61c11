//! Completion channels: the events of armed completion queues.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use cq_core::transport::{Block, CqKey, EventError, Events, Woken};
use cq_verbs::descriptor;
use cq_verbs::setup::{CreateError, InUseError};

use crate::device::Context;
use crate::error::{Attempt, event_error};
use crate::sys::channel::Channel;
use crate::trace;

/// A completion channel. Its descriptor is readable while there is an event. Events are acknowledged in batches, at the
/// latest when their queue is destroyed ([N7](cq_core::contract#n7)). An event of a queue that other code created with this
/// channel, as by [`Cq::as_raw`](crate::Cq::as_raw), is acknowledged and skipped.
///
/// ```no_run
/// use transport_verbs::{CompletionQueue, Context, Wc};
///
/// let context = Context::open_first()?;
/// let mut channel = context.create_channel()?;
/// let mut cq = CompletionQueue::new(context.cq(16).channel(&channel).create()?);
/// // ... post something, then wait until it completes:
/// let mut wcs = [Wc::default(); 16];
/// for wc in cq.wait(&mut wcs, &mut channel, None)? {
///     println!("{} is done", wc.wr_id());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Destroying it twice, or reading it while another thread waits on it, does not compile:
/// ```compile_fail,E0382
/// # fn twice(channel: transport_verbs::CompletionChannel) {
/// channel.destroy();
/// channel.destroy();
/// # }
/// ```
/// ```compile_fail,E0499
/// # fn twice(mut channel: transport_verbs::CompletionChannel) {
/// # use cq_core::transport::{Block, Events};
/// let (sleeper, reader) = (&mut channel, &mut channel);
/// let _ = (sleeper.block(None), reader.take_event());
/// # }
/// ```
#[doc(alias("ibv_comp_channel", "ibv_get_cq_event", "ibv_ack_cq_events"))]
#[derive(Debug)]
pub struct CompletionChannel {
    pub(crate) raw: Arc<Channel>,
}

impl Context {
    /// Creates a completion channel.
    ///
    /// # Errors
    /// No descriptor is available.
    #[doc(alias = "ibv_create_comp_channel")]
    pub fn create_channel(&self) -> Result<CompletionChannel, CreateError> {
        let raw = Channel::new(&self.raw).attempt("create a completion channel")?;
        trace::event!(DEBUG, channel = raw.as_fd().as_raw_fd(), "channel created");
        Ok(CompletionChannel { raw: Arc::new(raw) })
    }
}

impl CompletionChannel {
    /// Destroys the channel. Dropping destroys it once its last completion queue is destroyed.
    ///
    /// # Errors
    /// A completion queue uses it; the handle is returned (EBUSY, [N8](cq_core::contract#n8)).
    pub fn destroy(self) -> Result<(), InUseError<Self>> {
        Arc::try_unwrap(self.raw).map(drop).map_err(|raw| {
            InUseError::new(Self { raw }, "completion channel", "its completion queues")
        })
    }
}

impl AsFd for CompletionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.raw.as_fd()
    }
}

impl AsRawFd for CompletionChannel {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Events for CompletionChannel {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        self.raw.next().map_err(event_error)
    }

    fn serves(&self, key: CqKey) -> bool {
        self.raw.queues().contains(&key)
    }
}

impl Block for CompletionChannel {
    type Instant = Instant;

    /// Waits until there may be an event, or the deadline has passed, or this thread has handled a signal.
    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        descriptor::block(self, deadline)
    }
}
