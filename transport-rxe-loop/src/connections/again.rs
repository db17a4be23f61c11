//! Requests, and sending those again that have found no listener.
//!
//! A request that finds no listener is sent again for a moment, and rejected then. Over a network it takes a while until a
//! request arrives, and programs rely on that: a server tells its client by another connection that it is about to listen,
//! or listens again for a second connection once the first is made, as that of perftest does.
//!
//! The service thread sends them again. The channel's timer would make its descriptor readable without an event.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::SocketType;

use super::port::{self, Place};
use super::socket::{self, Missed};
use super::{All, Connections, IdKey};
use crate::protocol::cm::message::Message;
use crate::protocol::cm::{Call, Heard, State, reason};

/// A request that is to be sent.
#[derive(Debug)]
pub struct Request {
    to: Place,
    message: Message,
    /// The pause before it is sent again.
    pause: Duration,
}

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
    /// EINVAL: the identifier is connected, or was. The system refused.
    pub fn request(&self, key: IdKey, request: Request) -> Result<(), Errno> {
        let mut all = self.lock()?;
        self.shm.thread().start().map_err(|_| Errno::AGAIN)?;
        if let Some(pause) = all.request(key, request)? {
            self.unsent().insert((Instant::now() + pause, key));
            self.shm.call(self.shm.attachment());
        }
        Ok(())
    }

    /// Sends the requests again whose time has come. Returns how long until the next. For the service thread.
    pub fn request_again(&self) -> Option<Duration> {
        loop {
            let (at, key) = *self.unsent().first()?;
            let left = at.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Some(left);
            }
            let mut all = self.lock().ok()?;
            let pause = all.request_again(key);
            let mut unsent = self.unsent();
            unsent.remove(&(at, key));
            unsent.extend(pause.map(|pause| (Instant::now() + pause, key)));
        }
    }

    fn unsent(&self) -> MutexGuard<'_, BTreeSet<(Instant, IdKey)>> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    /// Requests a connection. If there is no listener, that is how long to wait before it is sent
    /// [again](Self::request_again).
    ///
    /// # Errors
    /// EINVAL: the identifier is connected, or was. The system refused.
    pub fn request(&mut self, key: IdKey, request: Request) -> Result<Option<Duration>, Errno> {
        let called = self.id(key)?.state.call(Call::Connect).map_err(|_| Errno::INVAL)?;
        let sent = self.send(key, &request);
        if let Err(Missed::System(errno)) = sent {
            return Err(errno);
        }
        self.enter(key, called.state);
        self.settle(key, request, sent)
    }

    /// Sends a request again that has found no listener, if it is still there. How long to wait before that is done again.
    pub fn request_again(&mut self, key: IdKey) -> Option<Duration> {
        let mut request = self.id(key).ok()?.unsent.take()?;
        request.pause *= 2;
        let sent = self.send(key, &request);
        // Its event can't be queued where its channel is gone, and so is it.
        self.settle(key, request, sent).ok()?
    }

    fn send(&mut self, key: IdKey, request: &Request) -> Result<(), Missed> {
        let bound = self.id(key).map(|id| id.bound.as_ref());
        let bound = bound.map_err(Missed::System)?.ok_or(Missed::System(Errno::INVAL))?;
        // Before anything is sent: a request of which the listener is not told would wait for ever.
        let ringer = port::socket(SocketType::DGRAM).map_err(Missed::System)?;
        socket::request(&bound.socket, &ringer, &request.to, &request.message)
    }

    /// What comes of a request that was sent, or has missed its listener. How long until it is sent again.
    fn settle(
        &mut self,
        key: IdKey,
        request: Request,
        sent: Result<(), Missed>,
    ) -> Result<Option<Duration>, Errno> {
        let id = self.id(key)?;
        let refused = match sent {
            Ok(()) => None,
            Err(Missed::Busy) => Some(Heard::Rej(reason::BY_PEER)),
            // What the system refused it may grant the next time.
            Err(Missed::NoListener | Missed::System(_)) if request.pause <= LAST_PAUSE => {
                let pause = request.pause;
                id.unsent = Some(request);
                return Ok(Some(pause));
            }
            Err(_) => Some(Heard::Rej(reason::NO_LISTENER)),
        };
        id.socket = id.bound.take().map(|bound| bound.socket);
        if let Some(refused) = refused {
            self.heard(key, refused, None)?;
            return Ok(None);
        }
        let (id, channel) = self.of(key)?;
        if let Err(errno) = id.watch(key, channel) {
            self.enter(key, State::Idle);
            return Err(errno);
        }
        Ok(None)
    }
}
