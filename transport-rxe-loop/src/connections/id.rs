//! An identifier: what a socket is to TCP.

use std::net::SocketAddr;
use std::time::Instant;

use cq_core::setup::QpType;
use rustix::io::Errno;

use super::channel::Channel;
use super::listening::Listening;
use super::port::{Bound, Place, PortSpace};
use super::{ChannelKey, IdKey};
use crate::protocol::cm::message::Message;
use crate::protocol::cm::{Service, State};
use crate::shm::descriptor::KeptFd;

/// An identifier of this process.
#[derive(Debug)]
pub struct Id {
    pub channel: ChannelKey,
    pub space: PortSpace,
    /// The type of its queue pair.
    pub qp_type: QpType,
    /// The number of the first packet that it sends.
    pub psn: u32,
    /// How often its sends are tried again, as it has asked for.
    pub retry_count: u8,
    pub state: State,
    /// The connection's.
    pub socket: Option<KeptFd>,
    is_watched: bool,
    /// Its port, until its request is sent.
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
        Self {
            channel,
            space,
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

    /// What its queue pair has the connection manager do.
    pub const fn service(&self) -> Service {
        match self.qp_type {
            QpType::Rc | QpType::Uc => Service::Connection,
            QpType::Ud => Service::Datagram,
        }
    }

    /// Takes a port.
    ///
    /// # Errors
    /// EINVAL: it has one, or is connected. Those of [`Place::bind`].
    pub fn bind(&mut self, place: Place) -> Result<(), Errno> {
        self.bind_by(|| place.bind())
    }

    /// Takes a port to connect from.
    ///
    /// # Errors
    /// Those of [`bind`](Self::bind).
    pub fn bind_to_connect(&mut self, place: Place) -> Result<(), Errno> {
        self.bind_by(|| place.bind_to_connect())
    }

    fn bind_by(&mut self, bind: impl FnOnce() -> Result<Bound, Errno>) -> Result<(), Errno> {
        if self.state != State::Idle || self.bound.is_some() {
            return Err(Errno::INVAL);
        }
        let bound = bind()?;
        self.local = Some(bound.place.addr);
        self.bound = Some(bound);
        Ok(())
    }

    /// Has the channel watch its socket and its bell, where it has any and the state has something to hear.
    pub fn watch(&mut self, key: IdKey, channel: &Channel) -> Result<(), Errno> {
        let is_heard = self.state.is_watched(self.service());
        if let Some(socket) = self.socket.as_ref().filter(|_| is_heard) {
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
