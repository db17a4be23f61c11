//! The address of a datagram, as it lies in the send queue.

use crate::protocol::number::QpNumber;
use cq_core::setup::GlobalRoute;

/// The destination of a datagram. No field is trusted to be in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdAddress {
    pub qp_num: QpNumber,
    pub qkey: u32,
    pub sl: u8,
    /// The fields of the global route, if any.
    pub route: Option<Route>,
}

/// A global route without its GID, which is always this device's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub flow_label: u32,
}

const HAS_ROUTE: u8 = 0x80;

impl UdAddress {
    /// To a queue pair, by this service level and global route.
    pub fn new(sl: u8, route: Option<GlobalRoute>, qp_num: QpNumber, qkey: u32) -> Self {
        let route = route.map(|route| Route {
            hop_limit: route.hop_limit,
            traffic_class: route.traffic_class,
            flow_label: route.flow_label,
        });
        Self { qp_num, qkey, sl, route }
    }

    /// Encodes it as two words; the second one has 32 bits. They do not hold a
    /// [flow label](Self::flow_label).
    pub fn to_words(self) -> [u64; 2] {
        let Self { qp_num, qkey, sl, route } = self;
        let how = match route {
            Some(Route { hop_limit, traffic_class, .. }) => {
                [sl | HAS_ROUTE, hop_limit, traffic_class, 0]
            }
            None => [sl, 0, 0, 0],
        };
        [u64::from(qkey) << 32 | u64::from(qp_num.get()), u32::from_ne_bytes(how).into()]
    }

    /// The flow label, seldom given.
    pub fn flow_label(&self) -> Option<u32> {
        self.route.map(|route| route.flow_label).filter(|&label| label != 0)
    }

    /// Decodes two words and a flow label. Any value is valid.
    pub fn from_words([to, how]: [u64; 2], flow_label: u32) -> Self {
        let [first, hop_limit, traffic_class, _] = (how as u32).to_ne_bytes();
        let has_route = first & HAS_ROUTE != 0;
        let route = has_route.then_some(Route { hop_limit, traffic_class, flow_label });
        Self {
            qp_num: QpNumber::new(to as u32),
            qkey: (to >> 32) as u32,
            sl: first & !HAS_ROUTE,
            route,
        }
    }
}

#[cfg(test)]
mod tests;
