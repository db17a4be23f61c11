//! The address of a datagram, as it lies in the send queue.

use crate::protocol::number::QpNumber;

/// The destination of a datagram. No field is trusted to be in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdAddress {
    pub qp_num: QpNumber,
    pub qkey: u32,
    pub sl: u8,
    /// The fields of the global route, if any.
    pub route: Option<Route>,
}

/// A global route, with indices of the port's GIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub flow_label: u32,
    /// The index of the source GID.
    pub source: u8,
    /// The index of the destination GID.
    pub destination: u8,
}

const HAS_ROUTE: u8 = 0x80;
/// In the third word, the index of the destination GID is above the flow label.
const DESTINATION_SHIFT: u32 = 32;

impl UdAddress {
    /// Encodes it as two words, of which the second one has 32 bits, and a third one that is seldom needed: for a flow
    /// label, or a destination GID that is not at index 0.
    pub fn to_words(self) -> ([u64; 2], Option<u64>) {
        let Self { qp_num, qkey, sl, route } = self;
        let to = u64::from(qkey) << 32 | u64::from(qp_num.get());
        let Some(route) = route else { return ([to, sl.into()], None) };
        let how = [sl | HAS_ROUTE, route.hop_limit, route.traffic_class, route.source];
        let third = u64::from(route.destination) << DESTINATION_SHIFT | u64::from(route.flow_label);
        ([to, u32::from_ne_bytes(how).into()], Some(third).filter(|&word| word != 0))
    }

    /// Decodes the words; the third one is 0 if it is missing. Any value is valid.
    pub fn from_words([to, how]: [u64; 2], third: u64) -> Self {
        let [first, hop_limit, traffic_class, source] = (how as u32).to_ne_bytes();
        let (flow_label, destination) = (third as u32, (third >> DESTINATION_SHIFT) as u8);
        let route = Route { hop_limit, traffic_class, flow_label, source, destination };
        Self {
            qp_num: QpNumber::new(to as u32),
            qkey: (to >> 32) as u32,
            sl: first & !HAS_ROUTE,
            route: (first & HAS_ROUTE != 0).then_some(route),
        }
    }
}

#[cfg(test)]
mod tests;
