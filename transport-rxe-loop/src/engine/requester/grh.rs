//! The global route header: the forty bytes before a datagram. As on the wire, in network order: version,
//! traffic class and flow label in four bytes, the length of what follows in two, the next header, the hop
//! limit, and the global identifiers of sender and receiver.

use cq_core::setup::{Gid, GlobalRoute};

use crate::engine::ud_address::Route;
use crate::sync::AtomicU64;

/// How many bytes it has.
pub const BYTES: usize = 40;

/// IP version 6, in the uppermost bits.
const VERSION: u32 = 6 << 28;
const CLASS_SHIFT: u32 = 20;
/// The flow label, below the traffic class.
const FLOW: u32 = (1 << CLASS_SHIFT) - 1;
/// A transport header of InfiniBand is next.
const NEXT: u8 = 0x1b;
/// The headers of a datagram, and its checksum.
const OVERHEAD: usize = 12 + 8 + 4;
/// The hop limit of an answer, as `ibv_init_ah_from_wc(3)` has it: the one that it came with.
const HOPS_AT: usize = 7;
const SOURCE_AT: usize = 8;
const TARGET_AT: usize = 24;

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grh([u8; BYTES]);

impl Grh {
    /// Of a datagram of `len` bytes, which has so many bytes of immediate data, from and to the only port there is.
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

    /// What lies in a buffer.
    pub const fn of_bytes(bytes: &[u8; BYTES]) -> Self {
        Self(*bytes)
    }

    /// To be copied from.
    pub fn to_words(self) -> [AtomicU64; BYTES / 8] {
        let word = |i| u64::from_ne_bytes(std::array::from_fn(|k| self.0[8 * i + k]));
        std::array::from_fn(|i| AtomicU64::new(word(i)))
    }

    /// The route back to where it came from.
    pub fn way_back(&self) -> GlobalRoute {
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
