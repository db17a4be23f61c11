//! How the ends of the cases are created, and how their queue pairs are brought to a state.

use crate::device::{
    Access, Qp, QpAttr, QpCaps, QpState, QpType, SMALL_CAPS as CAPS, SrqInit, attr,
};

/// The Q_Key of every end.
pub const QKEY: u32 = 0x1234_5678;

/// How an end is created.
#[derive(Clone, Copy)]
pub struct Plan {
    /// The type of its queue pair.
    pub qp_type: QpType,
    /// The capacities of its queue pair.
    pub caps: QpCaps,
    /// The shared receive queue, if its queue pair uses one.
    pub srq: Option<SrqInit>,
    /// The capacity of each of its completion queues.
    pub cqe: u32,
    /// Whether its completion queues have a channel.
    pub channel: bool,
    /// Whether its completion queues drop completions when they are full, instead of failing.
    pub ignores_overrun: bool,
    /// Whether all send requests are signaled (`sq_sig_all`).
    pub sq_sig_all: bool,
    /// The access flags of its region.
    pub region: Access,
    /// The access flags of its queue pair.
    pub access: Access,
    /// The attributes of INIT→RTR; the number of the peer is filled in.
    pub rtr: QpAttr,
    /// The attributes of RTR→RTS.
    pub rts: QpAttr,
}

impl Default for Plan {
    fn default() -> Self {
        Self::of(QpType::RC)
    }
}

impl Plan {
    /// The default plan with a queue pair of this type.
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

    /// The default plan with a channel.
    pub fn with_channel() -> Self {
        Self { channel: true, ..Self::default() }
    }
}

/// Brings a queue pair from RESET to `state` by the fewest transitions.
pub fn bring_to<Ah>(qp: &mut impl Qp<Ah>, plan: &Plan, state: QpState, peer: u32) {
    let rtr = match plan.qp_type {
        QpType::UD => plan.rtr, // it has no peer
        _ => plan.rtr.dest_qp_num(peer),
    };
    let way = [attr::init_as(plan.qp_type, plan.access, QKEY), rtr, plan.rts];
    let (steps, last) = match state {
        QpState::RESET => (0, None),
        QpState::INIT => (1, None),
        QpState::RTR => (2, None),
        QpState::RTS => (3, None),
        QpState::ERR => (1, Some(QpAttr::new().state(state))),
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
