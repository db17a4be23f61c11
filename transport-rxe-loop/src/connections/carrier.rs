//! What carries requests and messages between processes. States and events know nothing else of it.

use std::fmt::Debug;

use rustix::io::Errno;

use super::port::Place;
use super::registry::Bound;
use crate::protocol::cm::Received;
use crate::protocol::cm::message::Message;
use crate::shm::descriptor::KeptFd;

/// What an end receives, and the message that is.
pub type Incoming = (Received, Option<Message>);
/// A request, and the end that it came with.
pub type Arrived = (Box<dyn End>, Message);

/// An end of a connection. It delivers in order, and tells that the other end was dropped, or is of a process that has died.
/// Dropping it ends the connection, even if a forked child has the end, too.
pub trait End: Debug + Send {
    /// Readable once something has arrived.
    fn fd(&self) -> &KeptFd;

    /// Sends a message.
    ///
    /// # Errors
    /// The peer has dropped its end, or takes no more.
    fn send(&self, message: &Message) -> Result<(), Errno>;

    /// What has arrived, with its message; `None` if nothing has. `is_last`: nothing can arrive any more after that.
    fn receive(&self, is_last: bool) -> Option<Incoming>;
}

/// Where requests arrive. Dropping it ends it, and those that have arrived.
pub trait Listener: Debug + Send {
    /// Readable while a request is there.
    fn fd(&self) -> &KeptFd;

    /// The next request that has arrived.
    ///
    /// # Errors
    /// EAGAIN: there is none. EMFILE, ENFILE: no descriptor is free for it. It stays where it is.
    fn next(&self) -> Result<Arrived, Errno>;

    /// So many of those wait until the program takes their events.
    fn has_queued(&self, count: u32);
}

/// Carries requests to listeners.
pub trait Carrier: Debug + Sync {
    /// Where requests to a port arrive, once it [lets](Bound::listen) them come.
    ///
    /// # Errors
    /// The system refuses.
    fn listen(&self, bound: &Bound) -> Result<Box<dyn Listener>, Errno>;

    /// Sends a request to the listener at a place.
    ///
    /// # Errors
    /// It was not sent.
    fn request(&self, to: &Place, message: &Message) -> Sent;
}

/// The end of this process, or why the request was not sent.
pub type Sent = Result<Box<dyn End>, Unsent>;

/// Why a request was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// Nobody listens there.
    NoListener,
    /// As many requests wait there as may.
    Full,
    /// There is no space for it at the moment.
    Later,
    /// The system refuses.
    Refused(Errno),
}
