//! Ports of a device, paths to them, and the ends of connections.

use crate::setup::{Gid, GlobalRoute, Mtu, MtuError};

cq_core::foreign_number! {
    /// `enum ibv_port_state`. Any number is legal ([C3](cq_core::contract#c3)).
    ///
    /// ```
    /// use cq_verbs::device::Device;
    /// use cq_verbs::setup::{DeviceError, PortState};
    ///
    /// fn is_up(device: &impl Device, port: u8) -> Result<bool, DeviceError> {
    ///     Ok(device.port(port)?.state == PortState::ACTIVE)
    /// }
    /// assert_eq!((PortState::from(1), PortState::DOWN.to_string().as_str()), (PortState::DOWN, "down"));
    /// ```
    PortState("ibv_port_state", "ibv_port_state_str"), "unknown" {
        /// No state change.
        NOP = 0, "no state change (NOP)";
        /// No link.
        DOWN = 1, "down";
        /// A link, but no addresses yet.
        INIT = 2, "init";
        /// Addresses, but no traffic yet.
        ARMED = 3, "armed";
        /// It carries traffic.
        ACTIVE = 4, "active";
        /// It did, and may again.
        ACTIVE_DEFER = 5, "active defer";
    }
}

/// `struct ibv_port_attr`: a port of a device, with one of its GIDs, as it was when it was queried.
///
/// # Staleness
/// Cables, subnet managers and network addresses change a port: query it again after an asynchronous event that names
/// it.
///
/// ```
/// use cq_verbs::setup::{AddressVector, Port, PortState};
///
/// let mut port = Port::new(1);
/// (port.lid, port.gid_index) = (7, 2);
/// assert_eq!((port.state, port.number), (PortState::ACTIVE, 1));
/// // A peer in the same subnet, by its LID.
/// assert_eq!(AddressVector::new(&port, port.gid, 9).route, None);
/// ```
#[doc(alias("ibv_port_attr", "ibv_mtu"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Port {
    /// Its number, from 1.
    pub number: u8,
    /// Whether it carries traffic.
    pub state: PortState,
    /// Its local identifier within an InfiniBand subnet; 0 on Ethernet.
    pub lid: u16,
    /// One of its global identifiers.
    pub gid: Gid,
    /// The index of that GID in the port's table.
    pub gid_index: u8,
    /// The MTU in force.
    pub mtu: Mtu,
    /// The longest message, in bytes.
    pub max_msg_size: u64,
    /// Whether the link layer is Ethernet (RoCE): peers are reached by GIDs only.
    pub is_ethernet: bool,
}

impl Port {
    /// For transports: an active port of this number, with nothing else known of it.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self {
            number,
            state: PortState::ACTIVE,
            lid: 0,
            gid: Gid([0; 16]),
            gid_index: 0,
            mtu: Mtu::MTU_4096,
            max_msg_size: 0,
            is_ethernet: false,
        }
    }
}

/// `struct ibv_ah_attr`: the path from a local port to a remote one.
///
/// ```
/// use std::net::Ipv4Addr;
///
/// use cq_verbs::setup::{AddressVector, Gid, Port};
///
/// let peer = Gid::from(Ipv4Addr::new(10, 0, 0, 2));
/// let path = AddressVector::new(&Port::new(1), peer, 0);
/// assert_eq!(path.route.map(|route| (route.gid, route.hop_limit)), Some((peer, 64)));
/// ```
#[doc(alias = "ibv_ah_attr")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct AddressVector {
    /// The local port, from 1.
    pub port: u8,
    /// The remote port's local identifier: 0 on Ethernet, or if there is a route.
    pub lid: u16,
    /// Service level: 0 to 15.
    pub sl: u8,
    /// The global route, which Ethernet needs. A datagram that has one carries a GRH.
    pub route: Option<GlobalRoute>,
}

impl AddressVector {
    crate::setters! { port: u8; lid: u16; sl: u8; route: Option<GlobalRoute>; }

    /// The path from this port to one with these identifiers: by the global one on Ethernet, or if `lid` is 0.
    #[must_use]
    pub fn new(port: &Port, gid: Gid, lid: u16) -> Self {
        const HOP_LIMIT: u8 = 64;
        let route = GlobalRoute {
            gid,
            sgid_index: port.gid_index,
            hop_limit: HOP_LIMIT,
            traffic_class: 0,
            flow_label: 0,
        };
        let is_global = port.is_ethernet || lid == 0;
        Self { port: port.number, lid, sl: 0, route: is_global.then_some(route) }
    }
}

/// Queue pair numbers and packet sequence numbers have this many bits.
const BITS24: u32 = (1 << 24) - 1;

/// One end of a connection: what the peer has to know to connect to it.
///
/// ```
/// use cq_verbs::setup::{Endpoint, EndpointError, Gid, Mtu};
///
/// let mine = Endpoint::new(17).psn(0x00ab_cdef).gid(Gid([7; 16])).mtu(Mtu::MTU_1024);
/// assert_eq!(Endpoint::from_bytes(&mine.to_bytes())?, mine);
///
/// assert!(Endpoint::from_bytes(&[0xff; Endpoint::BYTES]).is_err());
/// # Ok::<(), EndpointError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "received::Endpoint"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Endpoint {
    /// The queue pair's number, of 24 bits.
    pub qp_num: u32,
    /// The first packet sequence number that it sends, of 24 bits.
    pub psn: u32,
    /// The local identifier of its port; 0 on Ethernet.
    pub lid: u16,
    /// The global identifier of its port.
    pub gid: Gid,
    /// The MTU of its port.
    pub mtu: Mtu,
    /// How many READs and atomics of the peer it answers at a time: its `max_dest_rd_atomic`, which the peer's
    /// `max_rd_atomic` must not exceed. A program that sets another one itself changes it here.
    pub responder_resources: u8,
}

/// Why what a peer sent is no [`Endpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum EndpointError {
    /// The queue pair number has more than 24 bits.
    #[error(
        "{0:#x} is not a queue pair number, which has 24 bits: the peer does not speak this protocol"
    )]
    Number(u32),
    /// The packet sequence number has more than 24 bits.
    #[error(
        "{0:#x} is not a packet sequence number, which has 24 bits: the peer does not speak this protocol"
    )]
    Psn(u32),
    /// There is no such MTU.
    #[error(transparent)]
    Mtu(#[from] MtuError),
}

impl Endpoint {
    crate::setters! { psn: u32; lid: u16; gid: Gid; mtu: Mtu; responder_resources: u8; }

    /// The end that is the queue pair of this number, with nothing known of its port: for a device where the number is
    /// enough. It answers one READ or atomic at a time, as [`QpAttr::rtr`](crate::setup::QpAttr::rtr) has it.
    #[must_use]
    pub const fn new(qp_num: u32) -> Self {
        let gid = Gid([0; 16]);
        Self { qp_num, psn: 0, lid: 0, gid, mtu: Mtu::MTU_4096, responder_resources: 1 }
    }

    /// The length of its encoding.
    pub const BYTES: usize = 29;

    /// Its encoding: queue pair number, packet sequence number, MTU, LID, GID, READs and atomics, in network order.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.qp_num.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.psn.to_be_bytes());
        bytes[8..10].copy_from_slice(&(self.mtu.bytes() as u16).to_be_bytes());
        bytes[10..12].copy_from_slice(&self.lid.to_be_bytes());
        bytes[12..28].copy_from_slice(&self.gid.0);
        bytes[28] = self.responder_resources;
        bytes
    }

    /// Decodes what a peer sent.
    ///
    /// # Errors
    /// A number is out of range.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Result<Self, EndpointError> {
        let [n0, n1, n2, n3, p0, p1, p2, p3, m0, m1, l0, l1, gid @ .., responder_resources] =
            *bytes;
        let qp_num = u32::from_be_bytes([n0, n1, n2, n3]);
        let psn = u32::from_be_bytes([p0, p1, p2, p3]);
        let (mtu, lid) = (u16::from_be_bytes([m0, m1]), u16::from_be_bytes([l0, l1]));
        check(qp_num, psn)?;
        let mtu = u32::from(mtu).try_into()?;
        Ok(Self { qp_num, psn, lid, gid: Gid(gid), mtu, responder_resources })
    }
}

fn check(qp_num: u32, psn: u32) -> Result<(), EndpointError> {
    match (qp_num, psn) {
        (number, _) if number > BITS24 => Err(EndpointError::Number(number)),
        (_, psn) if psn > BITS24 => Err(EndpointError::Psn(psn)),
        _ => Ok(()),
    }
}

/// What a peer sent, before it is checked.
#[cfg(feature = "serde")]
mod received {
    use super::{EndpointError, Gid, Mtu, check};

    #[derive(serde::Deserialize)]
    #[non_exhaustive]
    pub struct Endpoint {
        qp_num: u32,
        psn: u32,
        lid: u16,
        gid: Gid,
        mtu: Mtu,
        #[serde(default = "one")]
        responder_resources: u8,
    }

    /// As of [`Endpoint::new`](super::Endpoint::new).
    const fn one() -> u8 {
        1
    }

    impl TryFrom<Endpoint> for super::Endpoint {
        type Error = EndpointError;

        fn try_from(received: Endpoint) -> Result<Self, EndpointError> {
            let Endpoint { qp_num, psn, lid, gid, mtu, responder_resources } = received;
            check(qp_num, psn)?;
            Ok(Self { qp_num, psn, lid, gid, mtu, responder_resources })
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
