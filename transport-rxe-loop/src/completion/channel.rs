//! Event channels, for the events of completion queues and for the asynchronous events of a context: a descriptor to
//! wait on, and what is counted at the sources of events.
//!
//! # How events travel
//! The descriptor is a FIFO that every process of the fabric can write to (X6). What is in it are the events, so it is
//! readable exactly while one can be taken (N14). Events are counted at each source, too, so unread events never overflow or
//! block (N9). [`channel`](crate::protocol::channel) has the protocol, which has no lock between processes, so that a process
//! suspended while it raises an event delays no other. An event belongs to one life of its source: no event names a destroyed
//! object (N7), and no object waits for its events to be taken.

mod source;

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use cq_core::transport::{EventError, Woken};
use cq_verbs::descriptor;
use rustix::io::Errno;
use thiserror::Error;

use self::source::count;
pub use self::source::{QP_EVENTS, Source, nodes};
use super::Completions;
use super::fifo::{self, Fifo};
use crate::conditions::FORKED;
use crate::error::{CreateError, LimitKind};
use crate::protocol::channel::{Board, EventNode, Events, Owned, Pipe, Unopened};
use crate::protocol::life::Life;
use crate::protocol::number::ChannelIndex;
use crate::shm::descriptor::KeptFd;
use crate::shm::system::SystemError;
use crate::shm::table::{Entry, entries, shared};
use crate::sync::{self, AtomicU32};
use crate::trace;

/// A channel, of whose events the [sources](Source) have numbers.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct ChannelSlot {
    life: Life,
    pub board: Board,
    /// What its owner is to do: [`PARKED`] and [`UNSURE`].
    pub owed: AtomicU32,
}

/// Events are parked: the process that raised them could not open the descriptor.
pub const PARKED: u32 = 1;
/// A process that is dead may have counted events without writing their tokens.
const UNSURE: u32 = 2;

entries!(ChannelSlot: ChannelIndex);
shared!(EventNode);

/// The events of the channel at an index.
fn events(
    completions: &'static Completions,
    index: ChannelIndex,
) -> Events<'static, impl Fn(u32) -> &'static EventNode> {
    let node = move |number| Source::from_number(number, completions).node(completions);
    Events::new(&completions.channels.at(index).board, index, node)
}

/// A channel's table entry and its descriptor. It is freed with its last user.
#[derive(Debug)]
pub struct EventChannel {
    /// The process state that the channel belongs to.
    pub completions: &'static Completions,
    index: ChannelIndex,
    generation: u32,
    /// The one that the program knows. The device uses another one once the program has closed it.
    fd: Arc<KeptFd>,
    /// Locked while a thread takes events, or attaches or detaches a source.
    owned: Arc<Mutex<Owned>>,
}

/// Why a channel could not be created.
#[derive(Debug, Error)]
pub enum ChannelError {
    /// The device refuses.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// Its FIFO can't be had.
    #[error(transparent)]
    System(#[from] SystemError),
}

impl From<ChannelError> for CreateError {
    fn from(why: ChannelError) -> Self {
        match why {
            ChannelError::Create(why) => why,
            ChannelError::System(why) => why.for_object("a FIFO in /dev/shm").into(),
        }
    }
}

impl EventChannel {
    pub fn new(completions: &'static Completions) -> Result<Self, ChannelError> {
        if !completions.shm.is_ours() {
            return Err(CreateError::from(FORKED).into());
        }
        let channels = &completions.channels;
        let full = CreateError::TableFull { what: LimitKind::Channels, max: channels.len() };
        let (index, generation) = channels.claim(completions.shm.attachment()).ok_or(full)?;
        events(completions, index).begin();
        sync::store(&completions.channels.at(index).owed, 0);
        match fifo::make(&completions.shm.path().fifo(index.get())) {
            Ok(fd) => {
                let fd = Arc::new(fd);
                completions.fifos.keep(index, generation, Arc::clone(&fd));
                let owned = Arc::default();
                sync::lock(&completions.registered).insert(index, Arc::clone(&owned));
                trace::event!(DEBUG, channel = index.get(), "channel created");
                Ok(Self { completions, index, generation, fd, owned })
            }
            Err(error) => {
                completions.channels.at(index).life().end(completions.shm.attachment());
                Err(error.into())
            }
        }
    }

    /// Attaches a source: its events are passed to this channel. A forked child attaches none.
    pub fn attach(&self, source: Source) {
        self.events().attach(source.to_number(self.completions), &mut sync::lock(&self.owned));
    }

    /// Detaches a source, and discards its unread events.
    pub fn detach(&self, source: Source) {
        if !self.completions.shm.is_ours() {
            return;
        }
        let (source, pipe) = (source.to_number(self.completions), self.pipe());
        let gone = self.events().detach(source, &mut sync::lock(&self.owned), &pipe);
        if let Some(gone) = gone {
            self.events().read_away(gone, || sync::lock(&self.owned), &pipe);
        }
        if pipe.was_torn() {
            restore(&self.events(), &sync::lock(&self.owned), &pipe);
        }
    }

    /// Whether the events of a source are passed to this channel.
    pub fn has(&self, source: Source) -> bool {
        source.node(self.completions).channel() == Some(self.index)
    }

    /// Takes the next event. `name` converts its source while the object can't be destroyed. It waits only for other threads
    /// of this process.
    ///
    /// # Errors
    /// This is a forked child, and the channel its parent's.
    pub fn take<T>(&self, name: impl FnOnce(Source) -> T) -> Result<Option<T>, EventError> {
        self.check()?;
        let (owned, fifo) = (sync::lock(&self.owned), self.fifo());
        let pipe = Fifo::new(|| fifo.clone());
        if self.was_reopened() {
            restore(&self.events(), &owned, &pipe);
        }
        let mut source = self.events().take(&owned, &pipe);
        if pipe.was_torn() {
            restore(&self.events(), &owned, &pipe);
            source = source.or_else(|| self.events().take(&owned, &pipe));
        }
        Ok(source.map(|number| name(Source::from_number(number, self.completions))))
    }

    /// As another process leaves an event whose descriptor it could not open.
    #[cfg(test)]
    pub fn park(&self, source: Source) {
        let pipe = Fifo::new(|| None);
        let raised = self.events().raise(source.to_number(self.completions), || true, &pipe);
        if let Err(Unopened) = raised {
            sync::release(&self.completions.channels.at(self.index).owed, PARKED);
        }
    }

    /// As a thread does that takes events.
    #[cfg(test)]
    pub fn hold(&self) -> impl Drop {
        sync::lock(&self.owned)
    }

    /// A forked child has the parent's descriptor, and must not drain it.
    fn check(&self) -> Result<(), EventError> {
        if self.completions.shm.is_ours() {
            return Ok(());
        }
        Err(EventError::Device(Errno::NODEV.raw_os_error()))
    }

    /// Waits until there is an event, or the deadline has passed, or this thread has handled a signal.
    pub fn block(&self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        self.check()?;
        let fd = self.fifo().ok_or(EventError::Device(Errno::BADF.raw_os_error()))?;
        if self.was_reopened() {
            restore(&self.events(), &sync::lock(&self.owned), &self.pipe());
        }
        descriptor::block(fd.unchecked(), deadline)
    }

    /// Its descriptor, which is opened again if the program has closed it.
    fn fifo(&self) -> Option<Arc<KeptFd>> {
        let Self { completions, index, generation, .. } = *self;
        completions.fifos.get(index, generation, || open(completions, index))
    }

    /// Whether that has happened. What was in it may be gone: other openings have it, if there are any.
    fn was_reopened(&self) -> bool {
        self.completions.fifos.was_reopened(self.index)
    }

    fn pipe(&self) -> Fifo<impl Fn() -> Option<Arc<KeptFd>> + use<>> {
        pipe(self.completions, self.index, self.generation)
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
        {
            // Nobody does what is owed to it meanwhile, or opens the descriptor again.
            let _owned = sync::lock(&self.owned);
            sync::lock(&self.completions.registered).remove(&self.index);
            self.completions.fifos.forget(self.index);
            remove(self.completions, self.index);
        }
        self.completions.channels.at(self.index).life().end(self.completions.shm.attachment());
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
    let Some((_, generation)) = completions.channels.at(index).life().holder() else { return };
    let (number, pipe) = (source.to_number(completions), pipe(completions, index, generation));
    if let Err(Unopened) = events(completions, index).raise(number, is_meant, &pipe) {
        call(completions, index, PARKED);
    }
}

/// Has the channels looked at that have unread events: a dead process may have counted an event without writing its token. The
/// owner of a channel does that, here or in its own process.
#[cold]
pub fn recover(completions: &'static Completions) {
    let nodes = (0..count(completions)).map(|nth| Source::from_number(nth, completions));
    let nodes = nodes.map(|source| source.node(completions)).filter(|node| node.unread() > 0);
    let indices: BTreeSet<_> = nodes.filter_map(EventNode::channel).collect();
    for index in indices {
        call(completions, index, UNSURE);
    }
    signal_pending(completions);
}

/// Has the owner of a channel do something.
fn call(completions: &'static Completions, index: ChannelIndex, owed: u32) {
    let channel = completions.channels.at(index);
    let Some((attachment, _)) = channel.life().holder() else { return };
    sync::fetch_update(&channel.owed, |seen| Some(seen | owed));
    completions.shm.call(attachment);
}

/// Does what is owed to the channels of this process.
pub fn signal_pending(completions: &'static Completions) {
    for (index, channel) in completions.channels.all_of(completions.shm.attachment()) {
        let mut owed = 0;
        sync::fetch_update(&channel.owed, |seen| {
            owed = seen;
            (seen != 0).then_some(0)
        });
        if owed == 0 {
            continue;
        }
        let registered = sync::lock(&completions.registered).get(&index).map(Arc::clone);
        let (Some(owned), Some((_, generation))) = (registered, channel.life().holder()) else {
            continue;
        };
        let (events, pipe) = (events(completions, index), pipe(completions, index, generation));
        let lock = || lock_registered(completions, index, &owned);
        if owed & UNSURE != 0 {
            events.recover(lock, &pipe);
        }
        if let Some(owned) = lock() {
            events.refill(&owned, &pipe);
            if pipe.was_torn() {
                restore(&events, &owned, &pipe);
            }
        }
    }
}

/// Has all events written that have no token. A process that is about to write one writes a void token, then.
fn restore(
    events: &Events<'static, impl Fn(u32) -> &'static EventNode>,
    owned: &Owned,
    pipe: &impl Pipe,
) {
    events.restore(&events.missing(owned, pipe), owned, pipe);
}

/// Locks what the channel at an index keeps to itself; `None` if that one has ended, and the index may be another one's.
fn lock_registered<'o>(
    completions: &Completions,
    index: ChannelIndex,
    owned: &'o Arc<Mutex<Owned>>,
) -> Option<MutexGuard<'o, Owned>> {
    let locked = sync::lock(owned);
    let is_there =
        sync::lock(&completions.registered).get(&index).is_some_and(|of| Arc::ptr_eq(of, owned));
    is_there.then_some(locked)
}

/// The descriptor of the channel at an index, of a generation.
fn pipe(
    completions: &'static Completions,
    index: ChannelIndex,
    generation: u32,
) -> Fifo<impl Fn() -> Option<Arc<KeptFd>>> {
    Fifo::new(move || completions.fifos.get(index, generation, || open(completions, index)))
}

/// Opens the descriptor of the channel at an index, once those of channels that have ended are closed.
fn open(completions: &'static Completions, index: ChannelIndex) -> Result<KeptFd, Errno> {
    close_ended(completions);
    fifo::open(&completions.shm.path().fifo(index.get()))
}

/// Closes the descriptors of other processes' channels that have ended.
pub fn close_ended(completions: &'static Completions) {
    let generation = |index| Some(completions.channels.at(index).life().holder()?.1);
    completions.fifos.retain(|index, of| generation(index) == Some(of));
}

#[cfg(test)]
mod tests;
