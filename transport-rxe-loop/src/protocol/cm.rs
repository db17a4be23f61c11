//! The connection manager's protocol: the states of an identifier, and what each call, message and timeout does to them.
//! This is the one place that knows them: [`State::call`] is the table of calls, which is Linux' (rdma_cma's), and
//! [`State::hear`] that of what an end hears. States of a connection and messages have the names of InfiniBand's connection
//! manager. Nothing is sent here: the caller does that, by a socket for each connection, which delivers in order and reports
//! that the peer has closed its end.
//!
//! A call that is not in the table fails with EINVAL, and changes nothing. (`rdma_notify` of an established connection fails
//! with EISCONN.)
//!
//! | call | in the states | leads to | event of it |
//! |---|---|---|---|
//! | `rdma_bind_addr` | Idle | Bound | |
//! | `rdma_resolve_addr` | Idle, Bound | AddrResolved | ADDR_RESOLVED |
//! | the same, of another machine's address | Idle, Bound | Bound | ADDR_ERROR |
//! | `rdma_resolve_route` | AddrResolved | RouteResolved | ROUTE_RESOLVED |
//! | `rdma_listen` | Idle, Bound | Listening | |
//! | `rdma_connect` | RouteResolved | ReqSent | |
//! | `rdma_accept` | ReqRcvd | RepSent; for datagrams Over | |
//! | `rdma_reject` | ReqRcvd, RepRcvd | Over | |
//! | `rdma_establish` | RepRcvd | Established | |
//! | `rdma_disconnect` | Established | DreqSent | |
//! | | DreqRcvd | TimeWait | |
//! | | Listening, ReqSent, ReqRcvd, RepSent, RepRcvd, DreqSent, TimeWait, Over | the same | |
//! | `rdma_notify` | RepSent | the same | |
//! | `rdma_init_qp_attr`, INIT | Bound, AddrResolved, RouteResolved, ReqSent, ReqRcvd, RepSent, RepRcvd, Established; for datagrams all but Idle | the same | |
//! | the same, RTR and RTS | ReqRcvd, RepSent, RepRcvd, Established; for datagrams all but Idle | the same | |
//! | REUSEADDR is set | all but Listening | the same | |
//! | REUSEADDR is cleared | Idle | the same | |
//! | AFONLY | Idle, Bound | the same | |
//! | `rdma_destroy_id`, `rdma_migrate_id`, other options | all | | |
//!
//! | state | side | hears | goes to | event |
//! |---|---|---|---|---|
//! | ReqSent | active | REP | RepRcvd | CONNECT_RESPONSE |
//! | | | REJ, the end of the socket | Over | REJECTED |
//! | | | nothing in time | Over | UNREACHABLE |
//! | ReqRcvd | passive | the end of the socket | Over | REJECTED |
//! | RepSent | passive | RTU | Established | ESTABLISHED |
//! | | | REJ, the end of the socket | Over | REJECTED |
//! | | | nothing in time | Over | UNREACHABLE |
//! | RepRcvd | active | REJ, the end of the socket | Over | REJECTED |
//! | Established | both | DREQ | DreqRcvd | DISCONNECTED |
//! | | | the end of the socket | TimeWait | DISCONNECTED |
//! | DreqSent | both | DREP, DREQ, the end of the socket, nothing in time | TimeWait | DISCONNECTED |
//! | TimeWait | both | nothing in time | Over | TIMEWAIT_EXIT |
//!
//! A datagram service has REQ and REP alone: REP is ESTABLISHED for the active side, REJ is UNREACHABLE, and neither side
//! waits for more.
//!
//! Each message that is heard is one event, and in the states in which none is expected the socket is not watched: so an
//! event channel is readable exactly while it has an event. Any other message is a fault of the peer, and the end of the
//! connection. An end whose time is over hears what has arrived, and does not give up then. Else it shuts down the receiving
//! direction of its socket, and hears what arrived in between: so an RTU that was sent is heard, and one that was not can't be
//! sent any more. The connection is established for both ends, or for none.
//!
//! ```
//! use transport_rxe_loop::protocol::cm::{Call, Event, Heard, Service, State};
//!
//! const RC: Service = Service::Connection;
//! let (active, passive) = (State::RouteResolved, State::ReqRcvd);
//! let (active, passive) = (active.call(Call::Connect, RC)?, passive.call(Call::Accept, RC)?);
//! let heard = active.state.hear(Heard::Rep, RC);
//! assert_eq!((heard.state, heard.event), (State::RepRcvd, Some(Event::Responded)));
//! assert_eq!(heard.state.call(Call::Establish, RC)?.state, State::Established);
//! let heard = passive.state.hear(Heard::Rtu, RC);
//! assert_eq!((heard.state, heard.event), (State::Established, Some(Event::Established)));
//! assert!(State::Bound.call(Call::Connect, RC).is_err());
//! # Ok::<(), rustix::io::Errno>(())
//! ```

pub mod message;

use std::time::Duration;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Created.
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

/// What an end hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Heard {
    /// The peer accepts.
    Rep,
    /// The peer is ready to use.
    Rtu,
    /// The peer rejects, for this reason.
    Rej(i32),
    /// The peer disconnects.
    Dreq,
    /// The peer agrees to the disconnection.
    Drep,
    /// A message that has no place here, or is none.
    Nonsense,
    /// The peer has closed its end of the socket, or is dead.
    HungUp,
    /// Nothing came in time.
    TimedOut,
}

/// What the user of an identifier calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Takes a port.
    Bind,
    /// Looks for the device that reaches an address; an errno, if there is none.
    ResolveAddr(Option<i32>),
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
    /// Asks for the attributes of its queue pair, and whether for those that need the peer's.
    Attributes {
        /// They do.
        of_peer: bool,
    },
    /// Lets others that allow it, too, have the same port, or not.
    ReuseAddr(bool),
    /// Has the unspecified address stand for those of its family alone, or for all.
    AfOnly,
}

/// The event that its user gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// ADDR_RESOLVED.
    AddrResolved,
    /// ADDR_ERROR, with this errno.
    AddrError(i32),
    /// ROUTE_RESOLVED.
    RouteResolved,
    /// CONNECT_RESPONSE.
    Responded,
    /// ESTABLISHED.
    Established,
    /// REJECTED, for this reason.
    Rejected(i32),
    /// UNREACHABLE, with this status.
    Unreachable(i32),
    /// DISCONNECTED, with this status.
    Disconnected(i32),
    /// TIMEWAIT_EXIT.
    TimewaitExit,
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

/// Statuses of an answer to a datagram request, numbers of InfiniBand's specification.
mod sidr {
    /// There is no listener at the port.
    pub const UNSUPPORTED: i32 = 1;
    /// The program rejected it.
    pub const REJECTED: i32 = 2;
}

/// `-ETIMEDOUT`.
const TIMED_OUT: i32 = -110;

/// What hearing something does, or a call.
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

/// How long a request and an answer wait. InfiniBand's retries take about as long.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a disconnection waits for the peer.
const DISCONNECTING: Duration = Duration::from_secs(4);
/// How long an ended connection stays.
const TIME_WAIT: Duration = Duration::from_secs(1);

impl State {
    /// Hears something, in a state in which the socket is [watched](Self::is_watched), or once its
    /// [time](Self::patience) is over.
    pub const fn hear(self, heard: Heard, service: Service) -> Step {
        let (state, event) = match (self, heard) {
            (Self::ReqSent, Heard::Rep) => match service {
                Service::Connection => (Self::RepRcvd, Event::Responded),
                Service::Datagram => (Self::Over, Event::Established),
            },
            (Self::RepSent, Heard::Rtu) => (Self::Established, Event::Established),
            (Self::ReqSent | Self::RepSent, Heard::TimedOut) => {
                (Self::Over, Event::Unreachable(TIMED_OUT))
            }
            (Self::ReqRcvd, Heard::HungUp) => (Self::Over, Event::Rejected(reason::TIMEOUT)),
            (Self::ReqSent | Self::ReqRcvd | Self::RepSent | Self::RepRcvd, heard) => {
                (Self::Over, rejected(heard, service))
            }
            (Self::Established, Heard::Dreq) => (Self::DreqRcvd, Event::Disconnected(0)),
            (Self::DreqSent, Heard::TimedOut) => (Self::TimeWait, Event::Disconnected(TIMED_OUT)),
            (Self::Established | Self::DreqSent, _) => (Self::TimeWait, Event::Disconnected(0)),
            (Self::TimeWait, Heard::TimedOut) => (Self::Over, Event::TimewaitExit),
            _ => return Step { state: self, sends: None, event: None },
        };
        Step { state, sends: None, event: Some(event) }
    }

    /// A call of the user. Where what it sends can't be sent, the peer has hung up.
    ///
    /// # Errors
    /// EINVAL: it has no place in this state. EISCONN: what it would bring about is so.
    pub const fn call(self, call: Call, service: Service) -> Result<Step, Errno> {
        use State::*;
        let (state, sends, event) = match (call, self) {
            (Call::Bind, Idle) => (Bound, None, None),
            (Call::ResolveAddr(why), Idle | Bound) => match why {
                None => (AddrResolved, None, Some(Event::AddrResolved)),
                Some(errno) => (Bound, None, Some(Event::AddrError(errno))),
            },
            (Call::ResolveRoute, AddrResolved) => (RouteResolved, None, Some(Event::RouteResolved)),
            (Call::Listen, Idle | Bound) => (Listening, None, None),
            (Call::Connect, RouteResolved) => (ReqSent, Some(Kind::Req), None),
            (Call::Accept, ReqRcvd) => match service {
                Service::Connection => (RepSent, Some(Kind::Rep), None),
                Service::Datagram => (Over, Some(Kind::Rep), None),
            },
            (Call::Reject, ReqRcvd | RepRcvd) => (Over, Some(Kind::Rej), None),
            (Call::Establish, RepRcvd) => (Established, Some(Kind::Rtu), None),
            (Call::Notify, Established) => return Err(Errno::ISCONN),
            (Call::Disconnect, Established) => (DreqSent, Some(Kind::Dreq), None),
            (Call::Disconnect, DreqRcvd) => (TimeWait, Some(Kind::Drep), None),
            (_, state) if state.allows(call, service) => (state, None, None),
            _ => return Err(Errno::INVAL),
        };
        Ok(Step { state, sends, event })
    }

    /// Whether a call has its place that changes no state.
    const fn allows(self, call: Call, service: Service) -> bool {
        use State::*;
        match (call, self) {
            // There is nothing to disconnect, or it was done: Linux takes that, too.
            (Call::Disconnect, Idle | Bound | AddrResolved | RouteResolved) => false,
            (Call::Disconnect, _) => true,
            (Call::Notify, RepSent) => true,
            (Call::Attributes { .. }, Idle) => false,
            (Call::Attributes { .. }, _) if matches!(service, Service::Datagram) => true,
            (Call::Attributes { .. }, ReqRcvd | RepSent | RepRcvd | Established) => true,
            (Call::Attributes { of_peer }, Bound | AddrResolved | RouteResolved | ReqSent) => {
                !of_peer
            }
            (Call::ReuseAddr(reuse), state) => {
                matches!(state, Idle) || reuse && !matches!(state, Listening)
            }
            (Call::AfOnly, Idle | Bound) => true,
            _ => false,
        }
    }

    /// Whether a peer's next message, or the end of the socket, is an event.
    pub const fn is_watched(self, service: Service) -> bool {
        match self {
            Self::ReqRcvd => matches!(service, Service::Connection),
            Self::Listening | Self::ReqSent | Self::RepSent | Self::RepRcvd => true,
            Self::Established | Self::DreqSent => true,
            _ => false,
        }
    }

    /// Whether the connection's socket is still needed. If not, it is closed, and the peer hears that.
    pub const fn is_open(self) -> bool {
        !matches!(self, Self::TimeWait | Self::Over)
    }

    /// How long it waits; `None` is without a limit.
    pub const fn patience(self) -> Option<Duration> {
        match self {
            Self::ReqSent | Self::RepSent => Some(PATIENCE),
            Self::DreqSent => Some(DISCONNECTING),
            Self::TimeWait => Some(TIME_WAIT),
            _ => None,
        }
    }
}

/// A request or an answer was not taken.
const fn rejected(heard: Heard, service: Service) -> Event {
    let reason = match heard {
        Heard::Rej(reason) => reason,
        _ => reason::BY_PEER,
    };
    match service {
        Service::Connection => Event::Rejected(reason),
        Service::Datagram if reason == reason::NO_LISTENER => Event::Unreachable(sidr::UNSUPPORTED),
        Service::Datagram => Event::Unreachable(sidr::REJECTED),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
