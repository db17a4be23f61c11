//! What every channel is made of, whether it carries the events of completion queues or the asynchronous
//! ones of a context: a descriptor to sleep on, and the list of those that have events.
//!
//! # How events travel
//! Events are counted at each source, and a source that has some is in its channel's list once: so however
//! many nobody reads, nothing overflows and nobody waits (N9). The descriptor, a FIFO that every process of
//! the fabric can write to (X6), carries only that the list is not empty: it is written when the list gets
//! its first source and read when it has none, both under the channel's lock. A source leaves the list when
//! its object goes, and nothing puts it back, because it no longer names the channel: a dead object is never
//! named (N7), and none has to wait until its events are read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cq_core::transport::EventError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::{CreateError, Limit};
use crate::fabric::Fabric;
use crate::fifo;
use crate::layout::{Entry, QP_EVENTS};
use crate::lock::{Guard, Stuck};
use crate::protocol::channel::{EventNode, Events};
use crate::sweep;
use crate::sync;

/// Of whom an event speaks, and of what kind it is. Each has a number, by which it stands in a list.
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

/// Bits of an index in a source's number; above them is its kind.
const INDEX_BITS: u32 = 24;
const INDEX: u32 = (1 << INDEX_BITS) - 1;
const KINDS: u32 = QP_EVENTS as u32;

impl Source {
    /// Any index will do: it is taken modulo the size of its table.
    const fn to_number(self) -> u32 {
        let (kind, index) = match self {
            Self::Completion(cq) => (0, cq),
            Self::Overrun(cq) => (1, cq),
            Self::Srq(srq) => (2, srq),
            Self::Qp(qp, kind) => (3 + kind % KINDS, qp),
        };
        kind << INDEX_BITS | (index & INDEX)
    }

    /// Any number is one.
    const fn from_number(number: u32) -> Self {
        let index = number & INDEX;
        match number >> INDEX_BITS {
            0 => Self::Completion(index),
            1 => Self::Overrun(index),
            2 => Self::Srq(index),
            kind => Self::Qp(index, (kind - 3) % KINDS),
        }
    }

    /// All that there are, each once.
    fn all(fabric: &'static Fabric) -> impl Iterator<Item = Self> {
        let tables = fabric.tables();
        let (cqs, srqs, qps) = (tables.cqs.len(), tables.srqs.len(), tables.qps.len());
        let kinds = (0..KINDS).flat_map(move |kind| (0..qps).map(move |qp| Self::Qp(qp, kind)));
        let of_cqs = (0..cqs).map(Self::Completion).chain((0..cqs).map(Self::Overrun));
        of_cqs.chain((0..srqs).map(Self::Srq)).chain(kinds)
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

/// The events of the channel at an index, while its lock is held.
fn events(
    fabric: &'static Fabric,
    index: u32,
) -> Events<'static, impl Fn(u32) -> &'static EventNode> {
    let node = move |number| Source::from_number(number).node(fabric);
    Events::new(&fabric.channel(index).list, index, sources(fabric), node)
}

/// Takes the lock of the channel at an index. From a holder that died it is inherited, and the list made anew.
fn lock(fabric: &'static Fabric, index: u32) -> Result<Guard<'static>, Stuck> {
    fabric.lock(&fabric.channel(index).lock, || {
        if events(fabric, index).rebuild(Source::all(fabric).map(Source::to_number)) {
            ring(fabric, index);
        }
    })
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
        if !fabric.is_ours() {
            return Err(CreateError::Forked);
        }
        let channels = &fabric.tables().channels;
        let full = CreateError::TableFull { what: Limit::Channels, max: channels.len() };
        let (index, generation) =
            sweep::take(fabric, || channels.claim(fabric.place())).ok_or(full)?;
        {
            let _guard = lock(fabric, index);
            events(fabric, index).begin();
        }
        match fifo::make(&fabric.path().bell(index)) {
            Ok(fd) => {
                let fd = Arc::new(fd);
                fabric.bells().keep(index, generation, Arc::clone(&fd));
                Ok(Self { fabric, index, fd })
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

    /// From now on the events of this source come here.
    pub fn attach(&self, source: Source) {
        let _guard = lock(self.fabric, self.index);
        self.events().attach(source.to_number());
    }

    /// Events of this source come here no more, and those that nobody read are gone.
    pub fn detach(&self, source: Source) {
        if !self.fabric.is_ours() {
            return;
        }
        let _guard = lock(self.fabric, self.index);
        self.events().detach(source.to_number());
        self.hush_if_empty();
    }

    /// Takes the event that has waited longest; `name` makes of its source what the reader gets, while the
    /// object can't go. A source with several comes again after the others that have some.
    ///
    /// # Errors
    /// This is a forked child, and the channel its parent's.
    pub fn take<T>(&self, name: impl FnOnce(Source) -> T) -> Result<Option<T>, EventError> {
        self.check()?;
        let _guard = lock(self.fabric, self.index);
        let source = self.events().take();
        self.hush_if_empty();
        Ok(source.map(|number| name(Source::from_number(number))))
    }

    /// A forked child has the parent's descriptor, and must not read it empty.
    fn check(&self) -> Result<(), EventError> {
        if self.fabric.is_ours() {
            return Ok(());
        }
        Err(EventError::Device(Errno::NODEV.raw_os_error()))
    }

    /// Sleeps until there may be an event, or the time is over: then false. What was slept is taken off
    /// `left`.
    pub fn block(&self, left: &mut Option<Duration>) -> Result<bool, EventError> {
        loop {
            self.check()?;
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

    fn events(&self) -> Events<'static, impl Fn(u32) -> &'static EventNode> {
        events(self.fabric, self.index)
    }

    /// Makes the descriptor unreadable, under the lock, if the list is empty. It may have been already.
    fn hush_if_empty(&self) {
        if self.events().is_empty() {
            fifo::empty(&self.fd);
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

/// Waits until whoever is changing the list of the channel at an index is through.
#[cold]
pub fn outwait(fabric: &'static Fabric, index: u32) {
    drop(lock(fabric, index));
}

/// Whether the events of this source come to anybody.
#[inline]
pub fn is_attached(fabric: &'static Fabric, source: Source) -> bool {
    source.node(fabric).channel().is_some()
}

/// Adds an event of a source to its channel, if it has one and `is_meant` says, while the object can't go,
/// that it is still the one of which the event speaks.
pub fn raise(fabric: &'static Fabric, source: Source, is_meant: impl FnOnce() -> bool) {
    let Some(index) = source.node(fabric).channel() else { return };
    add(fabric, index, &lock(fabric, index), || {
        is_meant() && events(fabric, index).raise(source.to_number())
    });
}

/// Rings the channel at an index, if `raise`, for which its lock is held, says so. Where that can't be had, the
/// sleeper is woken at least.
fn add(
    fabric: &'static Fabric,
    index: u32,
    had: &Result<Guard<'static>, Stuck>,
    raise: impl FnOnce() -> bool,
) {
    if had.is_err() || raise() {
        ring(fabric, index);
    }
}

/// Makes the descriptor of the channel at an index readable. Where this process can't open it, the
/// owner's service thread does it.
fn ring(fabric: &'static Fabric, index: u32) {
    let channel = fabric.channel(index);
    let Some((place, generation)) = channel.life().holder() else { return };
    if !fabric.bells().ring(index, generation, || fifo::open(&fabric.path().bell(index))) {
        sync::release(&channel.unheard, 1);
        fabric.call(place);
    }
}

/// Rings the channels of this process that another one could not ring.
pub fn ring_unheard(fabric: &'static Fabric) {
    for (index, channel) in fabric.tables().channels.all_of(fabric.place()) {
        if sync::swap_if(&channel.unheard, 1, 0).is_ok() {
            ring(fabric, index);
        }
    }
}

#[cfg(test)]
mod tests;
