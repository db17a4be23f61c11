//! The connection manager of this process: its event channels and identifiers. A process works on its connections when it
//! takes events and when it calls. The service thread sends [requests again](again) that could not be sent, and takes those
//! for which a listener had no space.
//!
//! [`protocol::cm`](crate::protocol::cm) has the states and messages, [`channel`] queues events. The [`registry`] has the
//! fabric's [ports](port). Messages go by a [`carrier`], and states and events know nothing else of it: within a machine it is
//! [one datagram](datagram). All of a process' identifiers are behind one lock, which is not held while a thread waits.

pub mod again;
pub mod carrier;
pub mod channel;
mod datagram;
pub mod id;
mod listening;
pub mod port;
pub mod registry;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cq_verbs::setup::QpType;
use rustix::io::Errno;

use self::again::Request;
use self::carrier::{Carrier, Incoming};
use self::channel::Channel;
use self::id::Id;
use self::listening::MAX_BACKLOG;
use self::port::{Place, PortSpace};
use self::registry::Ports;
use crate::protocol::cm::message::{Kind, Message};
use crate::protocol::cm::{Call, Event, Received, Service, State, Step};
use crate::shm::Shm;
use crate::shm::system::SystemError;
use crate::sync;

/// The number of an identifier of this process. It is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdKey(pub u64);

/// The number of an event channel of this process. It is not used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelKey(u64);

/// An event of an identifier.
#[derive(Debug)]
pub struct Queued {
    /// The identifier; for a request, the listener.
    pub id: IdKey,
    /// What happened.
    pub event: Event,
    /// Of a request: its own identifier.
    pub request: Option<IdKey>,
    /// What the peer has sent with it.
    pub message: Option<Message>,
    /// The argument that the program has queued it with.
    pub arg: u64,
}

/// What a process has of its fabric's connection manager.
#[derive(Debug)]
pub struct Connections {
    shm: &'static Shm,
    pub(crate) ports: &'static Ports,
    carrier: &'static dyn Carrier,
    pub(crate) all: Mutex<All>,
}

/// All of it that changes.
#[derive(Debug, Default)]
pub struct All {
    channels: BTreeMap<ChannelKey, Channel>,
    ids: BTreeMap<IdKey, Id>,
    /// Requests that could not be sent, by when they are sent again.
    unsent: BTreeMap<(Instant, IdKey), Request>,
    /// The last pause before those were sent again for which there is no space.
    pause: Duration,
    next: u64,
}

impl Connections {
    /// For an attached process.
    pub fn new(shm: &'static Shm, ports: &'static Ports) -> Self {
        let all = Mutex::new(All { next: channel::FIRST_ID, ..All::default() });
        Self { shm, ports, carrier: ports, all }
    }

    /// The fabric's state, for one thread at a time.
    ///
    /// # Errors
    /// ENODEV: this is a forked child.
    pub fn lock(&self) -> Result<MutexGuard<'_, All>, Errno> {
        let all = || sync::lock(&self.all);
        self.shm.is_ours().then(all).ok_or(Errno::NODEV)
    }

    /// Takes a port for an identifier, at an address that it may have.
    ///
    /// # Errors
    /// EINVAL: it has one. Those of [`Ports::bind`].
    pub fn bind(&self, all: &mut All, key: IdKey, addr: SocketAddr) -> Result<(), Errno> {
        let id = all.id(key)?;
        let called = id.judge(Call::Bind)?;
        let bound = self.ports.bind(Place::new(id.space, addr, id.sharing(addr)?)?)?;
        (id.local, id.bound) = (Some(bound.place.addr), Some(bound));
        all.step(key, called, None)
    }

    /// Accepts requests from a bound identifier on, with so many waiting at most.
    ///
    /// # Errors
    /// EINVAL: it is not bound, listens, or is to connect. EADDRINUSE, EADDRNOTAVAIL: its port is shared. What the system
    /// refuses.
    pub fn listen(&self, all: &mut All, key: IdKey, backlog: i32) -> Result<(), Errno> {
        let (id, channel) = all.of(key)?;
        let called = id.judge(Call::Listen)?;
        let bound = id.bound.as_mut().ok_or(Errno::INVAL)?;
        bound.expose()?;
        id.reuse = false;
        // What is not above 0 stands for the most.
        id.backlog = backlog.cast_unsigned().wrapping_sub(1).min(MAX_BACKLOG - 1) + 1;
        let listener = self.carrier.listen(bound)?;
        channel.watch(listener.fd(), key)?;
        bound.listen(id.backlog);
        id.listener = Some(listener);
        // Without the thread, more requests than the system holds wait until this process takes events.
        let _ = self.shm.thread.start();
        all.step(key, called, None)
    }
}

impl All {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Creates an event channel, and returns its descriptor.
    pub fn create_channel(&mut self) -> Result<(ChannelKey, Arc<OwnedFd>), SystemError> {
        let channel = Channel::new()?;
        let (key, fd) = (ChannelKey(self.number()), Arc::clone(&channel.epoll));
        self.channels.insert(key, channel);
        Ok((key, fd))
    }

    /// The channel of a key.
    ///
    /// # Errors
    /// EINVAL: there is none.
    pub fn channel(&mut self, key: ChannelKey) -> Result<&mut Channel, Errno> {
        self.channels.get_mut(&key).ok_or(Errno::INVAL)
    }

    /// Destroys a channel, and the identifiers that use it.
    pub fn destroy_channel(&mut self, key: ChannelKey) {
        let users = self.ids.iter().filter(|(_, id)| id.channel == key).map(|(&id, _)| id);
        users.collect::<Vec<_>>().into_iter().for_each(|id| self.destroy(id));
        self.channels.remove(&key);
    }

    /// Creates an identifier.
    pub fn create(&mut self, on: ChannelKey, space: PortSpace, qp: QpType) -> IdKey {
        // The number of a packet has 24 bits.
        let (key, psn) = (IdKey(self.number()), port::random() >> 8);
        self.ids.insert(key, Id { channel: on, space, qp_type: qp, psn, ..Id::default() });
        key
    }

    /// The identifier of a key.
    ///
    /// # Errors
    /// EINVAL: there is none.
    pub fn id(&mut self, key: IdKey) -> Result<&mut Id, Errno> {
        self.ids.get_mut(&key).ok_or(Errno::INVAL)
    }

    fn of(&mut self, key: IdKey) -> Result<(&mut Id, &mut Channel), Errno> {
        let id = self.ids.get_mut(&key).ok_or(Errno::INVAL)?;
        let channel = self.channels.get_mut(&id.channel).ok_or(Errno::INVAL)?;
        Ok((id, channel))
    }

    /// Queues an event.
    pub fn push(&mut self, queued: Queued) -> Result<(), Errno> {
        self.of(queued.id)?.1.push(queued);
        Ok(())
    }

    /// Destroys an identifier, and discards its events. The peer is notified; a request that waits at a listener is
    /// rejected.
    pub fn destroy(&mut self, key: IdKey) {
        self.enter(key, State::Over);
        let Ok((_, channel)) = self.of(key) else { return };
        let requests = channel.take_those_of(key);
        self.ids.remove(&key);
        let requests = requests.into_iter().filter_map(|queued| queued.request);
        requests.for_each(|request| self.destroy(request));
    }

    /// Moves an identifier, with its events, to another channel.
    pub fn migrate(&mut self, key: IdKey, to: ChannelKey) -> Result<(), Errno> {
        let id = self.ids.get(&key).ok_or(Errno::INVAL)?;
        if id.channel == to {
            return Ok(());
        }
        // First: if it fails, nothing has changed.
        id.watch(key, self.channels.get(&to).ok_or(Errno::INVAL)?)?;
        let (id, channel) = self.of(key)?;
        let (deadline, events) = (id.deadline, channel.take_those_of(key));
        id.leave(channel);
        channel.set_deadline(key, deadline, None);
        id.channel = to;
        self.channel(to)?.set_deadline(key, None, deadline);
        for event in events {
            if let Some(request) = event.request {
                self.id(request)?.channel = to;
            }
            self.channel(to)?.push(event);
        }
        Ok(())
    }

    /// Takes the oldest event of a channel.
    ///
    /// # Errors
    /// EMFILE, ENFILE: there is none, but a request for which no descriptor is free.
    pub fn take(&mut self, channel: ChannelKey) -> Result<Option<Queued>, Errno> {
        let mut taken = self.channel(channel)?.pop();
        if taken.is_none() {
            let worked = self.work(channel);
            taken = self.channel(channel)?.pop();
            if taken.is_none() {
                worked?;
            }
        }
        if let Some(Queued { id, request: Some(_), .. }) = taken {
            self.id(id)?.count_queued(-1);
        }
        Ok(taken)
    }

    /// Receives what has arrived for the identifiers of a channel. What fails for one is not in the way of another.
    fn work(&mut self, key: ChannelKey) -> Result<(), Errno> {
        let mut worked = Ok(());
        for id in self.channel(key)?.ready() {
            worked = worked.and(self.accept_requests(id)).and(self.receive(id, false));
        }
        while let Some(id) = self.channel(key)?.overdue() {
            self.receive(id, true)?;
        }
        worked
    }

    /// Receives what has arrived for an identifier; if its time is over and nothing has, that.
    pub fn receive(&mut self, key: IdKey, is_over: bool) -> Result<(), Errno> {
        let end = self.id(key).ok().and_then(|id| id.end.as_ref());
        let received = end.and_then(|end| end.receive(is_over));
        let received = received.or(is_over.then_some((Received::TimedOut, None)));
        received.map_or(Ok(()), |received| self.received(key, received))
    }

    fn received(&mut self, key: IdKey, (received, message): Incoming) -> Result<(), Errno> {
        let id = self.id(key)?;
        let after = id.state.receive(received, id.service());
        if let Some(message) = message.as_ref().filter(|message| message.kind == Kind::Rep) {
            id.peer = Some(message.clone());
        }
        self.step(key, after, message)
    }

    /// Goes where a step leads, and queues the event of it.
    fn step(&mut self, id: IdKey, step: Step, message: Option<Message>) -> Result<(), Errno> {
        self.enter(id, step.state);
        let Some(event) = step.event else { return Ok(()) };
        self.push(Queued { id, event, request: None, message, arg: 0 })
    }

    /// Changes the state of an identifier.
    fn enter(&mut self, key: IdKey, state: State) {
        let Ok((id, channel)) = self.of(key) else { return };
        let deadline = state.patience().and_then(|patience| Instant::now().checked_add(patience));
        channel.set_deadline(key, id.deadline, deadline);
        (id.state, id.deadline) = (state, deadline);
        if !state.is_watched(id.service()) {
            id.leave(channel);
        }
        if !state.is_open() {
            id.end = None;
        }
    }

    /// Has the channel watch the end of a request's identifier, as it may do already.
    pub fn begin(&mut self, key: IdKey) -> Result<(), Errno> {
        let (id, channel) = self.of(key)?;
        match id.watch(key, channel) {
            Err(Errno::EXIST) => Ok(()),
            begun => begun,
        }
    }

    /// Carries out a call that sends a message.
    ///
    /// # Errors
    /// EINVAL: it has no place in the state, or the peer has gone. The system refuses to watch its end.
    pub fn call(&mut self, key: IdKey, call: Call, mut message: Message) -> Result<(), Errno> {
        let called = self.id(key)?.judge(call)?;
        let Some(kind) = called.sends else { return Ok(()) };
        message.kind = kind;
        if kind == Kind::Rep {
            self.begin(key)?;
        }
        let id = self.id(key)?;
        let end = id.end.as_ref().ok_or(Errno::INVAL)?;
        match (end.send(&message), kind) {
            (Ok(()), _) | (Err(_), Kind::Rej | Kind::Drep) => {}
            // Nobody waits for more than that.
            (Err(_), Kind::Rep) if id.service() == Service::Datagram => {}
            (Err(_), Kind::Dreq) => return self.received(key, (Received::HungUp, None)),
            (Err(_), _) => {
                self.enter(key, State::Over);
                return Err(Errno::INVAL);
            }
        }
        self.step(key, called, None)
    }

    /// A call that resolves what an identifier connects to: the event comes at once.
    ///
    /// # Errors
    /// EINVAL: it has no place in the state.
    pub fn resolve(&mut self, key: IdKey, call: Call) -> Result<(), Errno> {
        let called = self.id(key)?.judge(call)?;
        self.step(key, called, None)
    }
}
