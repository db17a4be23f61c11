//! Event channels: queues of events behind a descriptor that is readable exactly while there is one. Each event wakes those
//! who wait for the descriptor, by a message that arrives at one of those that it watches.
//!
//! The descriptor is an epoll instance that watches the ends whose next message is an event, listeners, a timer for what did
//! not come in time, and a socket that has a message while events are queued here.
//!
//! A program may close these descriptors, and open others that get their numbers. Sockets are [known](KeptFd) by their inode.
//! An epoll instance and a timer have none of their own: the instance is this one if it watches that socket, and the timer is
//! this one if the instance watches it.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
use rustix::time::{self, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};

use super::{IdKey, Queued};
use crate::shm::descriptor::{KeptFd, above_streams, leave_open, socket};
use crate::shm::system::SystemError;

/// An event channel of this process.
#[derive(Debug)]
pub struct Channel {
    pub epoll: Arc<OwnedFd>,
    /// Has a message while events are queued.
    has_events: KeptFd,
    timer: Arc<OwnedFd>,
    queue: VecDeque<Queued>,
    deadlines: BTreeSet<(Instant, IdKey)>,
    /// What the timer is set to.
    set_to: Option<Instant>,
}

/// What a call is for that makes a channel.
pub const OBJECT: &str = "a channel for events of connections";

const TIMER: u64 = 0;
const QUEUE: u64 = 1;
/// The first number of an identifier.
pub const FIRST_ID: u64 = 2;

impl Channel {
    pub fn new() -> Result<Self, SystemError> {
        let epoll = above_streams(|| epoll::create(CreateFlags::CLOEXEC));
        let epoll = epoll.map_err(failed("epoll_create"))?;
        let has_events = own_peer()?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = above_streams(|| time::timerfd_create(TimerfdClockId::Monotonic, flags))
            .map_err(failed("timerfd_create"))?;
        for (fd, number) in [(timer.as_fd(), TIMER), (has_events.unchecked(), QUEUE)] {
            epoll::add(&epoll, fd, EventData::new_u64(number), EventFlags::IN)
                .map_err(failed("epoll_ctl"))?;
        }
        let (queue, deadlines) = (VecDeque::new(), BTreeSet::new());
        let (epoll, timer) = (Arc::new(epoll), Arc::new(timer));
        Ok(Self { epoll, has_events, timer, queue, deadlines, set_to: None })
    }

    /// The epoll instance.
    ///
    /// # Errors
    /// BADF: the program has closed it.
    pub fn epoll(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.watches(self.has_events.get()?, QUEUE)
    }

    fn timer(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.epoll().and_then(|_| self.watches(self.timer.as_fd(), TIMER))?;
        Ok(self.timer.as_fd())
    }

    /// The epoll instance, if it watches this.
    fn watches(&self, fd: BorrowedFd<'_>, number: u64) -> Result<BorrowedFd<'_>, Errno> {
        epoll::modify(&*self.epoll, fd, EventData::new_u64(number), EventFlags::IN)
            .map_err(|_| Errno::BADF)?;
        Ok(self.epoll.as_fd())
    }

    /// Watches a descriptor of an identifier.
    pub fn watch(&self, fd: &KeptFd, id: IdKey) -> Result<(), Errno> {
        epoll::add(self.epoll()?, fd.get()?, EventData::new_u64(id.0), EventFlags::IN)
    }

    /// Watches it no longer. Closing it is not enough: a forked child may have it open.
    pub fn unwatch(&self, fd: &KeptFd) {
        if let (Ok(epoll), Ok(fd)) = (self.epoll(), fd.get()) {
            let _ = epoll::delete(epoll, fd);
        }
    }

    /// Queues an event. That wakes who waits for the descriptor, also if events are queued already: each has one message more,
    /// and then one again.
    pub fn push(&mut self, event: Queued) {
        let is_first = self.queue.is_empty();
        let _ = self.has_events.get().and_then(|fd| {
            write(fd, &[1])?;
            if is_first { Ok(0) } else { read(fd, &mut [0]) }
        });
        self.queue.push_back(event);
    }

    /// Takes the oldest event.
    pub fn pop(&mut self) -> Option<Queued> {
        let event = self.queue.pop_front();
        self.clear_if_empty();
        event
    }

    /// Takes the events that are of an identifier.
    pub fn take_those_of(&mut self, id: IdKey) -> VecDeque<Queued> {
        let (of_it, rest) = self.queue.drain(..).partition(|queued| queued.id == id);
        self.queue = rest;
        self.clear_if_empty();
        of_it
    }

    fn clear_if_empty(&self) {
        if self.queue.is_empty() {
            let _ = self.has_events.get().and_then(|fd| read(fd, &mut [0]));
        }
    }

    /// Sets an identifier's deadline, in place of another.
    pub fn set_deadline(&mut self, id: IdKey, old: Option<Instant>, new: Option<Instant>) {
        old.into_iter().for_each(|old| _ = self.deadlines.remove(&(old, id)));
        self.deadlines.extend(new.map(|new| (new, id)));
        let next = self.deadlines.first().map(|&(at, _)| at);
        if next == self.set_to {
            return;
        }
        self.set_to = next;
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        // 0 disarms it.
        let left = next.map_or(Duration::ZERO, |at| left(at).max(Duration::from_nanos(1)));
        let it_value = Timespec::try_from(left).unwrap_or_default();
        let value = Itimerspec { it_interval: Timespec::default(), it_value };
        let set = |timer| time::timerfd_settime(timer, TimerfdTimerFlags::empty(), &value);
        let _ = self.timer().and_then(set);
    }

    /// An identifier whose time is over.
    pub fn overdue(&self) -> Option<IdKey> {
        let &(at, id) = self.deadlines.first()?;
        (at <= Instant::now()).then_some(id)
    }

    /// The identifiers of which a descriptor is readable.
    pub fn ready(&self) -> Vec<IdKey> {
        const AT_ONCE: usize = 64;
        let mut events = Vec::with_capacity(AT_ONCE);
        let now = Timespec::default();
        let _ = self.epoll().and_then(|epoll| {
            retry_on_intr(|| epoll::wait(epoll, spare_capacity(&mut events), Some(&now)))
        });
        let numbers = events.iter().map(|event| event.data.u64());
        numbers.filter(|&number| number >= FIRST_ID).map(IdKey).collect()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if self.timer().is_err() {
            leave_open(&self.timer);
        }
        if self.epoll().is_err() {
            leave_open(&self.epoll);
        }
    }
}

/// A socket that receives what it sends.
fn own_peer() -> Result<KeptFd, SystemError> {
    let socket = socket(AddressFamily::UNIX, SocketType::DGRAM).and_then(KeptFd::new);
    let socket = socket.map_err(failed("socket"))?;
    let fd = socket.unchecked();
    // The system names it.
    net::bind(fd, &SocketAddrUnix::new_unnamed()).map_err(failed("bind"))?;
    let name = net::getsockname(fd).map_err(failed("getsockname"))?;
    net::connect(fd, &name).map_err(failed("connect"))?;
    Ok(socket)
}

/// The error of a call.
fn failed(call: &'static str) -> impl Fn(Errno) -> SystemError {
    move |errno| SystemError::of(call, OBJECT, errno)
}
