//! Event channels, for the events of completion queues and for the asynchronous events of a context: a descriptor to
//! wait on, and marks for the sources that have events.
//!
//! # How events travel
//! Events are counted at each source, so unread events never overflow or block (N9).
//! [`channel`](crate::protocol::channel) passes them to the channel's owner without a lock, so that a process suspended
//! while it raises one delays no other. The descriptor is a FIFO that every process of the fabric can write to (X6); it
//! only signals that there may be events. An event belongs to one life of its source: no event names a destroyed object
//! (N7), and no object waits for its events.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cq_core::channel::descriptor;
use cq_core::transport::{EventError, Woken};
use rustix::io::Errno;

use super::{Completions, fifo};
use crate::error::{CreateError, Limit};
use crate::protocol::channel::{Board, Collected, Descriptor, EventNode, Events, Unwritten};
use crate::protocol::life::Life;
use crate::protocol::number::{ChannelIndex, CqIndex, QpIndex, SrqIndex};
use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::KeptFd;
use crate::shm::system::SystemError;
use crate::shm::table::{Entry, entries, shared};
use crate::sync::{self, AtomicU32};
use crate::trace;

/// A channel: the marks of those that have unread events, by the numbers of their [sources](Source).
#[derive(Debug)]
#[repr(C, align(128))]
pub struct ChannelSlot {
    life: Life,
    pub board: Board,
    /// Whether its owner is to write the descriptor: the process that raised an event could not open it.
    pub unsignaled: AtomicU32,
}

entries!(ChannelSlot: ChannelIndex);
shared!(EventNode);

/// Kinds of asynchronous events that a queue pair can have.
pub const QP_EVENTS: usize = 5;

/// The object and kind of an event. Each source has a number, by which it is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The completion queue at this index got a completion that it was armed for.
    Completion(CqIndex),
    /// The completion queue at this index overran.
    Overrun(CqIndex),
    /// The limit of the shared receive queue at this index was reached.
    Srq(SrqIndex),
    /// An event of the queue pair at this index; the second number is its kind.
    Qp(QpIndex, u32),
}

const KINDS: u32 = QP_EVENTS as u32;

impl Source {
    /// Any index will do: it is taken modulo the size of its table.
    fn to_number(self, completions: &Completions) -> u32 {
        let [cqs, srqs, qps] = completions.sources();
        match self {
            Self::Completion(cq) => completions.cqs.index(cq).get(),
            Self::Overrun(cq) => cqs + completions.cqs.index(cq).get(),
            Self::Srq(srq) => 2 * cqs + (srq.get() & (srqs - 1)),
            Self::Qp(qp, kind) => 2 * cqs + srqs + kind % KINDS * qps + (qp.get() & (qps - 1)),
        }
    }

    /// Any number is one.
    fn from_number(number: u32, completions: &Completions) -> Self {
        let [cqs, srqs, qps] = completions.sources();
        let number = number % count(completions);
        let Some(rest) = number.checked_sub(2 * cqs) else {
            return match number.checked_sub(cqs) {
                None => Self::Completion(CqIndex::new(number)),
                Some(number) => Self::Overrun(CqIndex::new(number)),
            };
        };
        match rest.checked_sub(srqs) {
            None => Self::Srq(SrqIndex::new(rest)),
            Some(rest) => Self::Qp(QpIndex::new(rest % qps), rest / qps),
        }
    }

    /// Where its events are counted.
    #[inline]
    pub fn node(self, completions: &Completions) -> &'static EventNode {
        match self {
            Self::Completion(cq) => &completions.cq(cq).completion,
            Self::Overrun(cq) => &completions.cq(cq).overrun,
            Self::Srq(_) | Self::Qp(..) => {
                let [cqs, ..] = completions.sources();
                &completions.nodes[(self.to_number(completions) - 2 * cqs) as usize]
            }
        }
    }
}

/// How many sources there are.
fn count(completions: &Completions) -> u32 {
    let [cqs, srqs, qps] = completions.sources();
    2 * cqs + nodes(srqs, qps)
}

/// How many of them are of shared receive queues and queue pairs.
pub const fn nodes(srqs: u32, qps: u32) -> u32 {
    srqs + KINDS * qps
}

/// The events of the channel at an index.
fn events(
    completions: &'static Completions,
    index: ChannelIndex,
) -> Events<'static, impl Fn(u32) -> &'static EventNode> {
    let node = move |number| Source::from_number(number, completions).node(completions);
    Events::new(&completions.channel(index).board, index, count(completions), node)
}

/// A channel's table entry and its descriptor. It is freed with its last user.
#[derive(Debug)]
pub struct EventChannel {
    completions: &'static Completions,
    index: ChannelIndex,
    generation: u32,
    /// The one that the program knows. The device uses another one once the program has closed it.
    fd: Arc<KeptFd>,
    /// Locked while a thread reads events, or attaches or detaches a source.
    collected: Mutex<Collected>,
}

/// Why a channel could not be created.
#[derive(Debug)]
pub enum ChannelError {
    /// The device refuses.
    Create(CreateError),
    /// Its FIFO can't be had.
    System(SystemError),
}

impl From<CreateError> for ChannelError {
    fn from(why: CreateError) -> Self {
        Self::Create(why)
    }
}

impl From<SystemError> for ChannelError {
    fn from(why: SystemError) -> Self {
        Self::System(why)
    }
}

impl From<ChannelError> for CreateError {
    fn from(why: ChannelError) -> Self {
        match why {
            ChannelError::Create(why) => why,
            ChannelError::System(SystemError { call, errno, advice, .. }) => {
                Self::System { call, object: "a FIFO in /dev/shm", errno, advice }
            }
        }
    }
}

impl Descriptor for EventChannel {
    fn write(&self) {
        let Self { completions, index, generation, .. } = *self;
        completions.fifos.fill(index, generation, || open(completions, index));
    }

    fn empty(&self) {
        self.fifo().into_iter().for_each(|fd| fifo::empty(fd.unchecked()));
    }
}

impl EventChannel {
    pub fn new(completions: &'static Completions) -> Result<Self, ChannelError> {
        if !completions.shm.is_ours() {
            return Err(CreateError::Forked.into());
        }
        let channels = &completions.channels;
        let full = CreateError::TableFull { what: Limit::Channels, max: channels.len() };
        let (index, generation) = channels.claim(completions.shm.attachment()).ok_or(full)?;
        events(completions, index).begin();
        sync::store(&completions.channel(index).unsignaled, 0);
        match fifo::make(&completions.shm.path().fifo(index.get())) {
            Ok(fd) => {
                let fd = Arc::new(fd);
                completions.fifos.keep(index, generation, Arc::clone(&fd));
                trace::event!(DEBUG, channel = index.get(), "channel created");
                Ok(Self { completions, index, generation, fd, collected: Mutex::default() })
            }
            Err(error) => {
                completions.channel(index).life().end(completions.shm.attachment());
                Err(error.into())
            }
        }
    }

    /// The process state that the channel belongs to.
    pub const fn completions(&self) -> &'static Completions {
        self.completions
    }

    /// Attaches a source: its events are passed to this channel. A forked child attaches none.
    pub fn attach(&self, source: Source) {
        self.events().attach(source.to_number(self.completions), &mut self.collected());
    }

    /// Detaches a source, and discards its unread events.
    pub fn detach(&self, source: Source) {
        if !self.completions.shm.is_ours() {
            return;
        }
        let source = source.to_number(self.completions);
        self.events().detach(source, &mut self.collected(), self);
    }

    /// Takes the oldest event. `name` converts its source while the object can't be destroyed. A source with several
    /// events is returned again after the others that have some. It waits only for other threads of this process.
    ///
    /// # Errors
    /// This is a forked child, and the channel its parent's.
    pub fn take<T>(&self, name: impl FnOnce(Source) -> T) -> Result<Option<T>, EventError> {
        self.check()?;
        let mut collected = self.collected();
        let source = self.events().take(&mut collected, self);
        Ok(source.map(|number| name(Source::from_number(number, self.completions))))
    }

    /// As a thread does that takes events.
    #[cfg(test)]
    pub fn hold(&self) -> impl Drop {
        self.collected()
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A forked child has the parent's descriptor, and must not drain it.
    fn check(&self) -> Result<(), EventError> {
        if self.completions.shm.is_ours() {
            return Ok(());
        }
        Err(EventError::Device(Errno::NODEV.raw_os_error()))
    }

    /// Waits until there may be an event, or the deadline has passed, or this thread has handled a signal.
    pub fn block(&self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        self.check()?;
        let fd = self.fifo().ok_or(EventError::Device(Errno::BADF.raw_os_error()))?;
        descriptor::block(fd.unchecked(), deadline)
    }

    /// Its descriptor, which is opened again if the program has closed it.
    fn fifo(&self) -> Option<Arc<KeptFd>> {
        let Self { completions, index, generation, .. } = *self;
        completions.fifos.get(index, generation, || open(completions, index))
    }

    fn events(&self) -> Events<'static, impl Fn(u32) -> &'static EventNode> {
        events(self.completions, self.index)
    }
}

impl AsFd for EventChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.unchecked()
    }
}

impl Drop for EventChannel {
    fn drop(&mut self) {
        if !self.completions.shm.is_ours() {
            return;
        }
        self.completions.fifos.forget(self.index);
        remove(self.completions, self.index);
        self.completions.channel(self.index).life().end(self.completions.shm.attachment());
        trace::event!(DEBUG, channel = self.index.get(), "channel destroyed");
    }
}

/// The attachment of a source to a channel, which ends when it is dropped.
#[derive(Debug)]
pub struct Attached {
    channel: Arc<EventChannel>,
    source: Source,
}

impl Attached {
    pub fn new(channel: &Arc<EventChannel>, source: Source) -> Self {
        channel.attach(source);
        Self { channel: Arc::clone(channel), source }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.channel.detach(self.source);
    }
}

/// Removes what the channel at an index has outside the tables.
pub fn remove(completions: &'static Completions, index: ChannelIndex) {
    fifo::remove(&completions.shm.path().fifo(index.get()));
}

/// Adds an event of a source to its channel, if it has one and `is_meant` confirms that the event is of the object
/// that the source has now.
pub fn raise(completions: &'static Completions, source: Source, is_meant: impl Fn() -> bool) {
    let Some(index) = source.node(completions).channel() else { return };
    let events = events(completions, index);
    if let Some(unwritten) = events.raise(source.to_number(completions), is_meant) {
        ring(completions, index, unwritten);
    }
}

/// Marks all sources that have unread events at their channels again: a dead process may have counted an event without
/// signaling it.
#[cold]
pub fn mark_again(completions: &'static Completions) {
    for number in 0..count(completions) {
        let Some(index) = Source::from_number(number, completions).node(completions).channel()
        else {
            continue;
        };
        if let Some(unwritten) = events(completions, index).mark_again(number) {
            ring(completions, index, unwritten);
        }
    }
}

/// Makes the descriptor of the channel at an index readable. Where this process can't open it, the
/// owner's service thread does it.
fn ring(completions: &'static Completions, index: ChannelIndex, unwritten: Unwritten) {
    let channel = completions.channel(index);
    let Some((attachment, generation)) = channel.life().holder() else { return };
    if completions.fifos.fill(index, generation, || open(completions, index)) {
        steps::done(Step::Written);
        events(completions, index).written(unwritten);
    } else {
        sync::release(&channel.unsignaled, 1);
        completions.shm.call(attachment);
    }
}

/// Signals the channels of this process that another one could not signal.
pub fn signal_pending(completions: &'static Completions) {
    for (index, channel) in completions.channels.all_of(completions.shm.attachment()) {
        if sync::cas(&channel.unsignaled, 1, 0).is_ok() {
            let Some((_, generation)) = channel.life().holder() else { continue };
            completions.fifos.fill(index, generation, || open(completions, index));
        }
    }
}

/// Opens the descriptor of the channel at an index, once those of channels that have ended are closed.
fn open(completions: &'static Completions, index: ChannelIndex) -> Result<KeptFd, Errno> {
    close_ended(completions);
    fifo::open(&completions.shm.path().fifo(index.get()))
}

/// Closes the descriptors of other processes' channels that have ended.
pub fn close_ended(completions: &'static Completions) {
    let generation = |index| Some(completions.channel(index).life().holder()?.1);
    completions.fifos.retain(|index, of| generation(index) == Some(of));
}

#[cfg(test)]
mod tests;
