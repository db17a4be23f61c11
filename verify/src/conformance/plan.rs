//! How the ends of the cases are made, and on which way their queue pairs get to a state.

use crate::device::{
    Access, Qp, QpAttr, QpCaps, QpState, QpType, SMALL_CAPS as CAPS, SrqInit, attr,
};

/// The queue key of every end.
pub const QKEY: u32 = 0x1234_5678;

/// How an end is made.
#[derive(Clone, Copy)]
pub struct Plan {
    /// What its queue pair can do.
    pub qp_type: QpType,
    /// The capacities of its queue pair.
    pub caps: QpCaps,
    /// The shared receive queue that it takes its receives from, if it has none of its own.
    pub srq: Option<SrqInit>,
    /// How many completions each of its queues holds.
    pub cqe: u32,
    /// Whether its queues have a channel.
    pub channel: bool,
    /// Whether its queues drop what they have no room for, instead of failing.
    pub ignores_overrun: bool,
    /// Whether every send is signaled.
    pub sq_sig_all: bool,
    /// What its region allows.
    pub region: Access,
    /// What its queue pair allows.
    pub access: Access,
    /// How it gets to RTR; the number of the peer is filled in.
    pub rtr: QpAttr,
    /// How it gets to RTS.
    pub rts: QpAttr,
}

impl Default for Plan {
    fn default() -> Self {
        Self::of(QpType::Rc)
    }
}

impl Plan {
    /// The usual one, of this type.
    pub fn of(qp_type: QpType) -> Self {
        let (region, access) = (Access::EVERY, Access::EVERY);
        Self {
            qp_type,
            caps: CAPS,
            srq: None,
            cqe: 64,
            channel: false,
            ignores_overrun: false,
            sq_sig_all: false,
            region,
            access,
            rtr: attr::rtr_as(qp_type, 0),
            rts: attr::rts_as(qp_type),
        }
    }

    /// The usual one, with a channel.
    pub fn with_channel() -> Self {
        Self { channel: true, ..Self::default() }
    }
}

/// Brings a queue pair from RESET to `state` on the shortest way.
pub fn bring_to<Ah>(qp: &mut impl Qp<Ah>, plan: &Plan, state: QpState, peer: u32) {
    let rtr = match plan.qp_type {
        QpType::Ud => plan.rtr, // it has no peer
        _ => plan.rtr.dest_qp_num(peer),
    };
    let way = [attr::init_as(plan.qp_type, plan.access, QKEY), rtr, plan.rts];
    let (steps, last) = match state {
        QpState::RESET => (0, None),
        QpState::INIT => (1, None),
        QpState::RTR => (2, None),
        QpState::RTS => (3, None),
        QpState::ERR => (1, Some(QpAttr::to(state))),
        _ => panic!("{state:?} takes more than attributes"),
    };
    for attr in way[..steps].iter().chain(&last) {
        qp.modify(attr).expect("the way there is open");
    }
}

/// Brings a queue pair of a reliable connection from RESET to RTS.
pub fn connect<Ah>(qp: &mut impl Qp<Ah>, peer: u32) {
    bring_to(qp, &Plan::default(), QpState::RTS, peer);
}
