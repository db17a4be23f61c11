//! The states of a queue pair, and what it is modified with.

use cq_core::setup::{Access, QpType};
use serde::{Deserialize, Serialize};

/// `enum ibv_qp_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum State {
    Reset = 0,
    Init = 1,
    Rtr = 2,
    Rts = 3,
    Sqd = 4,
    Sqe = 5,
    Err = 6,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 7] =
        [Self::Reset, Self::Init, Self::Rtr, Self::Rts, Self::Sqd, Self::Sqe, Self::Err];
}

/// What a queue pair is modified with: `struct ibv_qp_attr`; what is `None` is not in the mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attr {
    /// The state to go to.
    pub state: Option<State>,
    /// The state that the caller takes it to be in.
    pub cur_state: Option<State>,
    /// Whether to report when the send queue is drained.
    pub sqd_async_notify: Option<bool>,
    /// What the peer may do.
    #[serde(with = "crate::far::access")]
    pub access: Option<Access>,
    /// Index of the partition key.
    pub pkey_index: Option<u16>,
    /// Port of the device; there is port 1.
    pub port: Option<u8>,
    /// The peer's address: a port of this same device.
    pub av: Option<u8>,
    /// Largest packet, in bytes.
    pub path_mtu: Option<u32>,
    /// Number of the peer.
    pub dest_qp_num: Option<u32>,
    /// First packet number to receive.
    pub rq_psn: Option<u32>,
    /// First packet number to send.
    pub sq_psn: Option<u32>,
    /// Queue key; datagrams only.
    pub qkey: Option<u32>,
    /// READs and atomics of the peer that may be under way.
    pub max_dest_rd_atomic: Option<u8>,
    /// READs and atomics of this side that may be under way.
    pub max_rd_atomic: Option<u8>,
    /// How long the peer waits where no receive was posted, by the table of `ibv_modify_qp(3)`.
    pub min_rnr_timer: Option<u8>,
    /// How long to wait for an answer: 4.096 µs · 2^this; 0 is for ever.
    pub timeout: Option<u8>,
    /// How often to try again.
    pub retry_cnt: Option<u8>,
    /// How often to try again where no receive was posted; 7 is for ever.
    pub rnr_retry: Option<u8>,
}

impl Attr {
    /// To go to this state, with nothing else.
    #[must_use]
    pub fn to(state: State) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// RESET→INIT with what it needs.
    #[must_use]
    pub fn init(access: Access) -> Self {
        Self { pkey_index: Some(0), port: Some(1), access: Some(access), ..Self::to(State::Init) }
    }

    /// INIT→RTR with what it needs; a peer that finds no receive waits 0.64 ms.
    #[must_use]
    pub fn rtr(dest_qp_num: u32) -> Self {
        Self {
            av: Some(1),
            path_mtu: Some(1024),
            dest_qp_num: Some(dest_qp_num),
            rq_psn: Some(0),
            max_dest_rd_atomic: Some(4),
            min_rnr_timer: Some(12),
            ..Self::to(State::Rtr)
        }
    }

    /// RTR→RTS with what it needs: waits for receives for ever, for an answer four times 0.27 s.
    #[must_use]
    pub fn rts() -> Self {
        Self {
            timeout: Some(16),
            retry_cnt: Some(3),
            rnr_retry: Some(7),
            sq_psn: Some(0),
            max_rd_atomic: Some(4),
            ..Self::to(State::Rts)
        }
    }

    /// RESET→INIT of an unreliable connection or a reliable one, or of datagrams with this queue key.
    #[must_use]
    pub fn init_as(qp_type: QpType, access: Access, qkey: u32) -> Self {
        match qp_type {
            QpType::Ud => Self { access: None, qkey: Some(qkey), ..Self::init(access) },
            _ => Self::init(access),
        }
    }

    /// INIT→RTR with what a queue pair of this type needs.
    #[must_use]
    pub fn rtr_as(qp_type: QpType, dest_qp_num: u32) -> Self {
        let reliable = Self::rtr(dest_qp_num);
        match qp_type {
            QpType::Rc => reliable,
            QpType::Uc => Self { max_dest_rd_atomic: None, min_rnr_timer: None, ..reliable },
            QpType::Ud => Self::to(State::Rtr),
        }
    }

    /// RTR→RTS with what a queue pair of this type needs.
    #[must_use]
    pub fn rts_as(qp_type: QpType) -> Self {
        match qp_type {
            QpType::Rc => Self::rts(),
            _ => Self { sq_psn: Some(0), ..Self::to(State::Rts) },
        }
    }
}
