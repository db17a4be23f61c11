//! The address of a datagram, as it lies in the send queue.

use crate::protocol::number::QpNumber;

/// The destination of a datagram. No field is trusted to be in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdAddress {
    pub qp_num: QpNumber,
    pub qkey: u32,
    pub path: Path,
}

/// A service level, and a global route, if any. An address handle has it as it lies in the send queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// From the lowest byte: the service level with [`HAS_ROUTE`], the hop limit, the traffic class, the low byte of the
    /// source GID's number.
    how: u32,
    /// The flow label, and above it the high byte of the source GID's number and the number of the destination's. Seldom anything but
    /// 0.
    more: u64,
}

/// A global route, with [numbers](crate::engine::port::gids) of GIDs in the sender's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub flow_label: u32,
    /// The number of the source GID.
    pub source: u16,
    /// The number of the destination GID.
    pub destination: u16,
}

const HAS_ROUTE: u32 = 0x80;
const SOURCE_SHIFT: u32 = 32;
const DESTINATION_SHIFT: u32 = 48;

impl Path {
    /// A path with this service level and global route.
    pub fn new(sl: u8, route: Option<Route>) -> Self {
        let Some(Route { hop_limit, traffic_class, flow_label, source, destination }) = route
        else {
            return Self { how: sl.into(), more: 0 };
        };
        let [low, high] = source.to_le_bytes();
        let how = u32::from_le_bytes([sl, hop_limit, traffic_class, low]) | HAS_ROUTE;
        let numbers = u64::from(high) << SOURCE_SHIFT | u64::from(destination) << DESTINATION_SHIFT;
        Self { how, more: numbers | u64::from(flow_label) }
    }

    /// The service level.
    pub const fn sl(self) -> u8 {
        (self.how & (HAS_ROUTE - 1)) as u8
    }

    /// Whether it has a global route.
    pub const fn is_global(self) -> bool {
        self.how & HAS_ROUTE != 0
    }

    /// The global route.
    pub fn route(self) -> Option<Route> {
        let [_, hop_limit, traffic_class, low] = self.how.to_le_bytes();
        let source = u16::from_le_bytes([low, (self.more >> SOURCE_SHIFT) as u8]);
        let (flow_label, destination) = (self.more as u32, (self.more >> DESTINATION_SHIFT) as u16);
        let route = Route { hop_limit, traffic_class, flow_label, source, destination };
        self.is_global().then_some(route)
    }
}

impl UdAddress {
    /// Encodes it as a word, half a word, and another word that is seldom needed.
    pub fn to_words(self) -> (u64, u32, Option<u64>) {
        let Self { qp_num, qkey, path: Path { how, more } } = self;
        let to = u64::from(qkey) << 32 | u64::from(qp_num.get());
        (to, how, (more != 0).then_some(more))
    }

    /// Decodes the words. Any value is valid.
    pub fn from_words(to: u64, how: u32, more: Option<u64>) -> Self {
        let path = Path { how, more: more.unwrap_or(0) };
        Self { qp_num: QpNumber::new(to as u32), qkey: (to >> 32) as u32, path }
    }
}

#[cfg(test)]
mod tests;
