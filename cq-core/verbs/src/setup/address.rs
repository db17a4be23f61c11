//! Addresses of ports, and destinations of datagrams.

use core::fmt;
use core::net::{AddrParseError, Ipv6Addr};
use core::str::FromStr;

/// `union ibv_gid`: the address of a port, written as an IPv6 address.
///
/// ```
/// use cq_verbs::setup::Gid;
///
/// let gid: Gid = "::ffff:10.0.0.1".parse()?;
/// assert_eq!(gid.to_string(), "::ffff:10.0.0.1");
/// assert_eq!(gid.0[12..], [10, 0, 0, 1]);
/// # Ok::<(), core::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Gid(
    /// The bytes in network order.
    pub [u8; 16],
);

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

impl FromStr for Gid {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        Ok(Self(text.parse::<Ipv6Addr>()?.octets()))
    }
}

/// `struct ibv_global_route`: the route to a port in another subnet or on Ethernet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

/// The destination of a datagram. `Ah` is the transport's address handle.
#[derive(Debug)]
pub struct Destination<'a, Ah> {
    /// Address handle, created in the sending queue pair's protection domain.
    pub ah: &'a Ah,
    /// Number of the destination queue pair.
    pub qp_num: u32,
    /// Queue key (Q_Key) of the destination queue pair.
    pub qkey: u32,
}

// Derives would also require `Ah: Copy` and `Ah: Clone`.
impl<Ah> Copy for Destination<'_, Ah> {}
impl<Ah> Clone for Destination<'_, Ah> {
    fn clone(&self) -> Self {
        *self
    }
}
