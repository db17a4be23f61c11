//! Event channels: queues of events behind a descriptor that is readable exactly while there is one.
//!
//! The descriptor is an epoll instance that watches the sockets whose next message is an event, the bells of listeners, a
//! timer for what did not come in time, and a counter that is not 0 while events are queued here.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use rustix::time::{timerfd_create, timerfd_settime};

use super::{IdKey, Queued};
use crate::shm::descriptor::above_streams;

/// An event channel of this process.
#[derive(Debug)]
pub struct Channel {
    pub epoll: Arc<OwnedFd>,
    /// Counts while events are queued.
    has_events: OwnedFd,
    timer: OwnedFd,
    queue: VecDeque<Queued>,
    deadlines: BTreeSet<(Instant, IdKey)>,
    /// What the timer is set to.
    set_to: Option<Instant>,
}

/// What makes a channel readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A socket or bell of an identifier.
    Id(IdKey),
    /// The timer.
    Timer,
}

const TIMER: u64 = 0;
const QUEUE: u64 = 1;
/// The first number of an identifier.
pub const FIRST_ID: u64 = 2;

impl Channel {
    pub fn new() -> Result<Self, Errno> {
        let epoll = above_streams(|| epoll::create(CreateFlags::CLOEXEC))?;
        let has_events =
            above_streams(|| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK))?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = above_streams(|| timerfd_create(TimerfdClockId::Monotonic, flags))?;
        for (fd, number) in [(&timer, TIMER), (&has_events, QUEUE)] {
            epoll::add(&epoll, fd, EventData::new_u64(number), EventFlags::IN)?;
        }
        let (queue, deadlines) = (VecDeque::new(), BTreeSet::new());
        Ok(Self { epoll: Arc::new(epoll), has_events, timer, queue, deadlines, set_to: None })
    }

    /// Watches a descriptor of an identifier.
    pub fn watch(&self, fd: impl AsFd, id: IdKey) -> Result<(), Errno> {
        epoll::add(&*self.epoll, fd, EventData::new_u64(id.0), EventFlags::IN)
    }

    /// Watches it no longer. Closing it is not enough: a forked child may have it open.
    pub fn unwatch(&self, fd: impl AsFd) {
        let _ = epoll::delete(&*self.epoll, fd);
    }

    /// Queues an event.
    pub fn push(&mut self, event: Queued) {
        if self.queue.is_empty() {
            let _ = write(&self.has_events, &1u64.to_ne_bytes());
        }
        self.queue.push_back(event);
    }

    /// Takes the oldest event.
    pub fn pop(&mut self) -> Option<Queued> {
        let event = self.queue.pop_front();
        self.settle();
        event
    }

    /// Takes the events that are of an identifier.
    pub fn take_those_of(&mut self, id: IdKey) -> Vec<Queued> {
        let (of_it, rest) = self.queue.drain(..).partition(|queued| queued.id == id);
        self.queue = rest;
        self.settle();
        Vec::from(of_it as VecDeque<Queued>)
    }

    fn settle(&self) {
        if self.queue.is_empty() {
            let _ = read(&self.has_events, &mut [0; 8]);
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
        let left = next.map(|at| at.saturating_duration_since(Instant::now()));
        let it_value = match left.map(Timespec::try_from) {
            // 0 would disarm it.
            Some(Ok(left)) if left == Timespec::default() => Timespec { tv_sec: 0, tv_nsec: 1 },
            Some(Ok(left)) => left,
            None | Some(Err(_)) => Timespec::default(),
        };
        let value = Itimerspec { it_interval: Timespec::default(), it_value };
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &value);
    }

    /// An identifier whose time is over.
    pub fn overdue(&self) -> Option<IdKey> {
        let &(at, id) = self.deadlines.first()?;
        (at <= Instant::now()).then_some(id)
    }

    /// What is ready, but for the queue.
    pub fn ready(&self) -> Vec<Ready> {
        const AT_ONCE: usize = 64;
        let mut events = Vec::with_capacity(AT_ONCE);
        let now = Timespec::default();
        let waited = retry_on_intr(|| {
            epoll::wait(&*self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&now))
        });
        if waited.is_err() {
            return Vec::new();
        }
        let numbers = events.iter().map(|event| event.data.u64());
        numbers
            .filter_map(|number| match number {
                TIMER => Some(Ready::Timer),
                QUEUE => None,
                id => Some(Ready::Id(IdKey(id))),
            })
            .collect()
    }
}
