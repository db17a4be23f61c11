//! An identifier: what a socket is to TCP.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

use cq_core::setup::QpType;
use rustix::io::Errno;
use rustix::net::{self, SocketType};

use super::channel::Channel;
use super::port::{Bound, Place, PortSpace, socket};
use super::{ChannelKey, IdKey};
use crate::protocol::cm::message::{Kind, Message};
use crate::protocol::cm::{Service, State};

/// An identifier of this process.
#[derive(Debug)]
pub struct Id {
    pub channel: ChannelKey,
    pub space: PortSpace,
    pub service: Service,
    /// The type of its queue pair.
    pub qp_type: QpType,
    /// The number of the first packet that it sends.
    pub psn: u32,
    /// How often its sends are tried again, as it has asked for.
    pub retry_count: u8,
    pub state: State,
    /// The connection's.
    pub socket: Option<OwnedFd>,
    is_watched: bool,
    /// Its port, until it requests a connection.
    pub bound: Option<Bound>,
    pub listening: Option<Listening>,
    pub local: Option<SocketAddr>,
    /// The peer's address, or the one that is to be resolved.
    pub remote: Option<SocketAddr>,
    /// The address is this machine's.
    pub is_resolved: bool,
    /// The peer's request or answer.
    pub peer: Option<Message>,
    pub deadline: Option<Instant>,
}

impl Id {
    /// A new one, whose first packet is one of 24 bits.
    pub const fn new(channel: ChannelKey, space: PortSpace, qp_type: QpType, random: u32) -> Self {
        let service = match qp_type {
            QpType::Rc | QpType::Uc => Service::Connection,
            QpType::Ud => Service::Datagram,
        };
        Self {
            channel,
            space,
            service,
            qp_type,
            psn: random >> 8,
            retry_count: 0,
            state: State::Idle,
            socket: None,
            is_watched: false,
            bound: None,
            listening: None,
            local: None,
            remote: None,
            is_resolved: false,
            peer: None,
            deadline: None,
        }
    }

    /// Takes a port.
    ///
    /// # Errors
    /// EINVAL: it has one, or is connected. Those of [`Place::bind`].
    pub fn bind(&mut self, place: Place) -> Result<(), Errno> {
        if self.state != State::Idle || self.bound.is_some() {
            return Err(Errno::INVAL);
        }
        let bound = place.bind()?;
        self.local = Some(bound.place.addr);
        self.bound = Some(bound);
        Ok(())
    }

    /// Has the channel watch its socket and its bell, where it has any and the state has something to hear.
    pub fn watch(&mut self, key: IdKey, channel: &Channel, state: State) -> Result<(), Errno> {
        if let Some(socket) = self.socket.as_ref().filter(|_| state.is_watched(self.service)) {
            if !self.is_watched {
                channel.watch(socket, key)?;
                self.is_watched = true;
            }
        }
        if let Some(listening) = &mut self.listening {
            if !listening.is_watched {
                channel.watch(&listening.bell, key)?;
                listening.is_watched = true;
            }
        }
        Ok(())
    }

    /// Has the channel watch neither.
    pub fn leave(&mut self, channel: &Channel) {
        if let Some(socket) = self.socket.as_ref().filter(|_| self.is_watched) {
            channel.unwatch(socket);
            self.is_watched = false;
        }
        if let Some(listening) = &mut self.listening {
            channel.unwatch(&listening.bell);
            listening.is_watched = false;
        }
    }
}

/// What a listener has beside its port.
#[derive(Debug)]
pub struct Listening {
    /// Readable once a request has arrived.
    pub bell: OwnedFd,
    pub is_watched: bool,
    /// How many requests may wait.
    backlog: usize,
    /// How many are queued as events.
    pub waiting: usize,
    /// Who has connected, and not sent a request yet.
    pub silent: Vec<OwnedFd>,
}

/// What a backlog that is not above 0 stands for, and the most that one can be, as the kernel has it.
const MAX_BACKLOG: i32 = 1024;

impl Listening {
    pub fn new(bound: &Bound, backlog: i32) -> Result<Self, Errno> {
        let backlog = if backlog <= 0 { MAX_BACKLOG } else { backlog.min(MAX_BACKLOG) };
        let bell = socket(SocketType::DGRAM)?;
        net::bind(&bell, &bound.name.bell()?)?;
        // The system lets one more wait than it is told.
        net::listen(&bound.socket, backlog - 1)?;
        let (waiting, silent, is_watched) = (0, Vec::new(), false);
        Ok(Self { bell, is_watched, backlog: backlog as usize, waiting, silent })
    }

    /// Whether another request may wait.
    pub fn has_space(&self) -> bool {
        self.waiting + self.silent.len() < self.backlog
    }

    /// Whether a message is a request for this listener, which is bound there.
    pub fn takes(&self, message: &Message, place: &Place) -> bool {
        message.kind == Kind::Req && place.is_for(message.addresses[1])
    }
}
