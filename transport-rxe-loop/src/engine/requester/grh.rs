//! The global route header (GRH): forty bytes before a datagram, in network order as on the wire. Version, traffic
//! class and flow label in four bytes, the payload length in two, the next header, the hop limit, and the GIDs of
//! sender and receiver.

use cq_core::setup::{Gid, GlobalRoute};

use crate::engine::ud_address::Route;
use crate::sync::AtomicU64;

/// Its size in bytes.
pub const BYTES: usize = 40;

/// IP version 6, in the highest bits.
const VERSION: u32 = 6 << 28;
const CLASS_SHIFT: u32 = 20;
/// The flow label, below the traffic class.
const FLOW: u32 = (1 << CLASS_SHIFT) - 1;
/// The next header: an InfiniBand transport header.
const NEXT: u8 = 0x1b;
/// Bytes of a datagram's transport headers and its checksum.
const OVERHEAD: usize = 12 + 8 + 4;
/// Where the hop limit is. A reply has the same, as `ibv_init_ah_from_wc(3)` says.
const HOPS_AT: usize = 7;
const SOURCE_AT: usize = 8;
const TARGET_AT: usize = 24;

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grh([u8; BYTES]);

impl Grh {
    /// The GRH of a datagram of `len` bytes with so many bytes of immediate data, from the device's only port to
    /// itself.
    pub fn new(gid: Gid, route: Route, len: usize, immediate: usize) -> Self {
        let mut bytes = [0; BYTES];
        let first =
            VERSION | u32::from(route.traffic_class) << CLASS_SHIFT | route.flow_label & FLOW;
        let payload = OVERHEAD + immediate + len.next_multiple_of(4);
        bytes[..4].copy_from_slice(&first.to_be_bytes());
        bytes[4..6].copy_from_slice(&(payload as u16).to_be_bytes());
        bytes[6] = NEXT;
        bytes[HOPS_AT] = route.hop_limit;
        bytes[SOURCE_AT..TARGET_AT].copy_from_slice(&gid.0);
        bytes[TARGET_AT..].copy_from_slice(&gid.0);
        Self(bytes)
    }

    /// The GRH in a buffer.
    pub const fn of_bytes(bytes: &[u8; BYTES]) -> Self {
        Self(*bytes)
    }

    /// As words, to be copied from.
    pub fn to_words(self) -> [AtomicU64; BYTES / 8] {
        let word = |i| u64::from_ne_bytes(std::array::from_fn(|k| self.0[8 * i + k]));
        std::array::from_fn(|i| AtomicU64::new(word(i)))
    }

    /// The global route of a reply.
    pub fn reply_route(&self) -> GlobalRoute {
        let mut gid = [0; 16];
        gid.copy_from_slice(&self.0[SOURCE_AT..TARGET_AT]);
        let first = u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]]);
        let traffic_class = (first >> CLASS_SHIFT) as u8;
        let (hop_limit, flow_label) = (self.0[HOPS_AT], first & FLOW);
        GlobalRoute { gid: Gid(gid), sgid_index: 0, hop_limit, traffic_class, flow_label }
    }
}

#[cfg(test)]
mod tests;
