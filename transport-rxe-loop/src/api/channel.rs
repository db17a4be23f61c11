//! Completion channels: where the events of armed completion queues are read, and slept for.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use cq_core::cq::CompletionQueue;
//! use cq_core::wc::Wc;
//! use transport_rxe_loop::Context;
//!
//! let context = Context::open("loop0")?;
//! let mut channel = context.create_channel()?;
//! let mut cq = CompletionQueue::new(context.create_cq(16, Some(&channel))?);
//!
//! // Nothing is posted, so nothing comes.
//! let mut room = [Wc::default(); 4];
//! let deadline = Instant::now() + Duration::from_millis(1);
//! assert!(cq.wait(&mut room, &mut channel, Some(deadline))?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use cq_core::setup::InUse;
use cq_core::transport::{Block, CqKey, EventError, Events, Woken};

use crate::completion::channel::{Bell, Source};
use crate::completion::queue;
use crate::error::CreateError;
use crate::fabric::Fabric;

/// A completion channel. Its descriptor is readable while there is an event to take.
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
    bell: Arc<Bell>,
}

impl CompletionChannel {
    pub(crate) fn new(fabric: &'static Fabric) -> Result<Self, CreateError> {
        Ok(Self { bell: Arc::new(Bell::new(fabric)?) })
    }

    pub(crate) const fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Destroys it. Dropping does, too, once the last of its queues is gone.
    ///
    /// # Errors
    /// A completion queue uses it; the handle comes back (EBUSY, N8).
    pub fn destroy(self) -> Result<(), InUse<Self>> {
        Arc::try_unwrap(self.bell).map(drop).map_err(|bell| {
            InUse::new(Self { bell }, "completion channel", "its completion queues")
        })
    }
}

impl AsFd for CompletionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Events for CompletionChannel {
    /// Takes one event. A queue with several is named again after the others that have some.
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let fabric = self.bell.fabric();
        self.bell.take(|source| match source {
            Source::Completion(index)
            | Source::Overrun(index)
            | Source::Srq(index)
            | Source::Qp(index, _) => queue::key(fabric, index),
        })
    }
}

impl Block for CompletionChannel {
    type Instant = Instant;

    /// Sleeps until there may be an event, or the deadline has passed, or this thread has handled a signal.
    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        self.bell.block(deadline)
    }
}
