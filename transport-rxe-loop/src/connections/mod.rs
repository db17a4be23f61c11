//! The connection manager of this process: its event channels and identifiers, and the sockets by which identifiers of
//! processes speak. A process works on its connections when it takes events and when it calls; only [requests that have
//! found no listener](again) are the service thread's.
//!
//! [`protocol::cm`](crate::protocol::cm) has the states and messages. [`port`] names sockets, [`channel`] queues events.
//! All of a process' identifiers are behind one lock, which is not held while a thread waits.
//!
//! A listener has a socket that accepts, and a bell, a socket of datagrams. Who requests a connection sends the request
//! first and rings the bell then, by its address. A request that has not rung is not taken: so each ring is one event, and
//! who stops or dies in between makes no channel readable.

pub mod again;
pub mod channel;
pub mod id;
mod listening;
pub mod port;
pub mod socket;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cq_core::setup::QpType;
use rustix::io::Errno;

use self::again::Unsent;
use self::channel::Channel;
use self::id::Id;
use self::listening::Listening;
use self::port::{Place, PortSpace, Purpose, Sharing};
use crate::protocol::cm::message::{Kind, Message};
use crate::protocol::cm::{Call, Event, Received, Service, State, Step};
use crate::shm::Shm;
use crate::shm::system::SystemError;

/// The number of an identifier of this process. It is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdKey(pub u64);

/// The number of an event channel of this process. It is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    all: Mutex<All>,
    /// Locked for a moment, also under `all`.
    unsent: Mutex<Unsent>,
}

/// All of it that changes.
#[derive(Debug)]
pub struct All {
    channels: BTreeMap<ChannelKey, Channel>,
    ids: BTreeMap<IdKey, Id>,
    next: u64,
}

impl Connections {
    /// For an attached process.
    pub fn new(shm: &'static Shm) -> Self {
        let all = All { channels: BTreeMap::new(), ids: BTreeMap::new(), next: channel::FIRST_ID };
        Self { shm, all: Mutex::new(all), unsent: Mutex::default() }
    }

    /// The fabric's state, for one thread at a time.
    ///
    /// # Errors
    /// ENODEV: this is a forked child.
    pub fn lock(&self) -> Result<MutexGuard<'_, All>, Errno> {
        match self.shm.is_ours() {
            true => Ok(self.all.lock().unwrap_or_else(PoisonError::into_inner)),
            false => Err(Errno::NODEV),
        }
    }

    /// The place of an address in this fabric.
    pub fn place(&self, space: PortSpace, addr: SocketAddr, sharing: Sharing) -> Place {
        Place { fabric: self.shm.file_id(), space, addr, sharing }
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
        let users = self.ids.iter().filter(|(_, id)| id.channel == key);
        let users: Vec<IdKey> = users.map(|(&id, _)| id).collect();
        users.into_iter().for_each(|id| self.destroy(id));
        self.channels.remove(&key);
    }

    /// Creates an identifier.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn create(
        &mut self,
        channel: ChannelKey,
        space: PortSpace,
        qp_type: QpType,
    ) -> Result<IdKey, Errno> {
        let id = Id::new(channel, space, qp_type, port::random()?);
        let key = IdKey(self.number());
        self.ids.insert(key, id);
        Ok(key)
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
        let Ok((id, channel)) = self.of(key) else { return };
        let requests = channel.take_those_of(key);
        if let (Some(listening), Some(bound)) = (id.listening.take(), &id.bound) {
            listening.end(bound);
        }
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
            // If it fails, the bell stays readable, and it is told when nothing else is left.
            let _ = self.accept_requests(id);
        }
        Ok(taken)
    }

    /// Receives what has arrived for the identifiers of a channel. What fails for one is not in the way of another.
    fn work(&mut self, key: ChannelKey) -> Result<(), Errno> {
        let mut worked = Ok(());
        for id in self.channel(key)?.ready() {
            worked = worked.and(self.accept_requests(id)).and(self.receive(id));
        }
        while let Some(id) = self.channel(key)?.overdue() {
            self.time_out(id)?;
        }
        worked
    }

    fn receive(&mut self, key: IdKey) -> Result<(), Errno> {
        let socket = self.id(key).ok().and_then(|id| id.socket.as_ref());
        socket.and_then(socket::receive).map_or(Ok(()), |received| self.received(key, received))
    }

    fn received(&mut self, key: IdKey, (received, message): socket::Incoming) -> Result<(), Errno> {
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

    /// The time of an identifier is over. What had arrived by then is received instead.
    pub fn time_out(&mut self, key: IdKey) -> Result<(), Errno> {
        let socket = self.id(key)?.socket.as_ref();
        let last =
            socket.and_then(|it| socket::receive(it).or_else(|| socket::receive_the_last(it)));
        self.received(key, last.unwrap_or((Received::TimedOut, None)))
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
            id.socket.take().iter().for_each(socket::end);
        }
    }

    /// Has the channel watch the socket of a request's identifier, as it may do already.
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
    /// EINVAL: it has no place in the state, or the peer has gone. The system refuses to watch the socket.
    pub fn call(&mut self, key: IdKey, call: Call, mut message: Message) -> Result<(), Errno> {
        let called = self.id(key)?.judge(call)?;
        let Some(kind) = called.sends else { return Ok(()) };
        message.kind = kind;
        if kind == Kind::Rep {
            self.begin(key)?;
        }
        let id = self.id(key)?;
        let socket = id.socket.as_ref().ok_or(Errno::INVAL)?;
        match (socket::send(socket, &message), kind) {
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

    /// Takes a port.
    ///
    /// # Errors
    /// EINVAL: it has one. Those of [`Place::bind`].
    pub fn bind(&mut self, key: IdKey, place: Place, purpose: Purpose) -> Result<(), Errno> {
        let id = self.id(key)?;
        let called = id.judge(Call::Bind)?;
        let bound = place.bind(purpose)?;
        (id.local, id.bound) = (Some(bound.place.addr), Some(bound));
        self.step(key, called, None)
    }

    /// Accepts requests from a bound identifier on, with so many waiting at most.
    ///
    /// # Errors
    /// EINVAL: it is not bound, listens, or is to connect. EADDRINUSE, EADDRNOTAVAIL: its port is shared.
    pub fn listen(&mut self, key: IdKey, backlog: i32) -> Result<(), Errno> {
        let (id, channel) = self.of(key)?;
        let called = id.judge(Call::Listen)?;
        let bound = id.bound.as_mut().ok_or(Errno::INVAL)?;
        let listening = Listening::new(bound, backlog)?;
        channel.watch(&listening.bell, key)?;
        let begun = bound.expose().and_then(|()| listening.begin(bound));
        id.reuse = bound.place.sharing.reuse;
        if begun.is_err() {
            channel.unwatch(&listening.bell);
            return begun;
        }
        id.listening = Some(listening);
        self.step(key, called, None)
    }
}
