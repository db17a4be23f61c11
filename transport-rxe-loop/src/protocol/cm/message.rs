//! The connection manager's messages, and their bytes. What arrives is never trusted: bytes that are no message are
//! refused.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use cq_verbs::cm::ConnParam;

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
const MAGIC: [u8; 4] = *b"cm 2";
/// The most bytes of a message: 65, and private data.
pub const MAX: usize = 65 + u8::MAX as usize;

/// No address.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

impl Message {
    /// A message with nothing in it.
    pub fn of(kind: Kind) -> Self {
        let (service, addresses, param) = (Service::Connection, [NOWHERE; 2], ConnParam::default());
        Self { kind, service, addresses, psn: 0, qkey: 0, reason: 0, param }
    }

    /// It, as what an end receives.
    pub const fn received(&self) -> Received {
        Received::Message(self.kind, self.reason)
    }

    /// Its bytes. Private data of more than 255 bytes is cut off: callers bound it by what the kind carries.
    pub fn to_bytes(&self) -> Vec<u8> {
        let param = &self.param;
        let data = &param.private_data[..param.private_data.len().min(u8::MAX.into())];
        let ips = self.addresses.map(|address| ip_bits(address.ip()).to_be_bytes()).concat();
        let ports = self.addresses.map(|address| address.port().to_be_bytes()).concat();
        let numbers = [param.qp_num, self.psn, self.qkey, self.reason.cast_unsigned()];
        let numbers = numbers.map(u32::to_be_bytes).concat();
        let depths = [param.srq.into(), param.responder_resources, param.initiator_depth];
        let flow = [param.flow_control.into(), param.retry_count, param.rnr_retry_count];
        let first = [self.kind as u8, self.service as u8, data.len() as u8];
        [&MAGIC, &first[..], &ips, &ports, &numbers, &depths, &flow, data].concat()
    }

    /// The message of these bytes; `None` if they are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let (magic, [kind, service, len]) = (take(&mut rest)?, take(&mut rest)?);
        let kinds = [Kind::Req, Kind::Rep, Kind::Rtu, Kind::Rej, Kind::Dreq, Kind::Drep];
        let kind = kinds.into_iter().find(|&known| magic == MAGIC && known as u8 == kind)?;
        let &service = [Service::Connection, Service::Datagram].get(usize::from(service))?;
        let mut ip = || take(&mut rest).map(u128::from_be_bytes).map(ip_of);
        let (from, to) = (ip()?, ip()?);
        let mut port = || take(&mut rest).map(u16::from_be_bytes);
        let addresses = [SocketAddr::new(from, port()?), SocketAddr::new(to, port()?)];
        let mut number = || take(&mut rest).map(u32::from_be_bytes);
        let [qp_num, psn, qkey, reason] = [number()?, number()?, number()?, number()?];
        let [srq, responder_resources, initiator_depth] = take(&mut rest)?;
        let [flow_control, retry_count, rnr_retry_count] = take(&mut rest)?;
        let param = ConnParam::new(qp_num, rest.to_vec())
            .srq(srq != 0)
            .responder_resources(responder_resources)
            .initiator_depth(initiator_depth)
            .flow_control(flow_control != 0)
            .retry_count(retry_count)
            .rnr_retry_count(rnr_retry_count);
        let reason = reason.cast_signed();
        let message = Self { kind, service, addresses, psn, qkey, reason, param };
        (message.param.private_data.len() == len.into()).then_some(message)
    }
}

/// The bits of an address, of an IPv4 one those of the IPv6 one that it is mapped to.
pub fn ip_bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// The address of these bits.
pub fn ip_of(bits: u128) -> IpAddr {
    Ipv6Addr::from_bits(bits).to_canonical()
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*taken)
}
