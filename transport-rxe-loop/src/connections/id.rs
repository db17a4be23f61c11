//! An identifier: what a socket is to TCP.

use std::net::SocketAddr;
use std::time::Instant;

use cq_verbs::setup::{AckTimeout, QpType};
use rustix::io::Errno;

use super::carrier::{End, Listener};
use super::channel::Channel;
use super::port::{PortSpace, Sharing};
use super::registry::Bound;
use super::{ChannelKey, IdKey};
use crate::addresses::is_of_its_family;
use crate::protocol::cm::message::Message;
use crate::protocol::cm::{Call, Service, State, Step};
use crate::shm::descriptor::KeptFd;

/// An identifier of this process.
#[derive(Debug, Default)]
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
    pub ack_timeout: Option<AckTimeout>,
    /// RDMA_OPTION_ID_REUSEADDR.
    pub reuse: bool,
    /// RDMA_OPTION_ID_AFONLY, where the program has set it.
    pub only: Option<bool>,
    /// How often its sends are tried again, as it has asked for.
    pub retry_count: u8,
    pub state: State,
    /// The connection's.
    pub end: Option<Box<dyn End>>,
    /// Dropped before the port, whose entry it uses.
    pub listener: Option<Box<dyn Listener>>,
    /// Its port.
    pub bound: Option<Bound>,
    /// How many requests may wait at its listener.
    pub backlog: u32,
    /// How many are events that wait in its channel.
    pub queued: u32,
    pub local: Option<SocketAddr>,
    /// The peer's address, or the one that is to be resolved.
    pub remote: Option<SocketAddr>,
    /// The peer's request or answer.
    pub peer: Option<Message>,
    pub deadline: Option<Instant>,
}

impl Id {
    /// What its queue pair has the connection manager do.
    pub fn service(&self) -> Service {
        if self.qp_type == QpType::UD { Service::Datagram } else { Service::Connection }
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
    /// EINVAL: the state does not allow it.
    pub fn share(&mut self, call: Call, reuse: bool, only: Option<bool>) -> Result<(), Errno> {
        _ = self.judge(call)?;
        if let Some(bound) = &mut self.bound {
            let only = only.unwrap_or(bound.place.sharing.only);
            bound.share(Sharing { reuse, only });
        }
        (self.reuse, self.only) = (reuse, only);
        Ok(())
    }

    /// Has the channel watch its end, where the state has something to receive, or where requests arrive.
    pub fn watch(&self, key: IdKey, channel: &Channel) -> Result<(), Errno> {
        let is_received = self.state.is_watched(self.service());
        self.descriptors(is_received).try_for_each(|fd| channel.watch(fd, key))
    }

    /// Has the channel watch neither.
    pub fn leave(&self, channel: &Channel) {
        self.descriptors(true).for_each(|fd| channel.unwatch(fd));
    }

    fn descriptors(&self, with_end: bool) -> impl Iterator<Item = &KeptFd> {
        let end = self.end.iter().filter(move |_| with_end).map(|end| end.fd());
        end.chain(self.listener.iter().map(|listener| listener.fd()))
    }

    /// One more of its requests is an event that waits, or one less.
    pub fn count_queued(&mut self, change: i32) {
        self.queued = self.queued.saturating_add_signed(change);
        self.listener.iter().for_each(|listener| listener.has_queued(self.queued));
    }
}
