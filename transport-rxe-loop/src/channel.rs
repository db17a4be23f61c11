//! Completion channels: a descriptor to sleep on, and the list of the queues that have events.
//!
//! ```
//! use std::time::Duration;
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
//! assert!(cq.wait(&mut room, &mut channel, Some(Duration::from_millis(1)))?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How events travel
//! Events are counted at each queue, and a queue that has some is in the channel's list once: so however
//! many nobody reads, nothing overflows and nobody waits (N9). The descriptor, an eventfd, carries only
//! that the list is not empty: it is written when the list gets its first queue and read when it loses its
//! last, both under the channel's lock. A queue leaves the list when it is dropped, and nothing puts it
//! back, because it no longer names the channel: a dead queue is never named (N7).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use cq_core::transport::{Block, CqKey, EventError, Events};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::error::{CreateError, InUse, Limit};
use crate::fabric::Fabric;
use crate::layout::{ChannelSlot, Entry, MAX_CHANNELS, MAX_CQ};
use crate::sync;

/// A channel's place in the table and its descriptor; ends when its last user does.
#[derive(Debug)]
pub struct Bell {
    fabric: &'static Fabric,
    index: u32,
    fd: Arc<OwnedFd>,
}

impl Bell {
    /// Its place in the table.
    pub const fn index(&self) -> u32 {
        self.index
    }

    fn new(fabric: &'static Fabric) -> Result<Self, CreateError> {
        let full = CreateError::TableFull { what: Limit::Channels, max: MAX_CHANNELS as u32 };
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| CreateError::NoDescriptor { errno: errno.raw_os_error() })?;
        let (index, _) = fabric.tables().channels.claim().ok_or(full)?;
        let fd = Arc::new(fd);
        set_bell(fabric, index, Some(Arc::clone(&fd)));
        Ok(Self { fabric, index, fd })
    }

    fn slot(&self) -> &'static ChannelSlot {
        self.fabric.channel(self.index)
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        set_bell(self.fabric, self.index, None);
        self.slot().life().end();
    }
}

fn set_bell(fabric: &Fabric, index: u32, fd: Option<Arc<OwnedFd>>) {
    *fabric.bell(index).lock().unwrap_or_else(PoisonError::into_inner) = fd;
}

/// Adds an event of the queue at `cq` to the channel at `index`, if that is still its channel.
pub fn raise(fabric: &'static Fabric, index: u32, cq: u32) {
    let (channel, queue) = (fabric.channel(index), fabric.cq(cq));
    let _guard = channel.lock.lock();
    if sync::load_u32(&queue.channel) != index + 1 {
        return;
    }
    let pending = sync::load_u32(&queue.pending);
    sync::store_u32(&queue.pending, pending.saturating_add(1));
    if pending == 0 && append(fabric, channel, cq) {
        ring(fabric, index);
    }
}

/// Makes the queue at `cq` one of the channel at `index`.
pub fn attach(fabric: &'static Fabric, index: u32, cq: u32) {
    let _guard = fabric.channel(index).lock.lock();
    sync::store_u32(&fabric.cq(cq).pending, 0);
    sync::store_u32(&fabric.cq(cq).channel, index + 1);
}

/// Takes the queue at `cq` and its unread events from its channel.
pub fn detach(bell: &Bell, cq: u32) {
    let (channel, queue) = (bell.slot(), bell.fabric.cq(cq));
    let _guard = channel.lock.lock();
    sync::store_u32(&queue.channel, 0);
    if sync::load_u32(&queue.pending) > 0 {
        sync::store_u32(&queue.pending, 0);
        unlink(bell.fabric, channel, cq);
        hush_if_empty(bell);
    }
}

/// Puts a queue at the end of the list, under the lock; true if it is the first.
fn append(fabric: &Fabric, channel: &ChannelSlot, cq: u32) -> bool {
    let last = sync::load_u32(&channel.last);
    sync::store_u32(&fabric.cq(cq).next, 0);
    sync::store_u32(&channel.last, cq + 1);
    let was_empty = sync::load_u32(&channel.first) == 0;
    let link = if was_empty { &channel.first } else { &fabric.cq(last.wrapping_sub(1)).next };
    sync::store_u32(link, cq + 1);
    was_empty
}

/// Takes a queue out of the list, wherever it stands, under the lock.
fn unlink(fabric: &Fabric, channel: &ChannelSlot, cq: u32) {
    let mut link = &channel.first;
    let mut before = 0;
    for _ in 0..MAX_CQ {
        let here = sync::load_u32(link);
        if here == 0 {
            return;
        }
        let next = &fabric.cq(here - 1).next;
        if here == cq + 1 {
            sync::store_u32(link, sync::load_u32(next));
            if sync::load_u32(&channel.last) == here {
                sync::store_u32(&channel.last, before);
            }
            return;
        }
        (link, before) = (next, here);
    }
}

/// Makes the descriptor readable. An eventfd at its maximum already is.
fn ring(fabric: &Fabric, index: u32) {
    let bell = fabric.bell(index).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(fd) = &*bell {
        let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
    }
}

/// Makes the descriptor unreadable, under the lock, if the list is empty. It may have been already.
fn hush_if_empty(bell: &Bell) {
    if sync::load_u32(&bell.slot().first) == 0 {
        let _ = rustix::io::read(&bell.fd, &mut [0; 8]);
    }
}

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
        self.bell.fd.as_fd()
    }
}

impl Events for CompletionChannel {
    /// Takes one event. A queue with several is named again after the others that have some.
    fn next(&mut self) -> Result<Option<CqKey>, EventError> {
        let (fabric, channel) = (self.bell.fabric, self.bell.slot());
        let _guard = channel.lock.lock();
        let Some(cq) = sync::load_u32(&channel.first).checked_sub(1) else { return Ok(None) };
        let queue = fabric.cq(cq);
        unlink(fabric, channel, cq);
        let left = sync::load_u32(&queue.pending).saturating_sub(1);
        sync::store_u32(&queue.pending, left);
        if left > 0 {
            append(fabric, channel, cq);
        }
        hush_if_empty(&self.bell);
        Ok(Some(CqKey { index: cq, generation: sync::load_u32(&queue.generation) }))
    }
}

impl Block for CompletionChannel {
    fn block(&mut self, left: &mut Option<Duration>) -> Result<bool, EventError> {
        loop {
            let start = Instant::now();
            // A time that the system can't express is longer than anyone waits.
            let limit = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds = [PollFd::new(&self.bell.fd, PollFlags::IN)];
            let polled = poll(&mut fds, limit.as_ref());
            if let Some(left) = left {
                *left = left.saturating_sub(start.elapsed());
            }
            match polled {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(EventError::Device(errno.raw_os_error())),
            }
        }
    }
}
