//! The connection manager's messages, and their bytes. What arrives is never trusted: bytes that are no message are
//! refused.
//!
//! ```
//! use transport_rxe_loop::protocol::cm::message::{Kind, Message};
//!
//! let message = Message { qp_num: 17, private_data: b"hello".to_vec(), ..Message::of(Kind::Rep) };
//! assert_eq!(Message::from_bytes(&message.to_bytes()), Some(message));
//! assert_eq!(Message::from_bytes(b"hello"), None);
//! ```

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::{Heard, Service};

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Requests a connection.
    Req = 1,
    /// Accepts it.
    Rep,
    /// Ready to use.
    Rtu,
    /// Rejects it.
    Rej,
    /// Disconnects.
    Dreq,
    /// Agrees to that.
    Drep,
    /// The request before it is announced: nobody was told of it otherwise.
    Announced,
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Req, Self::Rep, Self::Rtu, Self::Rej, Self::Dreq, Self::Drep, Self::Announced];
}

/// A message. Each kind uses some of the fields; the others are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its kind.
    pub kind: Kind,
    /// REQ: what is asked for.
    pub service: Service,
    /// REQ: the addresses of the active side, and of the passive one.
    pub addresses: [SocketAddr; 2],
    /// REQ, REP: the sender's queue pair, its first packet, and the key of a datagram queue pair.
    pub qp_num: u32,
    /// See [`qp_num`](Self::qp_num).
    pub psn: u32,
    /// See [`qp_num`](Self::qp_num).
    pub qkey: u32,
    /// REJ: the reason.
    pub reason: i32,
    /// REQ, REP: whether the queue pair takes its receives from a shared queue.
    pub srq: bool,
    /// REQ, REP: how many READs and atomics of the peer the sender answers at once.
    pub responder_resources: u8,
    /// REQ, REP: how many of its own it has under way.
    pub initiator_depth: u8,
    /// REQ, REP: whether there is flow control.
    pub flow_control: u8,
    /// REQ: how often the peer is to try again where nobody answers.
    pub retry_count: u8,
    /// REQ, REP: how often the peer is to try again where there is no receive.
    pub rnr_retry_count: u8,
    /// REQ, REP, REJ: the user's.
    pub private_data: Vec<u8>,
}

/// The first bytes of each message of this version.
const MAGIC: [u8; 4] = *b"cm 1";
/// The bytes before the private data.
const HEAD: usize = 66;
/// The most that a message has.
pub const MAX: usize = HEAD + u8::MAX as usize;

/// No address.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

impl Message {
    /// A message with nothing in it.
    #[must_use]
    pub const fn of(kind: Kind) -> Self {
        Self {
            kind,
            service: Service::Connection,
            addresses: [NOWHERE; 2],
            qp_num: 0,
            psn: 0,
            qkey: 0,
            reason: 0,
            srq: false,
            responder_resources: 0,
            initiator_depth: 0,
            flow_control: 0,
            retry_count: 0,
            rnr_retry_count: 0,
            private_data: Vec::new(),
        }
    }

    /// What an end hears that gets it.
    #[must_use]
    pub const fn heard(&self) -> Heard {
        Heard::Message(self.kind, self.reason)
    }

    /// Its bytes. Private data of more than 255 bytes is cut off: callers bound it by what the kind carries.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let len = self.private_data.len().min(u8::MAX.into());
        let mut bytes = Vec::with_capacity(HEAD + len);
        bytes.extend(MAGIC);
        bytes.extend([self.kind as u8, (self.service == Service::Datagram).into()]);
        self.addresses.into_iter().for_each(|address| bytes.extend(address_bytes(address)));
        for number in [self.qp_num, self.psn, self.qkey, self.reason.cast_unsigned()] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend([self.srq.into(), self.responder_resources, self.initiator_depth]);
        bytes.extend([self.flow_control, self.retry_count, self.rnr_retry_count]);
        bytes.extend([0, len as u8]);
        bytes.extend(&self.private_data[..len]);
        bytes
    }

    /// The message of these bytes; `None` if they are none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        if take(&mut rest)? != MAGIC {
            return None;
        }
        let [kind, service] = take(&mut rest)?;
        let kind = Kind::ALL.into_iter().find(|&known| known as u8 == kind)?;
        let service = match service {
            0 => Service::Connection,
            1 => Service::Datagram,
            _ => return None,
        };
        let addresses = [address_of(take(&mut rest)?), address_of(take(&mut rest)?)];
        let mut number = || take(&mut rest).map(u32::from_be_bytes);
        let [qp_num, psn, qkey, reason] = [number()?, number()?, number()?, number()?];
        let [srq, responder_resources, initiator_depth] = take(&mut rest)?;
        let [flow_control, retry_count, rnr_retry_count] = take(&mut rest)?;
        let [_, len] = take(&mut rest)?;
        (rest.len() == len.into()).then(|| Self {
            kind,
            service,
            addresses,
            qp_num,
            psn,
            qkey,
            reason: reason.cast_signed(),
            srq: srq != 0,
            responder_resources,
            initiator_depth,
            flow_control,
            retry_count,
            rnr_retry_count,
            private_data: rest.to_vec(),
        })
    }
}

/// The bytes of an address.
pub const ADDRESS: usize = 18;

/// An address as bytes, an IPv4 one as the IPv6 one that it is mapped to.
#[must_use]
pub fn address_bytes(address: SocketAddr) -> [u8; ADDRESS] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; ADDRESS];
    let (first, port) = bytes.split_at_mut(size_of_val(&ip.octets()));
    first.copy_from_slice(&ip.octets());
    port.copy_from_slice(&address.port().to_be_bytes());
    bytes
}

/// The address of these bytes.
#[must_use]
pub fn address_of(bytes: [u8; ADDRESS]) -> SocketAddr {
    let [ip @ .., high, low] = bytes;
    SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), u16::from_be_bytes([high, low]))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*taken)
}
