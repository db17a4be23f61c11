//! The connection manager's protocol: the states of an identifier, and what each call, message and timeout does to them.
//! This is the one place that knows them: [`State::call`] is the table of calls, which is Linux' (rdma_cma's), and
//! [`State::receive`] that of what an end receives. States of a connection and messages have the names of InfiniBand's connection
//! manager. Nothing is sent here: the caller does that, by a socket for each connection, which delivers in order and reports
//! that the peer has closed its end.
//!
//! Both are written out in [`internals::connecting`](crate::internals::connecting).

pub mod message;

use std::time::Duration;

use cq_verbs::cm::{EventKind, Status};
use rustix::io::Errno;

use self::message::Kind;

/// What connects to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Two queue pairs, reliably or not.
    Connection,
    /// Datagrams: the active side learns of the passive side's queue pair.
    Datagram,
}

/// The state of an identifier: what it is, and of a connection at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// Created.
    #[default]
    Idle,
    /// It has a port.
    Bound,
    /// The address is this machine's.
    AddrResolved,
    /// There is a path to the address.
    RouteResolved,
    /// Peers can connect to it.
    Listening,
    /// The active side has requested a connection.
    ReqSent,
    /// The passive side has got a request.
    ReqRcvd,
    /// The passive side has accepted.
    RepSent,
    /// The active side has got the answer.
    RepRcvd,
    /// Connected.
    Established,
    /// This end has disconnected.
    DreqSent,
    /// The peer has disconnected.
    DreqRcvd,
    /// Disconnected.
    TimeWait,
    /// It was connected, or was to be: it can be destroyed.
    Over,
}

/// What an end receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Received {
    /// A message, and the reason of a REJ.
    Message(Kind, i32),
    /// Bytes that are no message.
    Malformed,
    /// The peer has closed its end of the socket, or is dead.
    HungUp,
    /// Nothing came in time.
    TimedOut,
}

/// What the user of an identifier gets, and its status.
pub type Event = (EventKind, Status);

/// What the user of an identifier calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Takes a port.
    Bind,
    /// Looks for the device that reaches an address; or why there is none.
    ResolveAddr(Status),
    /// Looks for the path to it.
    ResolveRoute,
    /// Lets peers connect.
    Listen,
    /// Requests a connection.
    Connect,
    /// Accepts a request.
    Accept,
    /// Rejects a request or an answer.
    Reject,
    /// Confirms that the answer has come.
    Establish,
    /// Disconnects, or agrees that the peer did.
    Disconnect,
    /// Reports a message that came before the peer's confirmation.
    Notify,
    /// Asks for the attributes of its queue pair; for those that need the peer's.
    Attributes(bool),
    /// Lets others that allow it, too, have the same port, or not.
    ReuseAddr(bool),
    /// Has the unspecified address stand for those of its family alone, or for all.
    AfOnly,
}

/// Reasons of REJ, numbers of InfiniBand's specification.
pub mod reason {
    /// The peer waited too long, or has gone while it waited.
    pub const TIMEOUT: i32 = 4;
    /// There is no listener at the port.
    pub const NO_LISTENER: i32 = 8;
    /// The program rejected it, has gone, or has too many requests waiting.
    pub const BY_PEER: i32 = 28;
}

/// Status of an answer to a datagram request, a number of InfiniBand's specification: there is no listener at the port.
const SIDR_UNSUPPORTED: Status = Status(1);
/// The same: the program rejected it.
const SIDR_REJECTED: Status = Status(2);
/// `-ETIMEDOUT`.
const TIMED_OUT: Status = Status(-110);
/// Success.
pub const OK: Status = Status(0);

/// What a call leads to, or what is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Step {
    /// The state after it.
    pub state: State,
    /// The message that is to be sent, if there is one.
    pub sends: Option<Kind>,
    /// The event of it; of a call, where no answer is waited for.
    pub event: Option<Event>,
}

const ADDR_RESOLVED: Event = (EventKind::ADDR_RESOLVED, OK);
const ROUTE_RESOLVED: Event = (EventKind::ROUTE_RESOLVED, OK);

impl State {
    /// Receives something, in a state in which the socket is [watched](Self::is_watched), or once its
    /// [time](Self::patience) is over.
    pub const fn receive(self, received: Received, service: Service) -> Step {
        use Received::{Message, TimedOut};
        use State::*;
        let is_ud = matches!(service, Service::Datagram);
        let (state, event) = match (self, received) {
            (ReqSent, Message(Kind::Rep, _)) if is_ud => (Over, (EventKind::ESTABLISHED, OK)),
            (ReqSent, Message(Kind::Rep, _)) => (RepRcvd, (EventKind::CONNECT_RESPONSE, OK)),
            (RepSent, Message(Kind::Rtu, _)) => (Established, (EventKind::ESTABLISHED, OK)),
            (ReqSent | RepSent, TimedOut) => (Over, (EventKind::UNREACHABLE, TIMED_OUT)),
            (ReqSent | ReqRcvd | RepSent | RepRcvd, _) => (Over, self.rejected(received, is_ud)),
            (Established, Message(Kind::Dreq, _)) => (DreqRcvd, (EventKind::DISCONNECTED, OK)),
            (DreqSent, TimedOut) => (TimeWait, (EventKind::DISCONNECTED, TIMED_OUT)),
            (Established | DreqSent, _) => (TimeWait, (EventKind::DISCONNECTED, OK)),
            (TimeWait, TimedOut) => (Over, (EventKind::TIMEWAIT_EXIT, OK)),
            _ => return Step { state: self, sends: None, event: None },
        };
        Step { state, sends: None, event: Some(event) }
    }

    /// A call of the user. Where what it sends can't be sent, the peer has hung up.
    ///
    /// # Errors
    /// EINVAL: it has no place in this state. EISCONN: what it would bring about is so.
    pub const fn call(self, call: Call, service: Service) -> Result<Step, Errno> {
        use Call::*;
        use State::*;
        let is_ud = matches!(service, Service::Datagram);
        let (state, sends, event) = match (call, self) {
            (Bind, Idle) => (Bound, None, None),
            (ResolveAddr(OK), Idle | Bound) => (AddrResolved, None, Some(ADDR_RESOLVED)),
            (ResolveAddr(why), Idle | Bound) => (Bound, None, Some((EventKind::ADDR_ERROR, why))),
            (ResolveRoute, AddrResolved) => (RouteResolved, None, Some(ROUTE_RESOLVED)),
            (Listen, Idle | Bound) => (Listening, None, None),
            (Connect, RouteResolved) => (ReqSent, Some(Kind::Req), None),
            (Accept, ReqRcvd) if is_ud => (Over, Some(Kind::Rep), None),
            (Accept, ReqRcvd) => (RepSent, Some(Kind::Rep), None),
            (Reject, ReqRcvd | RepRcvd) => (Over, Some(Kind::Rej), None),
            (Establish, RepRcvd) => (Established, Some(Kind::Rtu), None),
            (Notify, Established) => return Err(Errno::ISCONN),
            (Disconnect, Established) => (DreqSent, Some(Kind::Dreq), None),
            (Disconnect, DreqRcvd) => (TimeWait, Some(Kind::Drep), None),
            (_, state) if state.allows(call, is_ud) => (state, None, None),
            _ => return Err(Errno::INVAL),
        };
        Ok(Step { state, sends, event })
    }

    /// Whether a call has its place that changes no state.
    const fn allows(self, call: Call, is_ud: bool) -> bool {
        use Call::*;
        use State::*;
        match (call, self) {
            // There is nothing to disconnect, or it was done: Linux takes that, too.
            (Disconnect, Idle | Bound | AddrResolved | RouteResolved) => false,
            (Attributes(_), Idle) | (ReuseAddr(_), Listening) => false,
            (Attributes(_), ReqRcvd | RepSent | RepRcvd | Established) => true,
            (Attributes(false), Bound | AddrResolved | RouteResolved | ReqSent) => true,
            (Attributes(_), _) => is_ud,
            (ReuseAddr(true), _) | (ReuseAddr(false), Idle) => true,
            (Disconnect, _) | (Notify, RepSent) | (AfOnly, Idle | Bound) => true,
            _ => false,
        }
    }

    /// A request or an answer was not taken.
    const fn rejected(self, received: Received, is_ud: bool) -> Event {
        let reason = match received {
            Received::Message(Kind::Rej, reason) => reason,
            Received::HungUp if matches!(self, Self::ReqRcvd) => reason::TIMEOUT,
            _ => reason::BY_PEER,
        };
        match reason {
            _ if !is_ud => (EventKind::REJECTED, Status(reason)),
            reason::NO_LISTENER => (EventKind::UNREACHABLE, SIDR_UNSUPPORTED),
            _ => (EventKind::UNREACHABLE, SIDR_REJECTED),
        }
    }

    /// Whether a peer's next message, or the end of the socket, is an event.
    pub const fn is_watched(self, service: Service) -> bool {
        use State::*;
        matches!(self, Listening | ReqSent | RepSent | RepRcvd | Established | DreqSent)
            || matches!((self, service), (ReqRcvd, Service::Connection))
    }

    /// Whether the connection's socket is still needed. If not, it is closed, and the peer notices that.
    pub const fn is_open(self) -> bool {
        !matches!(self, Self::TimeWait | Self::Over)
    }

    /// How long it waits: a request and an answer, a disconnection for the peer, and an ended connection to be over. `None` is
    /// without a limit.
    pub const fn patience(self) -> Option<Duration> {
        let seconds = match self {
            // InfiniBand's retries take about as long.
            Self::ReqSent | Self::RepSent => 20,
            Self::DreqSent => 4,
            Self::TimeWait => 1,
            _ => return None,
        };
        Some(Duration::from_secs(seconds))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
