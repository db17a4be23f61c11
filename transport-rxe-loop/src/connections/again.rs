//! Requests, and sending those again that could not be sent.
//!
//! A request that finds no listener is sent again for a moment, and rejected then. Over a network it takes a while until a
//! request arrives, and programs rely on that: a server tells its client by another connection that it is about to listen,
//! or listens again for a second connection once the first is made, as that of perftest does. One for which there is no space
//! is sent again until its identifier's time is over.
//!
//! The service thread sends them again. The channel's timer would make its descriptor readable without an event.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::carrier::{Sent, Unsent};
use super::port::Place;
use super::{All, Connections, IdKey};
use crate::protocol::cm::message::{Kind, Message};
use crate::protocol::cm::{Call, Received, State, reason};

/// A request.
#[derive(Debug)]
pub struct Request {
    to: Place,
    message: Message,
    /// The last pause, if it found no listener, before it was sent again.
    pause: Duration,
}

/// The first pause. Each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The last pause of a request that finds no listener: they are 255 ms together.
const LAST_PAUSE: Duration = Duration::from_millis(128);
/// The longest pause of those for which there is no space.
const SHORT_PAUSE: Duration = Duration::from_millis(32);

impl Connections {
    /// Requests a connection to the listener at an address.
    ///
    /// # Errors
    /// EINVAL: the route is not resolved, or it is connected, or was. EAGAIN, or another number: the request has to be sent
    /// again, and the system refuses the service thread. What else it refuses.
    pub fn request(&self, key: IdKey, message: Message) -> Result<(), Errno> {
        let mut all = self.lock()?;
        let id = all.id(key)?;
        let called = id.judge(Call::Connect)?;
        let place = id.bound.as_ref().ok_or(Errno::INVAL)?.place;
        let to = Place { addr: message.addresses[1], ..place };
        let sent = self.carrier.request(&to, &message);
        if let Err(Unsent::Refused(errno)) = sent {
            return Err(errno);
        }
        if let Err(Unsent::NoListener | Unsent::Later) = sent {
            let started = self.shm.thread.start();
            started.map_err(|error| Errno::from_raw_os_error(error.errno.0))?;
        }
        // Where others wait for space, the thread tries for this one with them.
        let is_next = matches!(sent, Err(Unsent::NoListener))
            || matches!(sent, Err(Unsent::Later)) && all.unsent.is_empty();
        all.enter(key, called.state);
        // Pauses grow where the thread finds no space.
        all.pause = Duration::ZERO;
        let request = Request { to, message, pause: Duration::ZERO };
        all.conclude(key, request, sent).inspect_err(|_| all.enter(key, State::Over))?;
        // The thread needs it.
        drop(all);
        is_next.then(|| self.shm.call(self.shm.attachment()));
        Ok(())
    }

    /// What the service thread does: takes requests for which there was no space, and sends those again whose time has come.
    /// Returns how long until the next.
    pub fn serve(&self) -> Option<Duration> {
        // A call that has it may wait for others, and the thread may not.
        let Ok(mut all) = self.all.try_lock() else { return Some(FIRST_PAUSE) };
        if self.ports.is_behind() {
            let keys: Vec<IdKey> = all.ids.keys().copied().collect();
            // What fails is told to who takes events.
            keys.into_iter().for_each(|key| _ = all.accept_requests(key));
        }
        // Some at once: the thread has other work, too.
        for _ in 0..16 {
            let first = all.unsent.first_entry()?;
            let &(at, key) = first.key();
            let left = at.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Some(left);
            }
            let request = first.remove();
            if all.id(key).is_ok_and(|id| id.state == State::ReqSent && id.deadline > Some(at)) {
                let sent = self.carrier.request(&request.to, &request.message);
                let has_space = !matches!(sent, Err(Unsent::Later));
                // Where its answer would not be received, nobody waits for it.
                let done = all.conclude(key, request, sent);
                let _ = done.or_else(|_| all.received(key, (Received::TimedOut, None)));
                // There is none for the others either.
                if !has_space {
                    return Some(all.pause);
                }
            }
        }
        Some(Duration::ZERO)
    }
}

impl All {
    /// What comes of a request that was sent, or is to be sent again.
    ///
    /// # Errors
    /// The system does not watch for its answer.
    fn conclude(&mut self, key: IdKey, mut request: Request, sent: Sent) -> Result<(), Errno> {
        let reason = match sent {
            Ok(end) => {
                self.pause = Duration::ZERO;
                let (id, channel) = self.of(key)?;
                id.end = Some(end);
                return id.watch(key, channel);
            }
            Err(Unsent::Full) => reason::BY_PEER,
            Err(Unsent::NoListener) if request.pause == LAST_PAUSE => reason::NO_LISTENER,
            Err(why) => {
                // What the system refuses it may grant the next time.
                let is_alone = why == Unsent::NoListener;
                let longest = if is_alone { LAST_PAUSE } else { SHORT_PAUSE };
                let pause = if is_alone { &mut request.pause } else { &mut self.pause };
                *pause = (*pause * 2).clamp(FIRST_PAUSE, longest);
                self.unsent.insert((Instant::now() + *pause, key), request);
                return Ok(());
            }
        };
        self.received(key, (Received::Message(Kind::Rej, reason), None))
    }
}
