//! Requests, and sending those again that have found no listener.
//!
//! A request that finds no listener is sent again for a moment, and rejected then. Over a network it takes a while until a
//! request arrives, and programs rely on that: a server tells its client by another connection that it is about to listen,
//! or listens again for a second connection once the first is made, as that of perftest does.
//!
//! The service thread sends them again. The channel's timer would make its descriptor readable without an event.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::SocketType;

use super::port::{self, Place, Purpose};
use super::{All, Connections, IdKey, socket};
use crate::protocol::cm::message::{Kind, Message};
use crate::protocol::cm::{Call, Received, State, reason};
use crate::shm::descriptor::KeptFd;

/// A request that is to be sent.
#[derive(Debug)]
pub struct Request {
    to: Place,
    message: Message,
    /// The pause before it is sent again.
    pause: Duration,
}

/// Requests that have found no listener, by when they are sent again.
pub type Unsent = BTreeMap<(Instant, IdKey), Request>;

const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The last pause of all, which are 255 ms together: each is twice as long as the one before.
const LAST_PAUSE: Duration = Duration::from_millis(128);

impl Request {
    /// A request to the listener at a place.
    pub const fn new(to: Place, message: Message) -> Self {
        Self { to, message, pause: FIRST_PAUSE }
    }
}

impl Connections {
    /// Requests a connection.
    ///
    /// # Errors
    /// EINVAL: the route is not resolved, or it is connected, or was. EAGAIN, or another number: the system refuses the
    /// service thread. What else it refuses.
    pub fn request(&self, key: IdKey, request: Request) -> Result<(), Errno> {
        let mut all = self.lock()?;
        self.shm.thread().start().map_err(|error| Errno::from_raw_os_error(error.errno.0))?;
        if all.request(key, &request)? {
            self.send_later(key, request);
            self.shm.call(self.shm.attachment());
        }
        Ok(())
    }

    /// Sends the requests again whose time has come. Returns how long until the next. For the service thread.
    pub fn request_again(&self) -> Option<Duration> {
        loop {
            let mut unsent = self.unsent();
            let first = unsent.first_entry()?;
            let &(at, key) = first.key();
            let left = at.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Some(left);
            }
            let mut request = first.remove();
            drop(unsent);
            request.pause *= 2;
            if self.lock().ok()?.request_again(key, &request) {
                self.send_later(key, request);
            }
        }
    }

    fn send_later(&self, key: IdKey, request: Request) {
        self.unsent().insert((Instant::now() + request.pause, key), request);
    }

    fn unsent(&self) -> MutexGuard<'_, Unsent> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    /// Requests a connection. Whether the request is to be sent [again](Self::request_again), as there is no listener.
    ///
    /// # Errors
    /// EINVAL: the route is not resolved, or it is connected, or was. The system refused.
    pub fn request(&mut self, key: IdKey, request: &Request) -> Result<bool, Errno> {
        let called = self.id(key)?.judge(Call::Connect)?;
        let sent = self.send(key, request);
        match sent {
            Ok(_) | Err(Errno::CONNREFUSED | Errno::AGAIN) => self.enter(key, called.state),
            Err(errno) => return Err(errno),
        }
        let concluded = self.conclude(key, request, sent);
        concluded.inspect_err(|_| self.enter(key, State::Over))
    }

    /// Sends a request again that has found no listener, if its identifier still waits for that. Whether it is to be sent once
    /// more.
    pub fn request_again(&mut self, key: IdKey, request: &Request) -> bool {
        if !self.id(key).is_ok_and(|id| id.state == State::ReqSent) {
            return false;
        }
        let sent = self.send(key, request);
        self.conclude(key, request, sent).unwrap_or_else(|_| {
            // Its answer would not be received.
            let _ = self.received(key, (Received::TimedOut, None));
            false
        })
    }

    /// Sends a request, by the socket that holds the identifier's port, or one of its own where the program has asked for the
    /// port: that stays taken as long as the identifier is.
    fn send(&mut self, key: IdKey, request: &Request) -> Result<Option<KeptFd>, Errno> {
        let bound = self.id(key)?.bound.as_ref().ok_or(Errno::INVAL)?;
        // Before anything is sent: a request of which the listener is not told would wait for ever.
        let ringer = port::socket(SocketType::DGRAM)?;
        let own = match bound.purpose {
            Purpose::Connect => None,
            Purpose::Any => Some(port::socket(SocketType::SEQPACKET)?),
        };
        let socket = own.as_ref().unwrap_or(&bound.socket);
        socket::request(socket, &ringer, &request.to, &request.message).map(|()| own)
    }

    /// What comes of a request that was sent, or has missed its listener. Whether it is to be sent again.
    ///
    /// # Errors
    /// The system does not watch for its answer.
    fn conclude(
        &mut self,
        key: IdKey,
        request: &Request,
        sent: Result<Option<KeptFd>, Errno>,
    ) -> Result<bool, Errno> {
        let refused = match sent {
            Ok(_) => None,
            Err(Errno::AGAIN) => Some(Received::Message(Kind::Rej, reason::BY_PEER)),
            // What the system refused it may grant the next time.
            Err(_) if request.pause <= LAST_PAUSE => return Ok(true),
            Err(_) => Some(Received::Message(Kind::Rej, reason::NO_LISTENER)),
        };
        let (id, channel) = self.of(key)?;
        id.socket = match id.bound.take_if(|bound| bound.purpose == Purpose::Connect) {
            Some(bound) => Some(bound.socket),
            None => sent.ok().flatten(),
        };
        match refused {
            Some(refused) => self.received(key, (refused, None))?,
            None => id.watch(key, channel)?,
        }
        Ok(false)
    }
}
