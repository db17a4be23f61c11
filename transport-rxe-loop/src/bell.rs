//! What every channel is made of, whether it carries the events of completion queues or the asynchronous
//! ones of a context: a descriptor to sleep on, and the list of those that have events.
//!
//! # How events travel
//! Events are counted at each source, and a source that has some is in its channel's list once: so however
//! many nobody reads, nothing overflows and nobody waits (N9). The descriptor, an eventfd, carries only
//! that the list is not empty: it is written when the list gets its first source and read when it loses its
//! last, both under the channel's lock. A source leaves the list when its object goes, and nothing puts it
//! back, because it no longer names the channel: a dead object is never named (N7), and none has to wait
//! until its events are read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use cq_core::transport::EventError;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::error::{CreateError, Limit};
use crate::fabric::Fabric;
use crate::layout::{ChannelSlot, Entry, EventNode, MAX_CHANNELS, MAX_CQ, MAX_QP, QP_EVENTS};
use crate::sync::{self, AtomicU32};

/// Of whom an event speaks, and of what kind it is. Each has a number, by which it stands in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The completion queue at this index got what it was armed for.
    Completion(u32),
    /// The completion queue at this index overran.
    Overrun(u32),
    /// Something happened to the queue pair at this index; the second number says what.
    Qp(u32, u32),
}

const CQS: u32 = MAX_CQ as u32;
const QPS: u32 = MAX_QP as u32;
const KINDS: u32 = QP_EVENTS as u32;
const FIRST_QP: u32 = 2 * CQS;
/// How many sources there are.
const SOURCES: u32 = FIRST_QP + QPS * KINDS;

impl Source {
    /// Any index will do: it is taken modulo the size of its table.
    const fn to_number(self) -> u32 {
        match self {
            Self::Completion(cq) => cq % CQS,
            Self::Overrun(cq) => CQS + cq % CQS,
            Self::Qp(qp, kind) => FIRST_QP + qp % QPS * KINDS + kind % KINDS,
        }
    }

    /// Any number is one.
    const fn from_number(number: u32) -> Self {
        match number % SOURCES {
            cq if cq < CQS => Self::Completion(cq),
            cq if cq < FIRST_QP => Self::Overrun(cq - CQS),
            qp => Self::Qp((qp - FIRST_QP) / KINDS, qp % KINDS),
        }
    }

    fn node(self, fabric: &'static Fabric) -> &'static EventNode {
        match self {
            Self::Completion(cq) => &fabric.cq(cq).completion,
            Self::Overrun(cq) => &fabric.cq(cq).overrun,
            Self::Qp(qp, kind) => &fabric.qp(qp).events[kind as usize % QP_EVENTS],
        }
    }
}

fn link(fabric: &'static Fabric) -> impl Fn(u32) -> &'static AtomicU32 {
    move |number| &Source::from_number(number).node(fabric).next
}

/// A channel's place in the table and its descriptor; ends when its last user does.
#[derive(Debug)]
pub struct Bell {
    fabric: &'static Fabric,
    index: u32,
    fd: Arc<OwnedFd>,
}

impl Bell {
    pub fn new(fabric: &'static Fabric) -> Result<Self, CreateError> {
        let full = CreateError::TableFull { what: Limit::Channels, max: MAX_CHANNELS as u32 };
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| CreateError::NoDescriptor { errno: errno.raw_os_error() })?;
        let (index, _) = fabric.tables().channels.claim().ok_or(full)?;
        let fd = Arc::new(fd);
        set_bell(fabric, index, Some(Arc::clone(&fd)));
        Ok(Self { fabric, index, fd })
    }

    /// The device.
    pub const fn fabric(&self) -> &'static Fabric {
        self.fabric
    }

    /// From now on the events of this source come here.
    pub fn attach(&self, source: Source) {
        let node = source.node(self.fabric);
        let _guard = self.slot().lock.lock();
        sync::store_u32(&node.pending, 0);
        sync::store_u32(&node.channel, self.index + 1);
    }

    /// Events of this source come here no more, and those that nobody read are gone.
    pub fn detach(&self, source: Source) {
        let node = source.node(self.fabric);
        let _guard = self.slot().lock.lock();
        sync::store_u32(&node.channel, 0);
        if sync::load_u32(&node.pending) > 0 {
            sync::store_u32(&node.pending, 0);
            self.slot().list.remove(source.to_number(), SOURCES, link(self.fabric));
            self.hush_if_empty();
        }
    }

    /// Takes the event that has waited longest; `name` makes of its source what the reader gets, while the
    /// object can't go. A source with several comes again after the others that have some.
    pub fn take<T>(&self, name: impl FnOnce(Source) -> T) -> Option<T> {
        let (channel, link) = (self.slot(), link(self.fabric));
        let _guard = channel.lock.lock();
        let number = channel.list.first()?;
        let source = Source::from_number(number);
        let node = source.node(self.fabric);
        channel.list.remove(number, 1, &link);
        let left = sync::load_u32(&node.pending).saturating_sub(1);
        sync::store_u32(&node.pending, left);
        if left > 0 {
            channel.list.append(number, &link);
        }
        self.hush_if_empty();
        Some(name(source))
    }

    /// Sleeps until there may be an event, or the time is over: then false. What was slept is taken off
    /// `left`.
    pub fn block(&self, left: &mut Option<Duration>) -> Result<bool, EventError> {
        loop {
            let start = Instant::now();
            // A time that the system can't express is longer than anyone waits.
            let limit = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
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

    fn slot(&self) -> &'static ChannelSlot {
        self.fabric.channel(self.index)
    }

    /// Makes the descriptor unreadable, under the lock, if the list is empty. It may have been already.
    fn hush_if_empty(&self) {
        if self.slot().list.first().is_none() {
            let _ = rustix::io::read(&self.fd, &mut [0; 8]);
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
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

/// Whether the events of this source come to anybody.
#[inline]
pub fn is_attached(fabric: &'static Fabric, source: Source) -> bool {
    sync::load_u32(&source.node(fabric).channel) != 0
}

/// Adds an event of a source to its channel, if it has one and `is_meant` says, while the object can't go,
/// that it is still the one of which the event speaks.
pub fn raise(fabric: &'static Fabric, source: Source, is_meant: impl FnOnce() -> bool) {
    let node = source.node(fabric);
    let Some(index) = sync::load_u32(&node.channel).checked_sub(1) else { return };
    let channel = fabric.channel(index);
    let _guard = channel.lock.lock();
    if sync::load_u32(&node.channel) != index + 1 || !is_meant() {
        return;
    }
    let pending = sync::load_u32(&node.pending);
    sync::store_u32(&node.pending, pending.saturating_add(1));
    if pending == 0 {
        let was_empty = channel.list.first().is_none();
        channel.list.append(source.to_number(), link(fabric));
        if was_empty {
            ring(fabric, index);
        }
    }
}

/// Makes the descriptor readable. An eventfd at its maximum already is.
fn ring(fabric: &Fabric, index: u32) {
    let bell = fabric.bell(index).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(fd) = &*bell {
        let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_a_number_of_its_own() {
        for number in 0..SOURCES {
            assert_eq!(Source::from_number(number).to_number(), number);
        }
        assert_eq!(Source::from_number(u32::MAX).to_number(), u32::MAX % SOURCES);
    }
}
