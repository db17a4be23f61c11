//! Ports of a device and their GIDs: where a queue pair sends from, and how its peer finds it.

use std::net::Ipv6Addr;
use std::sync::Arc;

use cq_core::setup::Gid;
use rustix::io::Errno;

use crate::error::{Attempt, DeviceError};
use crate::sys::context::Context;
pub use crate::sys::port::PortState;
use crate::sys::port::{self, GidEntry, PortAttr};

fn is_ipv4(gid: Gid) -> bool {
    Ipv6Addr::from(gid.0).to_ipv4_mapped().is_some()
}

fn is_link_local(gid: Gid) -> bool {
    Ipv6Addr::from(gid.0).is_unicast_link_local()
}

/// A port, as it was when it was asked, and one of its GIDs.
///
/// ```
/// use transport_verbs::Gid;
///
/// let gid: Gid = "::ffff:10.0.0.1".parse()?;
/// assert_eq!(gid.to_string(), "::ffff:10.0.0.1");
/// assert_eq!(gid.0[12..], [10, 0, 0, 1]);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
///
/// # Staleness
/// Cables, subnet managers and network addresses change it; ask the context again after an asynchronous
/// event that names the port.
#[derive(Clone, Debug)]
pub struct Port {
    context: Arc<Context>,
    number: u8,
    attr: PortAttr,
    gid_index: u8,
    gid: Gid,
}

impl Port {
    pub(crate) fn new(context: &Arc<Context>, number: u8) -> Result<Self, DeviceError> {
        let attr = port::query(context, number).attempt("query the port")?;
        let table = port::gids(context, number).attempt("read the port's GIDs")?;
        let (gid_index, gid) = match best(&table) {
            Some(entry) => (entry.index, entry.gid),
            None if !attr.is_ethernet => (0, Gid::default()),
            None => {
                let attempt = "find a GID of the port (give its network interface an address)";
                return Err(DeviceError::new(attempt, Errno::ADDRNOTAVAIL.into()));
            }
        };
        Ok(Self { context: Arc::clone(context), number, attr, gid_index, gid })
    }

    /// The same port with another of its [`gids`](crate::Context::gids).
    ///
    /// # Errors
    /// There is no GID at that index.
    pub fn with_gid(&self, index: u8) -> Result<Self, DeviceError> {
        let table = port::gids(&self.context, self.number).attempt("read the port's GIDs")?;
        let entry = table.iter().find(|entry| entry.index == index);
        let entry = entry.ok_or(Errno::NOENT.into()).attempt("find a GID at that index")?;
        Ok(Self { gid_index: entry.index, gid: entry.gid, ..self.clone() })
    }

    /// Its number, from 1.
    #[must_use]
    pub const fn number(&self) -> u8 {
        self.number
    }

    /// Its address within an InfiniBand subnet; 0 on Ethernet.
    #[must_use]
    pub const fn lid(&self) -> u16 {
        self.attr.lid
    }

    /// Its address in general.
    #[must_use]
    pub const fn gid(&self) -> Gid {
        self.gid
    }

    /// Where that GID stands in the port's table.
    #[must_use]
    pub const fn gid_index(&self) -> u8 {
        self.gid_index
    }

    /// Payload bytes of a packet at most, as the port is set now: 256 to 4096.
    #[must_use]
    pub const fn mtu(&self) -> u32 {
        self.attr.mtu
    }

    /// Whether it carries traffic.
    #[must_use]
    pub const fn state(&self) -> PortState {
        self.attr.state
    }

    /// Bytes of a message at most.
    #[must_use]
    pub const fn max_msg_size(&self) -> u64 {
        self.attr.max_msg_size
    }

    /// Whether peers are found by GIDs alone: RoCE.
    #[must_use]
    pub const fn is_ethernet(&self) -> bool {
        self.attr.is_ethernet
    }
}

/// The GIDs of a port that are in use, each with its index.
pub fn gids(context: &Arc<Context>, number: u8) -> Result<Vec<(u8, Gid)>, DeviceError> {
    port::query(context, number).attempt("query the port")?;
    let table = port::gids(context, number).attempt("read the port's GIDs")?;
    Ok(table.iter().map(|entry| (entry.index, entry.gid)).collect())
}

/// The GID that most likely reaches a peer. On Ethernet that is one that routers and firewalls know, of
/// RoCE v2, and an IPv4 one first; on InfiniBand the first.
fn best(table: &[GidEntry]) -> Option<&GidEntry> {
    table.iter().min_by_key(|entry| match entry.kind {
        port::GID_ROCE_V1 => 3,
        port::GID_ROCE_V2 if is_link_local(entry.gid) => 2,
        port::GID_ROCE_V2 if !is_ipv4(entry.gid) => 1,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u8, gid: &str, kind: u32) -> GidEntry {
        GidEntry { index, gid: gid.parse().unwrap(), kind }
    }

    #[test]
    fn the_best_gid_is_the_one_that_reaches_farthest() {
        let table = [
            entry(0, "fe80::1", port::GID_ROCE_V1),
            entry(1, "fe80::1", port::GID_ROCE_V2),
            entry(2, "::ffff:10.0.0.1", port::GID_ROCE_V1),
            entry(3, "::ffff:10.0.0.1", port::GID_ROCE_V2),
            entry(4, "2001:db8::1", port::GID_ROCE_V2),
            entry(5, "::ffff:10.0.0.2", port::GID_ROCE_V2),
        ];
        let best_without = |gone: &[u8]| {
            let left: Vec<GidEntry> =
                table.iter().filter(|entry| !gone.contains(&entry.index)).copied().collect();
            best(&left).map(|entry| entry.index)
        };
        assert_eq!(best_without(&[]), Some(3));
        assert_eq!(best_without(&[3]), Some(5));
        assert_eq!(best_without(&[3, 5]), Some(4));
        assert_eq!(best_without(&[3, 4, 5]), Some(1));
        assert_eq!(best_without(&[1, 3, 4, 5]), Some(0));
        assert_eq!(best_without(&[0, 1, 2, 3, 4, 5]), None);
    }

    #[test]
    fn the_best_gid_of_infiniband_is_the_first() {
        let table = [entry(0, "fe80::1", 0), entry(1, "fec0::1", 0)];
        assert_eq!(best(&table).map(|entry| entry.index), Some(0));
    }
}
