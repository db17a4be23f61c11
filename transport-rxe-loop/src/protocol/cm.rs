//! The connection manager's protocol: the states of a connection at one of its ends, and what each message, call and
//! timeout does to them. States and messages have the names of InfiniBand's connection manager. Nothing is sent here: the
//! caller does that, by a socket for each connection, which delivers in order and reports that the peer has closed its end.
//!
//! | state | side | waits for | hears | goes to | event |
//! |---|---|---|---|---|---|
//! | Idle | both | `connect` | | ReqSent | |
//! | ReqSent | active | REP | REP | RepRcvd | CONNECT_RESPONSE |
//! | | | | REJ, the end of the socket | Idle | REJECTED |
//! | | | | nothing in time | Idle | UNREACHABLE |
//! | ReqRcvd | passive | `accept`, `reject` | the end of the socket | Idle | REJECTED |
//! | RepSent | passive | RTU | RTU | Established | ESTABLISHED |
//! | | | | REJ, the end of the socket | Idle | REJECTED |
//! | | | | nothing in time | Idle | UNREACHABLE |
//! | RepRcvd | active | `establish`, `reject` | REJ, the end of the socket | Idle | REJECTED |
//! | Established | both | `disconnect` | DREQ | DreqRcvd | DISCONNECTED |
//! | | | | the end of the socket | TimeWait | DISCONNECTED |
//! | DreqSent | both | DREP | DREP, DREQ, the end of the socket, nothing in time | TimeWait | DISCONNECTED |
//! | DreqRcvd | both | `disconnect` | | TimeWait | |
//! | TimeWait | both | time | nothing in time | Idle | TIMEWAIT_EXIT |
//!
//! A datagram service has REQ and REP alone: REP is ESTABLISHED for the active side, REJ is UNREACHABLE, and neither side
//! waits for more.
//!
//! Each message that is heard is one event, and in the states in which none is expected the socket is not watched: so an
//! event channel is readable exactly while it has an event. Any other message is a fault of the peer, and the end of the
//! connection. An end that gives up first shuts down the receiving direction of its socket, and hears what had arrived
//! before: so an RTU that was sent is heard, and one that was not can't be sent any more. The connection is established for
//! both ends, or for none.
//!
//! ```
//! use transport_rxe_loop::protocol::cm::{Call, Event, Heard, Service, State};
//!
//! let (active, passive) = (State::Idle.call(Call::Connect), State::ReqRcvd.call(Call::Accept));
//! let (active, passive) = (active?.state, passive?.state);
//! let heard = active.hear(Heard::Rep, Service::Connection);
//! assert_eq!((heard.state, heard.event), (State::RepRcvd, Some(Event::Responded)));
//! assert_eq!(heard.state.call(Call::Establish)?.state, State::Established);
//! let heard = passive.hear(Heard::Rtu, Service::Connection);
//! assert_eq!((heard.state, heard.event), (State::Established, Some(Event::Established)));
//! # Ok::<(), transport_rxe_loop::protocol::cm::WrongState>(())
//! ```

pub mod message;

use std::time::Duration;

use self::message::Kind;

/// What connects to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Two queue pairs, reliably or not.
    Connection,
    /// Datagrams: the active side learns of the passive side's queue pair.
    Datagram,
}

/// The state of a connection at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Not connected.
    Idle,
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

/// What the user of an end calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Requests a connection.
    Connect,
    /// Accepts a request.
    Accept,
    /// Rejects a request or an answer.
    Reject,
    /// Tells that the answer has come.
    Establish,
    /// Disconnects, or agrees that the peer did.
    Disconnect,
}

/// What the user is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
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

/// What hearing something does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct After {
    /// The state now.
    pub state: State,
    /// What the user is told.
    pub event: Option<Event>,
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Called {
    /// The state now.
    pub state: State,
    /// The message that is to be sent, if there is one.
    pub sends: Option<Kind>,
}

/// The call has no place in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongState;

impl std::fmt::Display for WrongState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the identifier is not in a state for that")
    }
}

impl std::error::Error for WrongState {}

/// How long a request and an answer wait. InfiniBand's retries take about as long.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a disconnection waits for the peer.
const DISCONNECTING: Duration = Duration::from_secs(4);
/// How long an ended connection stays.
const TIME_WAIT: Duration = Duration::from_secs(1);

impl State {
    /// Hears something, in a state in which the socket is [watched](Self::is_watched), or once its
    /// [time](Self::patience) is over.
    pub const fn hear(self, heard: Heard, service: Service) -> After {
        let (state, event) = match (self, heard) {
            (Self::ReqSent, Heard::Rep) => match service {
                Service::Connection => (Self::RepRcvd, Event::Responded),
                Service::Datagram => (Self::Idle, Event::Established),
            },
            (Self::RepSent, Heard::Rtu) => (Self::Established, Event::Established),
            (Self::ReqSent | Self::RepSent, Heard::TimedOut) => {
                (Self::Idle, Event::Unreachable(TIMED_OUT))
            }
            (Self::ReqRcvd, Heard::HungUp) => (Self::Idle, Event::Rejected(reason::TIMEOUT)),
            (Self::ReqSent | Self::ReqRcvd | Self::RepSent | Self::RepRcvd, heard) => {
                (Self::Idle, rejected(heard, service))
            }
            (Self::Established, Heard::Dreq) => (Self::DreqRcvd, Event::Disconnected(0)),
            (Self::DreqSent, Heard::TimedOut) => (Self::TimeWait, Event::Disconnected(TIMED_OUT)),
            (Self::Established | Self::DreqSent, _) => (Self::TimeWait, Event::Disconnected(0)),
            (Self::TimeWait, Heard::TimedOut) => (Self::Idle, Event::TimewaitExit),
            (Self::Idle | Self::DreqRcvd | Self::TimeWait, _) => {
                return After { state: self, event: None };
            }
        };
        After { state, event: Some(event) }
    }

    /// A call of the user. Where what it sends can't be sent, the peer has hung up.
    ///
    /// # Errors
    /// It has no place in this state.
    pub const fn call(self, call: Call) -> Result<Called, WrongState> {
        let (state, sends) = match (self, call) {
            (Self::Idle, Call::Connect) => (Self::ReqSent, Some(Kind::Req)),
            (Self::ReqRcvd, Call::Accept) => (Self::RepSent, Some(Kind::Rep)),
            (Self::ReqRcvd | Self::RepRcvd, Call::Reject) => (Self::Idle, Some(Kind::Rej)),
            (Self::RepRcvd, Call::Establish) => (Self::Established, Some(Kind::Rtu)),
            (Self::Established, Call::Disconnect) => (Self::DreqSent, Some(Kind::Dreq)),
            (Self::DreqRcvd, Call::Disconnect) => (Self::TimeWait, Some(Kind::Drep)),
            // Both sides disconnect, one of them later.
            (Self::DreqSent | Self::TimeWait, Call::Disconnect) => (self, None),
            _ => return Err(WrongState),
        };
        Ok(Called { state, sends })
    }

    /// Whether the peer's next message, or the end of the socket, is an event.
    pub const fn is_watched(self, service: Service) -> bool {
        match self {
            Self::ReqRcvd => matches!(service, Service::Connection),
            Self::ReqSent | Self::RepSent | Self::RepRcvd => true,
            Self::Established | Self::DreqSent => true,
            Self::Idle | Self::DreqRcvd | Self::TimeWait => false,
        }
    }

    /// Whether the socket is still needed. If not, it is closed, and the peer hears that.
    pub const fn is_open(self) -> bool {
        !matches!(self, Self::Idle | Self::TimeWait)
    }

    /// How long it waits; `None` is without a limit.
    pub const fn patience(self) -> Option<Duration> {
        match self {
            Self::ReqSent | Self::RepSent => Some(PATIENCE),
            Self::DreqSent => Some(DISCONNECTING),
            Self::TimeWait => Some(TIME_WAIT),
            Self::Idle | Self::ReqRcvd | Self::RepRcvd => None,
            Self::Established | Self::DreqRcvd => None,
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
