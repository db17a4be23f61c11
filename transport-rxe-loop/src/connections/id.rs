//! An identifier: what a socket is to TCP.

use std::net::SocketAddr;
use std::time::Instant;

use cq_core::setup::QpType;
use rustix::io::Errno;

use super::channel::Channel;
use super::listening::Listening;
use super::port::{Bound, PortSpace, Sharing, is_of_its_family};
use super::{ChannelKey, IdKey};
use crate::protocol::cm::message::Message;
use crate::protocol::cm::{Call, Service, State, Step};
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
    /// RDMA_OPTION_ID_TOS.
    pub tos: u8,
    /// RDMA_OPTION_ID_ACK_TIMEOUT.
    pub ack_timeout: Option<u8>,
    /// RDMA_OPTION_ID_REUSEADDR.
    pub reuse: bool,
    /// RDMA_OPTION_ID_AFONLY, where the program has set it.
    pub only: Option<bool>,
    /// How often its sends are tried again, as it has asked for.
    pub retry_count: u8,
    pub state: State,
    /// The connection's.
    pub socket: Option<KeptFd>,
    /// Its port; one that was given out, until its request is sent.
    pub bound: Option<Bound>,
    pub listening: Option<Listening>,
    pub local: Option<SocketAddr>,
    /// The peer's address, or the one that is to be resolved.
    pub remote: Option<SocketAddr>,
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
            tos: 0,
            ack_timeout: None,
            reuse: false,
            only: None,
            retry_count: 0,
            state: State::Idle,
            socket: None,
            bound: None,
            listening: None,
            local: None,
            remote: None,
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

    /// What a call does.
    ///
    /// # Errors
    /// EINVAL, EISCONN: it has no place in the state.
    pub fn judge(&self, call: Call) -> Result<Step, Errno> {
        self.state.call(call, self.service())
    }

    /// With whom it shares its port at an address.
    pub fn sharing(&self, addr: SocketAddr) -> Result<Sharing, Errno> {
        let only = self.only.map_or_else(|| is_of_its_family(addr), Ok)?;
        Ok(Sharing { reuse: self.reuse, only })
    }

    /// Shares its port with others, or not.
    ///
    /// # Errors
    /// EINVAL: the state does not allow it. The system refused.
    pub fn share(&mut self, call: Call, reuse: bool, only: Option<bool>) -> Result<(), Errno> {
        _ = self.judge(call)?;
        if let Some(bound) = &mut self.bound {
            let only = only.unwrap_or(bound.place.sharing.only);
            bound.share(Sharing { reuse, only })?;
        }
        (self.reuse, self.only) = (reuse, only);
        Ok(())
    }

    /// Has the channel watch its socket, where the state has something to receive, and its bell.
    pub fn watch(&self, key: IdKey, channel: &Channel) -> Result<(), Errno> {
        let is_received = self.state.is_watched(self.service());
        let socket = self.socket.iter().filter(|_| is_received);
        socket.chain(self.bell()).try_for_each(|fd| channel.watch(fd, key))
    }

    /// Has the channel watch neither.
    pub fn leave(&self, channel: &Channel) {
        self.socket.iter().chain(self.bell()).for_each(|fd| channel.unwatch(fd));
    }

    fn bell(&self) -> Option<&KeptFd> {
        self.listening.as_ref().map(|listening| &listening.bell)
    }
}
