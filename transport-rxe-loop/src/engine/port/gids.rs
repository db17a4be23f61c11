//! GID tables: what a port has at each index.

use std::net::{IpAddr, Ipv4Addr};

use cq_core::setup::Gid;

use crate::addresses::Address;

/// `struct ibv_gid_entry`: a GID of a port. Its type is RoCE v2 on Ethernet, and InfiniBand otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GidEntry {
    /// The GID.
    pub gid: Gid,
    /// The index of the network interface that has the address; 0 on InfiniBand.
    pub interface: u32,
}

/// The entries of an InfiniBand port.
const ON_INFINIBAND: u16 = 8;
/// The entries of an Ethernet port: at least and at most. Programs ask for index 1 or 3 by habit; an index has 8 bits.
const LEAST: usize = 4;
const MOST: usize = 256;

/// The table of an InfiniBand port with this link-local GID: the same GUID in the link-local subnet and in site-local
/// ones.
pub fn of_infiniband(link_local: Gid) -> Box<[GidEntry]> {
    let gid = |subnet: u16| {
        let mut bytes = link_local.0;
        if subnet > 0 {
            bytes[..8].copy_from_slice(&[0xfe, 0xc0, 0, 0, 0, 0, 0, 0]);
            bytes[6..8].copy_from_slice(&subnet.to_be_bytes());
        }
        GidEntry { gid: Gid(bytes), interface: 0 }
    };
    (0..ON_INFINIBAND).map(gid).collect()
}

/// The table of an Ethernet port on a machine with these addresses. Those of loopback interfaces come last, IPv6 behind
/// IPv4, link-local ones behind others. Where they are few, further loopback addresses follow.
pub fn of_ethernet(mut addresses: Vec<Address>) -> Box<[GidEntry]> {
    let loopback = addresses.iter().find(|(ip, _)| ip.is_loopback()).map_or(0, |&(_, index)| index);
    // `sort_by_key` keeps the order of the system where keys are equal.
    addresses.sort_by_key(|&(ip, _)| (ip.is_loopback(), ip.is_ipv6(), is_link_local(ip)));
    let mut table = Vec::new();
    addresses.into_iter().for_each(|address| push_new(&mut table, address));
    for last in 1..=LEAST as u8 {
        if table.len() < LEAST {
            push_new(&mut table, (Ipv4Addr::new(127, 0, 0, last).into(), loopback));
        }
    }
    table.truncate(MOST);
    table.into()
}

/// A GID is at one index only.
fn push_new(table: &mut Vec<GidEntry>, (ip, interface): Address) {
    let gid = gid(ip);
    if table.iter().all(|entry| entry.gid != gid) {
        table.push(GidEntry { gid, interface });
    }
}

/// IPv4 addresses are mapped, as `::ffff:10.0.0.1`.
fn gid(ip: IpAddr) -> Gid {
    Gid(match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    })
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

#[cfg(test)]
mod tests;
