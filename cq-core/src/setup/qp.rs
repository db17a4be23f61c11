//! What queue pairs are made and modified with.

use core::fmt;

/// `enum ibv_qp_type`: what a queue pair can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum QpType {
    /// Reliable connection: everything.
    Rc = 2,
    /// Unreliable connection: SEND and WRITE; what is lost is lost.
    Uc = 3,
    /// Unreliable datagrams: SEND of one packet, to anyone.
    Ud = 4,
}

/// `struct ibv_srq_init_attr`: how much a shared receive queue takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrqInit {
    /// Receives that may be outstanding.
    pub max_wr: u32,
    /// Pieces of a receive.
    pub max_sge: u32,
}

/// `struct ibv_qp_cap`: how much a queue pair takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpCaps {
    /// Requests of the send queue that may be outstanding. 0 is a queue that takes none.
    pub max_send_wr: u32,
    /// Requests of the receive queue that may be outstanding. 0 is a queue that takes none.
    pub max_recv_wr: u32,
    /// Pieces of a send request.
    pub max_send_sge: u32,
    /// Pieces of a receive request.
    pub max_recv_sge: u32,
    /// Inline bytes of a send request.
    pub max_inline: u32,
}

impl QpCaps {
    /// Usual capacities: 128 requests each way, of one piece, or of 64 inline bytes.
    pub const USUAL: Self = Self {
        max_send_wr: 128,
        max_recv_wr: 128,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline: 64,
    };
}

bitflags::bitflags! {
    /// `enum ibv_qp_attr_mask`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct QpAttrMask: u32 {
        /// The state to go to.
        const STATE = 1;
        /// The state that the caller takes the queue pair to be in.
        const CUR_STATE = 1 << 1;
        /// Report when the send queue is drained.
        const EN_SQD_ASYNC_NOTIFY = 1 << 2;
        /// What the peer may do.
        const ACCESS_FLAGS = 1 << 3;
        /// Index of the partition key.
        const PKEY_INDEX = 1 << 4;
        /// Port of the device.
        const PORT = 1 << 5;
        /// Queue key; datagrams only.
        const QKEY = 1 << 6;
        /// Address of the peer's port.
        const AV = 1 << 7;
        /// Largest packet.
        const PATH_MTU = 1 << 8;
        /// How long to wait for an answer.
        const TIMEOUT = 1 << 9;
        /// How often to try again.
        const RETRY_CNT = 1 << 10;
        /// How often to try again where no receive was posted.
        const RNR_RETRY = 1 << 11;
        /// First packet number to receive.
        const RQ_PSN = 1 << 12;
        /// How many READs and atomics of this side may be under way.
        const MAX_QP_RD_ATOMIC = 1 << 13;
        /// The other path.
        const ALT_PATH = 1 << 14;
        /// How long the peer waits when no receive was posted.
        const MIN_RNR_TIMER = 1 << 15;
        /// First packet number to send.
        const SQ_PSN = 1 << 16;
        /// How many READs and atomics of the peer may be under way.
        const MAX_DEST_RD_ATOMIC = 1 << 17;
        /// State of the path migration.
        const PATH_MIG_STATE = 1 << 18;
        /// Capacities.
        const CAP = 1 << 19;
        /// Number of the peer.
        const DEST_QPN = 1 << 20;
        /// Packets a second.
        const RATE_LIMIT = 1 << 25;
    }
}

impl fmt::Display for QpAttrMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bitflags::parser::to_writer(self, f)
    }
}
