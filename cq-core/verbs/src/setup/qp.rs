//! Types to create and modify queue pairs.

use core::fmt;

cq_core::foreign_number! {
    /// `enum ibv_qp_type`: the transport service of a queue pair. The default is RC. Any number is legal
    /// ([C3](cq_core::contract#c3)), but a queue pair is created only of a [known](Self::KNOWN) type.
    ///
    /// ```
    /// use cq_verbs::setup::QpType;
    ///
    /// assert_eq!(QpType::default(), QpType::RC);
    /// assert_eq!((QpType::UD.0, QpType::UD.name()), (4, Some("UD")));
    /// assert_eq!(QpType(9).to_string(), "an unknown type");
    /// ```
    QpType("ibv_qp_type"), "an unknown type" {
        /// Reliable connection: all operations.
        RC = 2, "RC";
        /// Unreliable connection: no READ, atomics or FLUSH. Lost messages are not retransmitted.
        UC = 3, "UC";
        /// Unreliable datagram: SEND of a single packet, to any queue pair.
        UD = 4, "UD";
    }
}

impl Default for QpType {
    fn default() -> Self {
        Self::RC
    }
}

/// `struct ibv_srq_attr`: the capacities of a shared receive queue.
///
/// ```
/// use cq_verbs::device::{Device, DevicePd};
/// use cq_verbs::setup::{CreateError, SrqInit};
///
/// fn create<D: Device>(pd: &D::Pd) -> Result<D::Srq, CreateError> {
///     pd.create_srq(&SrqInit::new(512).max_sge(2))
/// }
/// assert_eq!((SrqInit::new(512).max_wr, SrqInit::new(512).max_sge), (512, 1));
/// ```
#[doc(alias("ibv_srq_attr", "ibv_srq_init_attr"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct SrqInit {
    /// Maximum number of outstanding receives.
    pub max_wr: u32,
    /// Maximum number of SGEs in a receive.
    pub max_sge: u32,
}

impl SrqInit {
    /// A queue of `max_wr` receives, with one SGE each.
    #[must_use]
    pub const fn new(max_wr: u32) -> Self {
        Self { max_wr, max_sge: 1 }
    }

    setters! { max_sge: u32; }
}

/// `struct ibv_qp_cap`: the capacities of a queue pair. The default are the [usual ones](Self::USUAL).
///
/// ```
/// use cq_verbs::setup::QpCaps;
///
/// let caps = QpCaps::USUAL.max_send_wr(512);
/// assert_eq!((caps.max_recv_wr, caps.max_inline), (128, 64));
/// ```
#[doc(alias = "ibv_qp_cap")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct QpCaps {
    /// Maximum number of outstanding send requests. With 0, the send queue accepts none.
    pub max_send_wr: u32,
    /// Maximum number of outstanding receive requests. With 0, the receive queue accepts none.
    pub max_recv_wr: u32,
    /// Maximum number of SGEs in a send request.
    pub max_send_sge: u32,
    /// Maximum number of SGEs in a receive request.
    pub max_recv_sge: u32,
    /// Maximum number of inline bytes in a send request.
    pub max_inline: u32,
}

impl Default for QpCaps {
    fn default() -> Self {
        Self::USUAL
    }
}

impl QpCaps {
    /// Usual capacities: 128 requests in each queue, with one SGE or up to 64 inline bytes each.
    pub const USUAL: Self = Self {
        max_send_wr: 128,
        max_recv_wr: 128,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline: 64,
    };

    setters! { max_send_wr: u32; max_recv_wr: u32; max_send_sge: u32; max_recv_sge: u32; max_inline: u32; }
}

cq_core::foreign_flags! {
    /// `enum ibv_qp_attr_mask`.
    ///
    /// ```
    /// use cq_verbs::setup::{QpAttr, QpAttrMask, QpState};
    ///
    /// let attr = QpAttr::new().state(QpState::INIT).port(1);
    /// assert_eq!(attr.mask(), QpAttrMask::STATE | QpAttrMask::PORT);
    /// assert_eq!(attr.mask().to_string(), "STATE | PORT");
    /// assert_eq!(attr.without(QpAttrMask::STATE).mask(), QpAttrMask::PORT);
    /// ```
    pub struct QpAttrMask("ibv_qp_attr_mask"): u32 {
        /// New state.
        const STATE = 1;
        /// Current state, as the caller assumes it.
        const CUR_STATE = 1 << 1;
        /// Whether to report SQ_DRAINED when the send queue is drained.
        const EN_SQD_ASYNC_NOTIFY = 1 << 2;
        /// Operations that the peer may request.
        const ACCESS_FLAGS = 1 << 3;
        /// Index of the partition key.
        const PKEY_INDEX = 1 << 4;
        /// Port of the device.
        const PORT = 1 << 5;
        /// Queue key; datagrams only.
        const QKEY = 1 << 6;
        /// Address vector of the peer's port.
        const AV = 1 << 7;
        /// Path MTU.
        const PATH_MTU = 1 << 8;
        /// Time to wait for a response before a retry.
        const TIMEOUT = 1 << 9;
        /// Number of retries.
        const RETRY_CNT = 1 << 10;
        /// Number of retries if the peer has no receive posted.
        const RNR_RETRY = 1 << 11;
        /// First packet sequence number to receive.
        const RQ_PSN = 1 << 12;
        /// Maximum number of outstanding READs and atomics as requester.
        const MAX_QP_RD_ATOMIC = 1 << 13;
        /// Alternate path.
        const ALT_PATH = 1 << 14;
        /// Time that the peer waits before a retry if no receive was posted.
        const MIN_RNR_TIMER = 1 << 15;
        /// First packet sequence number to send.
        const SQ_PSN = 1 << 16;
        /// Maximum number of outstanding READs and atomics as responder.
        const MAX_DEST_RD_ATOMIC = 1 << 17;
        /// State of the path migration.
        const PATH_MIG_STATE = 1 << 18;
        /// Capacities.
        const CAP = 1 << 19;
        /// Number of the peer's queue pair.
        const DEST_QPN = 1 << 20;
        /// Rate limit for packet pacing, in kbps.
        const RATE_LIMIT = 1 << 25;
    }
}

impl QpAttrMask {
    /// The attributes of one change alone, which a queue pair does not keep.
    pub const ONCE: Self = Self::CUR_STATE.union(Self::EN_SQD_ASYNC_NOTIFY);
}

impl fmt::Display for QpAttrMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bitflags::parser::to_writer(self, f)
    }
}
