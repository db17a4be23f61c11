//! What every channel is made of, whether it carries the events of completion queues or the asynchronous
//! ones of a context: a descriptor to sleep on, and the list of those that have events.
//!
//! # How events travel
//! Events are counted at each source, so however many nobody reads, nothing overflows and nobody waits (N9). What
//! tells the channel's owner of them is [`channel`](crate::protocol::channel): no lock, so that a process which is
//! stopped over an event of its keeps no other one back. The descriptor, a FIFO that every process of the fabric can
//! write to (X6), carries only that there is something to look for. An event is counted in the life of the source
//! that it speaks of: a dead object is never named (N7), and none has to wait until its events are read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cq_core::transport::{EventError, Woken};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::completion::fifo;
use crate::error::{CreateError, Limit};
use crate::fabric::Fabric;
use crate::layout::{Entry, QP_EVENTS};
use crate::lifecycle::deaths;
use crate::protocol::channel::{Collected, Descriptor, EventNode, Events, Unwritten};
use crate::protocol::steps::{self, Step};
use crate::sync;

/// Of whom an event speaks, and of what kind it is. Each has a number, by which it is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The completion queue at this index got what it was armed for.
    Completion(u32),
    /// The completion queue at this index overran.
    Overrun(u32),
    /// The limit of the shared receive queue at this index was reached.
    Srq(u32),
    /// Something happened to the queue pair at this index; the second number says what.
    Qp(u32, u32),
}

const KINDS: u32 = QP_EVENTS as u32;

impl Source {
    /// Any index will do: it is taken modulo the size of its table.
    fn to_number(self, fabric: &'static Fabric) -> u32 {
        let tables = fabric.tables();
        let (cqs, srqs, qps) = (tables.cqs.len(), tables.srqs.len(), tables.qps.len());
        match self {
            Self::Completion(cq) => tables.cqs.index(cq),
            Self::Overrun(cq) => cqs + tables.cqs.index(cq),
            Self::Srq(srq) => 2 * cqs + tables.srqs.index(srq),
            Self::Qp(qp, kind) => 2 * cqs + srqs + kind % KINDS * qps + tables.qps.index(qp),
        }
    }

    /// Any number is one.
    fn from_number(number: u32, fabric: &'static Fabric) -> Self {
        let tables = fabric.tables();
        let (cqs, srqs, qps) = (tables.cqs.len(), tables.srqs.len(), tables.qps.len());
        let number = number % sources(fabric);
        let Some(rest) = number.checked_sub(2 * cqs) else {
            return number.checked_sub(cqs).map_or(Self::Completion(number), Self::Overrun);
        };
        rest.checked_sub(srqs).map_or(Self::Srq(rest), |rest| Self::Qp(rest % qps, rest / qps))
    }

    fn node(self, fabric: &'static Fabric) -> &'static EventNode {
        match self {
            Self::Completion(cq) => &fabric.cq(cq).completion,
            Self::Overrun(cq) => &fabric.cq(cq).overrun,
            Self::Srq(srq) => &fabric.srq(srq).limit,
            Self::Qp(qp, kind) => &fabric.qp(qp).events[kind as usize % QP_EVENTS],
        }
    }
}

/// How many sources there are.
fn sources(fabric: &'static Fabric) -> u32 {
    let tables = fabric.tables();
    2 * tables.cqs.len() + tables.srqs.len() + KINDS * tables.qps.len()
}

/// The events of the channel at an index.
fn events(
    fabric: &'static Fabric,
    index: u32,
) -> Events<'static, impl Fn(u32) -> &'static EventNode> {
    let node = move |number| Source::from_number(number, fabric).node(fabric);
    Events::new(&fabric.channel(index).board, index, sources(fabric), node)
}

/// A channel's place in the table and its descriptor; ends when its last user does.
#[derive(Debug)]
pub struct Bell {
    fabric: &'static Fabric,
    index: u32,
    fd: Arc<OwnedFd>,
    /// Locked by whichever thread reads events, or attaches or detaches a source.
    collected: Mutex<Collected>,
}

impl Descriptor for OwnedFd {
    fn write(&self) {
        fifo::fill(self);
    }

    fn empty(&self) {
        fifo::empty(self);
    }
}

impl Bell {
    pub fn new(fabric: &'static Fabric) -> Result<Self, CreateError> {
        if !fabric.is_ours() {
            return Err(CreateError::Forked);
        }
        let channels = &fabric.tables().channels;
        let full = CreateError::TableFull { what: Limit::Channels, max: channels.len() };
        let (index, generation) =
            deaths::take(fabric, || channels.claim(fabric.place())).ok_or(full)?;
        events(fabric, index).begin();
        sync::store(&fabric.channel(index).unheard, 0);
        match fifo::make(&fabric.path().bell(index)) {
            Ok(fd) => {
                let fd = Arc::new(fd);
                fabric.bells().keep(index, generation, Arc::clone(&fd));
                Ok(Self { fabric, index, fd, collected: Mutex::default() })
            }
            Err(errno) => {
                fabric.channel(index).life().end(fabric.place());
                Err(CreateError::NoDescriptor { errno: errno.raw_os_error() })
            }
        }
    }

    /// The device.
    pub const fn fabric(&self) -> &'static Fabric {
        self.fabric
    }

    /// From now on the events of this source come here. Not in a forked child, which makes none.
    pub fn attach(&self, source: Source) {
        let _collected = self.collected();
        self.events().attach(source.to_number(self.fabric));
    }

    /// Events of this source come here no more, and those that nobody read are gone.
    pub fn detach(&self, source: Source) {
        if !self.fabric.is_ours() {
            return;
        }
        let source = source.to_number(self.fabric);
        self.events().detach(source, &mut self.collected(), &*self.fd);
    }

    /// Takes the event that has waited longest; `name` makes of its source what the reader gets, while the
    /// object can't go. A source with several comes again after the others that have some. Waits for nobody but
    /// other threads of this process.
    ///
    /// # Errors
    /// This is a forked child, and the channel its parent's.
    pub fn take<T>(&self, name: impl FnOnce(Source) -> T) -> Result<Option<T>, EventError> {
        self.check()?;
        let mut collected = self.collected();
        let source = self.events().take(&mut collected, &*self.fd);
        Ok(source.map(|number| name(Source::from_number(number, self.fabric))))
    }

    /// As a thread does that takes events.
    #[cfg(test)]
    pub fn hold(&self) -> impl Drop {
        self.collected()
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A forked child has the parent's descriptor, and must not read it empty.
    fn check(&self) -> Result<(), EventError> {
        if self.fabric.is_ours() {
            return Ok(());
        }
        Err(EventError::Device(Errno::NODEV.raw_os_error()))
    }

    /// Sleeps until there may be an event, or the deadline has passed, or this thread has handled a signal.
    pub fn block(&self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        self.check()?;
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A time that the system can't express is longer than anyone waits.
        let limit = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], limit.as_ref()) {
            Ok(0) => Ok(Woken::DeadlinePassed),
            Ok(_) => Ok(Woken::Event),
            Err(Errno::INTR) => Ok(Woken::Interrupted),
            Err(errno) => Err(EventError::Device(errno.raw_os_error())),
        }
    }

    fn events(&self) -> Events<'static, impl Fn(u32) -> &'static EventNode> {
        events(self.fabric, self.index)
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        if !self.fabric.is_ours() {
            return;
        }
        self.fabric.bells().forget(self.index);
        remove(self.fabric, self.index);
        self.fabric.channel(self.index).life().end(self.fabric.place());
    }
}

/// Removes what the channel at an index has outside the tables.
pub fn remove(fabric: &'static Fabric, index: u32) {
    fifo::remove(&fabric.path().bell(index));
}

/// Whether the events of this source come to anybody.
#[inline]
pub fn is_attached(fabric: &'static Fabric, source: Source) -> bool {
    source.node(fabric).channel().is_some()
}

/// Adds an event of a source to its channel, if it has one and `is_meant` says that the object which the source has
/// is the one of which the event speaks.
pub fn raise(fabric: &'static Fabric, source: Source, is_meant: impl Fn() -> bool) {
    let Some(index) = source.node(fabric).channel() else { return };
    let events = events(fabric, index);
    if let Some(unwritten) = events.raise(source.to_number(fabric), is_meant) {
        ring(fabric, index, unwritten);
    }
}

/// Has every owner of a channel look at the sources that have unread events: a process that died may have counted
/// one, and not told the owner.
#[cold]
pub fn remark(fabric: &'static Fabric) {
    for number in 0..sources(fabric) {
        let Some(index) = Source::from_number(number, fabric).node(fabric).channel() else {
            continue;
        };
        if let Some(unwritten) = events(fabric, index).remark(number) {
            ring(fabric, index, unwritten);
        }
    }
}

/// Makes the descriptor of the channel at an index readable. Where this process can't open it, the
/// owner's service thread does it.
fn ring(fabric: &'static Fabric, index: u32, unwritten: Unwritten) {
    let channel = fabric.channel(index);
    let Some((place, generation)) = channel.life().holder() else { return };
    if fabric.bells().ring(index, generation, || fifo::open(&fabric.path().bell(index))) {
        steps::done(Step::Written);
        events(fabric, index).written(unwritten);
    } else {
        sync::release(&channel.unheard, 1);
        fabric.call(place);
    }
}

/// Rings the channels of this process that another one could not ring.
pub fn ring_unheard(fabric: &'static Fabric) {
    for (index, channel) in fabric.tables().channels.all_of(fabric.place()) {
        if sync::swap_if(&channel.unheard, 1, 0).is_ok() {
            let Some((_, generation)) = channel.life().holder() else { continue };
            fabric.bells().ring(index, generation, || fifo::open(&fabric.path().bell(index)));
        }
    }
}

#[cfg(test)]
mod tests;
