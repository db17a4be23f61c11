//! Ports of a device and their GIDs: where a queue pair sends from, and how its peer finds it.

use cq_verbs::setup::{DeviceError, Errno, Gid, Port};

use crate::error::Attempt;
use crate::sys::context::Context;
use crate::sys::port::{self, GidEntry};

/// Queries a port, with its best GID.
pub fn query(context: &Context, number: u8) -> Result<Port, DeviceError> {
    let port = port::query(context, number).attempt("query the port")?;
    let table = port::gids(context, number).attempt("read the port's GIDs")?;
    match best(&table) {
        Some(entry) => Ok(with(port, entry)),
        None if !port.is_ethernet => Ok(port),
        None => {
            let attempt = "find a GID of the port (give its network interface an address)";
            Err(DeviceError::cannot(attempt, Errno::EADDRNOTAVAIL))
        }
    }
}

/// The same, with the GID at this index.
pub fn query_gid(context: &Context, number: u8, index: u8) -> Result<Port, DeviceError> {
    let port = port::query(context, number).attempt("query the port")?;
    let table = port::gids(context, number).attempt("read the port's GIDs")?;
    let none = DeviceError::cannot("find a GID at that index", Errno::ENOENT);
    table.iter().find(|entry| entry.index == index).map(|entry| with(port, entry)).ok_or(none)
}

fn with(mut port: Port, entry: &GidEntry) -> Port {
    (port.gid, port.gid_index) = (entry.gid, entry.index);
    port
}

/// The GIDs of a port that are in use, each with its index.
pub fn gids(context: &Context, number: u8) -> Result<Vec<(u8, Gid)>, DeviceError> {
    port::query(context, number).attempt("query the port")?;
    let table = port::gids(context, number).attempt("read the port's GIDs")?;
    Ok(table.iter().map(|entry| (entry.index, entry.gid)).collect())
}

/// The GID that most likely reaches a peer. On Ethernet that is one that routers and firewalls know, of
/// RoCE v2, and an IPv4 one first; on InfiniBand the first.
fn best(table: &[GidEntry]) -> Option<&GidEntry> {
    table.iter().min_by_key(|entry| match entry.kind {
        port::GID_ROCE_V1 => 3,
        port::GID_ROCE_V2 if entry.gid.to_ipv6().is_unicast_link_local() => 2,
        port::GID_ROCE_V2 if entry.gid.to_ipv4().is_none() => 1,
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
