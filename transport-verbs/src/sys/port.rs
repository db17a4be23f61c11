//! Ports, in our own words: what the library writes is judged here.

use std::io;

use cq_verbs::setup::{Gid, Mtu, Port, PortState};
use rdma_sys::{IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2};

use super::context::Context;
use super::ext;

/// `enum ibv_gid_type`.
pub const GID_ROCE_V1: u32 = IBV_GID_TYPE_ROCE_V1;
/// `enum ibv_gid_type`.
pub const GID_ROCE_V2: u32 = IBV_GID_TYPE_ROCE_V2;

/// `IBV_LINK_LAYER_ETHERNET`, which `rdma-sys` leaves out.
pub const LINK_LAYER_ETHERNET: u8 = 2;

/// A GID in use, and its place in the port's table.
#[derive(Clone, Copy, Debug)]
pub struct GidEntry {
    pub index: u8,
    pub gid: Gid,
    pub kind: u32,
}

/// Queries a port. It has no GID yet.
pub fn query(context: &Context, number: u8) -> io::Result<Port> {
    let attr = context.query_port(number)?;
    let mut port = Port::new(number);
    port.state = PortState(attr.state);
    port.lid = attr.lid;
    port.mtu = mtu(attr.active_mtu);
    port.max_msg_size = attr.max_msg_sz.into();
    port.is_ethernet = attr.link_layer == LINK_LAYER_ETHERNET;
    Ok(port)
}

/// The GIDs of a port that are in use, by their index. Those whose index no queue pair could use are left
/// out.
pub fn gids(context: &Context, number: u8) -> io::Result<Vec<GidEntry>> {
    let mut max_entries = 0;
    for port in 1..=context.attributes.phys_port_cnt {
        max_entries += usize::try_from(context.query_port(port)?.gid_tbl_len).unwrap_or(0);
    }
    let of_port = context.query_gids(max_entries)?.into_iter().filter_map(|entry| {
        let index = u8::try_from(entry.gid_index).ok()?;
        let gid = ext::gid(&entry);
        (entry.port_num == number.into()).then_some(GidEntry { index, gid, kind: entry.gid_type })
    });
    Ok(of_port.collect())
}

/// An `enum ibv_mtu`. A number that is none of the five is taken for the smallest, which works
/// everywhere.
fn mtu(number: u32) -> Mtu {
    Mtu::from_number(number).unwrap_or(Mtu::MTU_256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c03_a_foreign_mtu_is_taken_for_the_smallest() {
        assert_eq!([1, 2, 3, 4, 5].map(|number| mtu(number).bytes()), [256, 512, 1024, 2048, 4096]);
        assert_eq!([0, 6, u32::MAX].map(mtu), [Mtu::MTU_256; 3]);
    }
}
