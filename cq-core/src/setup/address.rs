//! How ports are addressed, and who is behind them.

use core::fmt;
use core::net::{AddrParseError, Ipv6Addr};
use core::str::FromStr;

/// `union ibv_gid`: the address of a port, written as an IPv6 address.
///
/// ```
/// use cq_core::setup::Gid;
///
/// let gid: Gid = "::ffff:10.0.0.1".parse()?;
/// assert_eq!(gid.to_string(), "::ffff:10.0.0.1");
/// assert_eq!(gid.0[12..], [10, 0, 0, 1]);
/// # Ok::<(), core::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid(
    /// Its bytes in network order.
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

/// `struct ibv_global_route`: the way to a port of another subnet, or on Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobalRoute {
    /// Global identifier of the other port.
    pub gid: Gid,
    /// Index of this port's global identifier.
    pub sgid_index: u8,
    /// How many routers a packet may pass.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label, of 20 bits.
    pub flow_label: u32,
}

/// Where a datagram goes, by an address handle of the transport's.
#[derive(Debug)]
pub struct Destination<'a, Ah> {
    /// The address, made in the queue pair's protection domain.
    pub ah: &'a Ah,
    /// Number of the queue pair there.
    pub qp_num: u32,
    /// The queue key that it asks for.
    pub qkey: u32,
}

// Derived, they would ask the same of the handle.
impl<Ah> Copy for Destination<'_, Ah> {}
impl<Ah> Clone for Destination<'_, Ah> {
    fn clone(&self) -> Self {
        *self
    }
}
