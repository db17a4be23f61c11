//! The connection manager's messages, and their bytes. What arrives is never trusted: bytes that are no message are
//! refused.
//!
//! ```
//! use cq_core::cm::ConnParam;
//! use transport_rxe_loop::protocol::cm::message::{Kind, Message};
//!
//! let param = ConnParam::new(17, b"hello".to_vec());
//! let message = Message { param, ..Message::of(Kind::Rep) };
//! assert_eq!(Message::from_bytes(&message.to_bytes()), Some(message));
//! assert_eq!(Message::from_bytes(b"hello"), None);
//! ```

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use cq_core::cm::ConnParam;

use super::{Received, Service};

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
    /// REQ, REP, REJ: between what.
    pub service: Service,
    /// REQ: the addresses of the active side, and of the passive one.
    pub addresses: [SocketAddr; 2],
    /// REQ, REP: the first packet of the sender's queue pair.
    pub psn: u32,
    /// REQ, REP: the key of the sender's queue pair, for datagrams.
    pub qkey: u32,
    /// REJ: the reason.
    pub reason: i32,
    /// REQ, REP: the sender's parameters; nobody uses the retry count of a REP. REJ: the private data alone.
    pub param: ConnParam,
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
    pub fn of(kind: Kind) -> Self {
        Self {
            kind,
            service: Service::Connection,
            addresses: [NOWHERE; 2],
            psn: 0,
            qkey: 0,
            reason: 0,
            param: ConnParam::default(),
        }
    }

    /// It, as what an end receives.
    #[must_use]
    pub const fn received(&self) -> Received {
        Received::Message(self.kind, self.reason)
    }

    /// Its bytes. Private data of more than 255 bytes is cut off: callers bound it by what the kind carries.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let param = &self.param;
        let len = param.private_data.len().min(u8::MAX.into());
        let mut bytes = Vec::with_capacity(HEAD + len);
        bytes.extend(MAGIC);
        bytes.extend([self.kind as u8, self.service as u8]);
        self.addresses.into_iter().for_each(|address| bytes.extend(address_bytes(address)));
        for number in [param.qp_num, self.psn, self.qkey, self.reason.cast_unsigned()] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend([param.srq.into(), param.responder_resources, param.initiator_depth]);
        bytes.extend([param.flow_control.into(), param.retry_count, param.rnr_retry_count]);
        bytes.extend([0, len as u8]);
        bytes.extend(&param.private_data[..len]);
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
        let &service = [Service::Connection, Service::Datagram].get(usize::from(service))?;
        let addresses = [address_of(take(&mut rest)?), address_of(take(&mut rest)?)];
        let mut number = || take(&mut rest).map(u32::from_be_bytes);
        let [qp_num, psn, qkey, reason] = [number()?, number()?, number()?, number()?];
        let [srq, responder_resources, initiator_depth] = take(&mut rest)?;
        let [flow_control, retry_count, rnr_retry_count] = take(&mut rest)?;
        let [_, len] = take(&mut rest)?;
        let param = ConnParam {
            qp_num,
            srq: srq != 0,
            private_data: rest.to_vec(),
            responder_resources,
            initiator_depth,
            flow_control: flow_control != 0,
            retry_count,
            rnr_retry_count,
        };
        let reason = reason.cast_signed();
        let message = Self { kind, service, addresses, psn, qkey, reason, param };
        (rest.len() == len.into()).then_some(message)
    }
}

/// The bytes of an address.
pub const ADDRESS: usize = 18;

/// An address as bytes, an IPv4 one as the IPv6 one that it is mapped to.
#[must_use]
pub fn address_bytes(address: SocketAddr) -> Vec<u8> {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    [&ip.octets()[..], &address.port().to_be_bytes()].concat()
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
