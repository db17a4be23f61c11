//! The global route header (GRH): forty bytes before a datagram, in network order as on the wire. Version, traffic
//! class and flow label in four bytes, the payload length in two, the next header, the hop limit, and the GIDs of
//! sender and receiver. RoCE v2 has the header of its IP packet in this place, an IPv6 one, or an IPv4 one in the last
//! twenty bytes behind twenty that are 0, as Linux' drivers have it.

use std::net::Ipv4Addr;

use cq_verbs::setup::Gid;

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
/// The next header of RoCE v2: UDP, before the transport header.
const NEXT_UDP: u8 = 17;
/// Bytes of the header of UDP.
const UDP: u16 = 8;
/// Bytes of a datagram's transport headers and its checksum.
const OVERHEAD: usize = 12 + 8 + 4;
/// Where the hop limit is. A reply has the same, as `ibv_init_ah_from_wc(3)` says.
const HOPS_AT: usize = 7;
const SOURCE_AT: usize = 8;
const TARGET_AT: usize = 24;

/// Where an IPv4 header is, and what it begins with: version 4, and a length of five words.
const IPV4_AT: usize = 20;
const IPV4_BYTES: usize = BYTES - IPV4_AT;
const IPV4_FIRST: u8 = 0x45;
/// It is not to be fragmented.
const DONT_FRAGMENT: u8 = 0x40;

/// The header, as words of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grh([u64; BYTES / 8]);

/// What a header says of the datagram behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    pub source: Gid,
    pub destination: Gid,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub flow_label: u32,
}

/// The bytes of a datagram's packet, which carries so many bytes, and so many of immediate data.
pub const fn payload(len: usize, immediate: usize) -> u16 {
    (OVERHEAD + immediate + len.next_multiple_of(4)) as u16
}

impl Grh {
    /// The GRH between these two GIDs of InfiniBand ports.
    pub fn of_infiniband(ends: [Gid; 2], route: Route, payload: u16) -> Self {
        Self::of_ipv6(ends, route, NEXT, payload)
    }

    /// The IP header between these two GIDs of Ethernet ports.
    pub fn of_roce(ends: [Gid; 2], route: Route, payload: u16) -> Self {
        match ends.map(Gid::to_ipv4) {
            [Some(source), Some(target)] => Self::of_ipv4([source, target], route, UDP + payload),
            _ => Self::of_ipv6(ends, route, NEXT_UDP, UDP + payload),
        }
    }

    fn of_ipv6([source, target]: [Gid; 2], route: Route, next: u8, payload: u16) -> Self {
        let first =
            VERSION | u32::from(route.traffic_class) << CLASS_SHIFT | route.flow_label & FLOW;
        let second = u32::from(payload) << 16 | u32::from(next) << 8 | u32::from(route.hop_limit);
        let half =
            |gid: Gid, from: usize| u64::from_ne_bytes(std::array::from_fn(|i| gid.0[from + i]));
        let first = (u64::from(first) << 32 | u64::from(second)).to_be();
        Self([first, half(source, 0), half(source, 8), half(target, 0), half(target, 8)])
    }

    fn of_ipv4([source, target]: [Ipv4Addr; 2], route: Route, payload: u16) -> Self {
        let mut header = [0; IPV4_BYTES];
        (header[0], header[1]) = (IPV4_FIRST, route.traffic_class);
        header[2..4].copy_from_slice(&(IPV4_BYTES as u16 + payload).to_be_bytes());
        (header[6], header[8], header[9]) = (DONT_FRAGMENT, route.hop_limit, NEXT_UDP);
        header[12..16].copy_from_slice(&source.octets());
        header[16..].copy_from_slice(&target.octets());
        let checksum = checksum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        let mut bytes = [0; BYTES];
        bytes[IPV4_AT..].copy_from_slice(&header);
        Self::of_bytes(&bytes)
    }

    /// The GRH in a buffer.
    pub fn of_bytes(bytes: &[u8; BYTES]) -> Self {
        let word = |nth| u64::from_ne_bytes(std::array::from_fn(|i| bytes[8 * nth + i]));
        Self(std::array::from_fn(word))
    }

    /// Its bytes.
    fn to_bytes(self) -> [u8; BYTES] {
        let words = self.0.map(u64::to_ne_bytes);
        std::array::from_fn(|i| words[i / 8][i % 8])
    }

    /// As words, to be copied from.
    pub fn to_words(self) -> [AtomicU64; BYTES / 8] {
        self.0.map(AtomicU64::new)
    }

    /// What it says. What is no IPv6 header is read as an IPv4 one.
    pub fn fields(&self) -> Fields {
        let bytes = self.to_bytes();
        let gid = |from: usize| Gid(std::array::from_fn(|i| bytes[from + i]));
        let first = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if first >> 28 == VERSION >> 28 {
            return Fields {
                source: gid(SOURCE_AT),
                destination: gid(TARGET_AT),
                hop_limit: bytes[HOPS_AT],
                traffic_class: (first >> CLASS_SHIFT) as u8,
                flow_label: first & FLOW,
            };
        }
        let header = &bytes[IPV4_AT..];
        let mapped = |from: usize| {
            let [a, b, c, d] = std::array::from_fn(|i| header[from + i]);
            Ipv4Addr::new(a, b, c, d).into()
        };
        Fields {
            source: mapped(12),
            destination: mapped(16),
            hop_limit: header[8],
            traffic_class: header[1],
            flow_label: 0,
        }
    }
}

/// The checksum of an IPv4 header that has none yet.
fn checksum(header: &[u8; IPV4_BYTES]) -> u16 {
    let words = header.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !(folded + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests;
