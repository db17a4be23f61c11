//! Addresses of ports, and destinations of datagrams.

use core::fmt;
use core::net::{AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// `union ibv_gid`: the address of a port, written as an IPv6 address. With RoCEv2 it is the address of a network interface;
/// one of IPv4 is mapped, as `::ffff:10.0.0.1`.
///
/// ```
/// use core::net::Ipv4Addr;
///
/// use cq_verbs::setup::Gid;
///
/// let gid: Gid = "::ffff:10.0.0.1".parse()?;
/// assert_eq!(gid, Gid::from(Ipv4Addr::new(10, 0, 0, 1)));
/// assert_eq!(gid.to_string(), "::ffff:10.0.0.1");
/// assert_eq!(gid.to_ipv4(), Some(Ipv4Addr::new(10, 0, 0, 1)));
/// assert_eq!(gid.0[12..], [10, 0, 0, 1]);
/// # Ok::<(), core::net::AddrParseError>(())
/// ```
#[doc(alias = "ibv_gid")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Gid(
    /// The bytes in network order.
    pub [u8; 16],
);

impl Gid {
    /// The same bytes as an IPv6 address.
    #[must_use]
    pub const fn to_ipv6(self) -> Ipv6Addr {
        Ipv6Addr::from_bits(u128::from_be_bytes(self.0))
    }

    /// The IPv4 address that is mapped; `None` if none is.
    #[must_use]
    pub const fn to_ipv4(self) -> Option<Ipv4Addr> {
        self.to_ipv6().to_ipv4_mapped()
    }
}

impl From<Gid> for Ipv6Addr {
    fn from(gid: Gid) -> Self {
        gid.to_ipv6()
    }
}

impl From<Ipv6Addr> for Gid {
    fn from(ip: Ipv6Addr) -> Self {
        Self(ip.octets())
    }
}

impl From<Ipv4Addr> for Gid {
    fn from(ip: Ipv4Addr) -> Self {
        ip.to_ipv6_mapped().into()
    }
}

impl From<IpAddr> for Gid {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => ip.into(),
            IpAddr::V6(ip) => ip.into(),
        }
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_ipv6().fmt(f)
    }
}

impl FromStr for Gid {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        text.parse::<Ipv6Addr>().map(Self::from)
    }
}

/// `struct ibv_global_route`: the route to a port in another subnet or on Ethernet.
///
/// ```
/// use cq_verbs::setup::{Gid, GlobalRoute};
///
/// let route = GlobalRoute::default().gid(Gid([7; 16])).hop_limit(64);
/// assert_eq!(route.traffic_class, 0);
/// ```
#[doc(alias = "ibv_global_route")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct GlobalRoute {
    /// GID of the destination port.
    pub gid: Gid,
    /// Index of the source GID.
    pub sgid_index: u8,
    /// Maximum number of router hops.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
}

impl GlobalRoute {
    crate::setters! { gid: Gid; sgid_index: u8; hop_limit: u8; traffic_class: u8; flow_label: u32; }
}

/// The destination of a datagram. `Ah` is the transport's address handle.
///
/// ```
/// use cq_verbs::device::{Device, DevicePd, DeviceQp};
/// use cq_verbs::post::Post;
/// use cq_verbs::setup::{AddressVector, Destination};
/// use cq_verbs::wr::SendWr;
///
/// fn greet<D: Device>(pd: &D::Pd, qp: &mut D::Qp, to: &AddressVector) -> Result<(), Box<dyn std::error::Error>> {
///     let ah = pd.create_ah(to)?;
///     qp.to(&Destination::new(&ah, 17, 0x1111)).post_send(&[SendWr::send_inline(1, b"hello")])?;
///     Ok(())
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Destination<'a, Ah> {
    /// Address handle, created in the sending queue pair's protection domain.
    pub ah: &'a Ah,
    /// Number of the destination queue pair.
    pub qp_num: u32,
    /// Queue key (Q_Key) of the destination queue pair.
    pub qkey: u32,
}

cq_core::copied!([Ah] Destination<'_, Ah>);

impl<'a, Ah> Destination<'a, Ah> {
    /// The queue pair with this number and queue key, at the address of this handle.
    pub const fn new(ah: &'a Ah, qp_num: u32, qkey: u32) -> Self {
        Self { ah, qp_num, qkey }
    }
}
