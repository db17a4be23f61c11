//! What a listener has beside its port, and how it takes requests.

use std::collections::BTreeMap;
use std::mem::take;
use std::net::SocketAddr;

use cq_core::cm::EventKind;
use cq_core::setup::QpType;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{self, SocketFlags, SocketType};

use super::port::{Bound, Place};
use super::{All, IdKey, Queued, socket};
use crate::protocol::cm::message::{Kind, Message};
use crate::protocol::cm::{OK, Service, State};
use crate::shm::descriptor::{KeptFd, above_streams};

/// What a listener has beside its port.
#[derive(Debug)]
pub struct Listening {
    /// Readable once a request has arrived.
    pub bell: KeptFd,
    /// How many requests may wait.
    backlog: usize,
    /// There was no space for another: requests may be there that have rung.
    is_behind: bool,
    /// From where it was rung, and how often, for requests that it has not seen.
    rings: BTreeMap<SocketAddr, usize>,
    /// Who has connected, and not sent a request yet, or not rung. They may stay so: they are not counted as waiting.
    silent: Vec<Silent>,
}

type Silent = (KeptFd, Option<Message>);

/// A request, and the socket that it came by.
pub type Arrived = (KeptFd, Message);

/// What a backlog that is not above 0 stands for, and the most that one can be, as the kernel has it.
const MAX_BACKLOG: i32 = 1024;
impl Listening {
    pub fn new(bound: &Bound, backlog: i32) -> Result<Self, Errno> {
        let backlog = if backlog <= 0 { MAX_BACKLOG } else { backlog.min(MAX_BACKLOG) };
        let bell = super::port::socket(SocketType::DGRAM)?;
        net::bind(bell.unchecked(), &bound.place.bell()?)?;
        let (backlog, rings, silent) = (backlog as usize, BTreeMap::new(), Vec::new());
        Ok(Self { bell, backlog, is_behind: false, rings, silent })
    }

    /// Lets peers connect.
    pub fn begin(&self, bound: &Bound) -> Result<(), Errno> {
        // The system lets one more wait than it is given.
        net::listen(bound.socket.get()?, self.backlog as i32 - 1)
    }

    /// Takes the requests that have arrived, as many as may wait beside those that do.
    ///
    /// # Errors
    /// EMFILE, ENFILE: no descriptor is free for another one. It stays where it is, and the bell readable.
    pub fn arrived(&mut self, bound: &Bound, waiting: usize) -> (Vec<Arrived>, Result<(), Errno>) {
        let (mut requests, space) = (Vec::new(), self.backlog.saturating_sub(waiting));
        // Before the look: who requests a connection after it rings again.
        let has_rung = socket::silence(&self.bell, &mut self.rings);
        if !(has_rung || self.is_behind && space > 0) {
            return (requests, Ok(()));
        }
        let looked = self.look(bound, space, &mut requests);
        if looked.is_err() {
            socket::ring(&self.bell, &bound.place, None);
        }
        (requests, looked)
    }

    fn look(&mut self, bound: &Bound, space: usize, found: &mut Vec<Arrived>) -> Result<(), Errno> {
        for silent in take(&mut self.silent) {
            self.receive(silent, &bound.place, found);
        }
        self.is_behind = true;
        while found.len() < space {
            match accept(bound) {
                Ok(socket) if socket::is_of_this_user(&socket) => {
                    self.receive((socket, None), &bound.place, found);
                }
                Ok(_) => {}
                Err(Errno::AGAIN) => {
                    self.is_behind = false;
                    // What has rung was seen.
                    self.rings.clear();
                    break;
                }
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Takes a request, once it is announced: so that each ring is one event.
    fn receive(&mut self, (socket, request): Silent, place: &Place, requests: &mut Vec<Arrived>) {
        let request = match request {
            Some(request) => request,
            None => match socket::receive(&socket) {
                // It has not been sent yet.
                None => return self.silent.push((socket, None)),
                Some((_, Some(message))) if is_for(&message, place) => message,
                Some(_) => return socket::refuse(&socket),
            },
        };
        let rings = self.rings.get_mut(&request.addresses[0]).filter(|rings| **rings > 0);
        let is_announced = rings.map(|rings| *rings -= 1).is_some()
            || match socket::receive(&socket) {
                None => return self.silent.push((socket, Some(request))),
                Some((_, Some(Message { kind: Kind::Announced, .. }))) => true,
                Some(_) => false,
            };
        // Without that, the peer has gone.
        if is_announced {
            requests.push((socket, request));
        }
    }

    /// Ends it. Who waits is told, even if a forked child has the sockets, too.
    pub fn end(self, bound: &Bound) {
        socket::end(&bound.socket);
        self.silent.iter().for_each(|(socket, _)| socket::end(socket));
        while let Ok(socket) = accept(bound) {
            socket::end(&socket);
        }
    }
}

fn accept(bound: &Bound) -> Result<KeptFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = bound.socket.get()?;
    KeptFd::new(above_streams(|| retry_on_intr(|| net::accept_with(socket, flags)))?)
}

/// Whether a message is a request for who listens there.
fn is_for(message: &Message, place: &Place) -> bool {
    message.kind == Kind::Req && place.is_for(message.addresses[1])
}

impl All {
    /// Accepts the requests that have arrived at an identifier, if it listens: as many as may wait.
    pub(super) fn accept_requests(&mut self, key: IdKey) -> Result<(), Errno> {
        let Ok((id, channel)) = self.of(key) else { return Ok(()) };
        let (Some(bound), Some(listening)) = (&id.bound, &mut id.listening) else { return Ok(()) };
        let (requests, mut outcome) = listening.arrived(bound, channel.waiting(key));
        for request in requests {
            outcome = outcome.and(self.requested(key, request));
        }
        outcome
    }

    /// Makes the identifier of a request, and its event. If it can't be made, the peer is rejected.
    fn requested(&mut self, key: IdKey, (socket, message): Arrived) -> Result<(), Errno> {
        let listener = self.id(key)?;
        let connected = if listener.qp_type == QpType::Uc { QpType::Uc } else { QpType::Rc };
        let qp_type = match message.service {
            Service::Connection => connected,
            Service::Datagram => QpType::Ud,
        };
        let (channel, space) = (listener.channel, listener.space);
        let request = self.create(channel, space, qp_type)?;
        let id = self.id(request)?;
        let [from, to] = message.addresses;
        (id.socket, id.local, id.remote) = (Some(socket), Some(to), Some(from));
        id.peer = Some(message.clone());
        self.enter(request, State::ReqRcvd);
        let (event, request) = ((EventKind::CONNECT_REQUEST, OK), Some(request));
        self.push(Queued { id: key, event, request, message: Some(message), arg: 0 })
    }
}
