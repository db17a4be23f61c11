//! What a queue pair is modified with: `struct ibv_qp_attr` and its mask.

use cq_core::setup::{Access, QpAttrMask, QpState};
use rdma_sys::ibv_qp_attr;

use crate::ah::AddressVector;
use crate::endpoint::Endpoint;
use crate::port::Port;
use crate::sys::qp;

/// Attributes for [`QueuePair::modify`](crate::QueuePair::modify), as many as are given.
///
/// ```
/// use transport_verbs::{Access, QpAttr, QpAttrMask, QpState};
///
/// let attr = QpAttr::to(QpState::INIT).port(1).pkey_index(0).access(Access::REMOTE_WRITE);
/// assert!(attr.mask().contains(QpAttrMask::PORT));
/// assert!(!attr.without(QpAttrMask::PORT).mask().contains(QpAttrMask::PORT));
/// ```
///
/// Nothing is judged here: which attributes a change of state takes, and with which values, is up to the
/// device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpAttr {
    mask: QpAttrMask,
    state: QpState,
    cur_state: QpState,
    access: Access,
    dest_qp_num: u32,
    qkey: u32,
    path_mtu: u32,
    rq_psn: u32,
    sq_psn: u32,
    pkey_index: u16,
    port: u8,
    timeout: u8,
    retry_cnt: u8,
    rnr_retry: u8,
    min_rnr_timer: u8,
    max_rd_atomic: u8,
    max_dest_rd_atomic: u8,
    en_sqd_async_notify: bool,
    av: AddressVector,
}

/// Declares the methods that give one attribute each.
macro_rules! setters {
    ($($(#[$meta:meta])* $name:ident($field:ident: $type:ty) => $flag:ident;)+) => {
        $(
            $(#[$meta])*
            #[must_use]
            pub const fn $name(mut self, $field: $type) -> Self {
                self.$field = $field;
                self.mask = self.mask.union(QpAttrMask::$flag);
                self
            }
        )+
    };
}

impl QpAttr {
    /// No attribute at all: what is given then changes, and the state stays.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            mask: QpAttrMask::empty(),
            state: QpState::RESET,
            cur_state: QpState::RESET,
            access: Access::empty(),
            dest_qp_num: 0,
            qkey: 0,
            path_mtu: 0,
            rq_psn: 0,
            sq_psn: 0,
            pkey_index: 0,
            port: 0,
            timeout: 0,
            retry_cnt: 0,
            rnr_retry: 0,
            min_rnr_timer: 0,
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
            en_sqd_async_notify: false,
            av: AddressVector::NOWHERE,
        }
    }

    /// To go to this state.
    #[must_use]
    pub const fn to(state: QpState) -> Self {
        Self::new().state(state)
    }

    /// RESET→INIT with everything that a connection needs.
    #[must_use]
    pub fn init(port: &Port, access: Access) -> Self {
        Self::to(QpState::INIT).pkey_index(0).port(port.number()).access(access)
    }

    /// INIT→RTR with everything that a reliable connection needs. The largest packet is one that both
    /// ports take, and the peer may have one READ or atomic under way.
    #[must_use]
    pub fn rtr(port: &Port, peer: &Endpoint) -> Self {
        Self::to(QpState::RTR)
            .av(AddressVector::of(port, peer.gid, peer.lid))
            .path_mtu(port.mtu().min(peer.mtu))
            .dest_qp_num(peer.qp_num)
            .rq_psn(peer.psn)
            .max_dest_rd_atomic(1)
            .min_rnr_timer(12)
    }

    /// RTR→RTS with everything that a reliable connection needs: waits for receives as long as it takes,
    /// and some seconds at most for a peer that does not answer; its packets are numbered from 0, and one READ
    /// or atomic may be under way.
    #[must_use]
    pub const fn rts() -> Self {
        Self::to(QpState::RTS).timeout(14).retry_cnt(7).rnr_retry(7).sq_psn(0).max_rd_atomic(1)
    }

    setters! {
        /// The state to go to.
        state(state: QpState) => STATE;
        /// The state that the caller takes the queue pair to be in; it is checked.
        cur_state(cur_state: QpState) => CUR_STATE;
        /// Whether to report SQ_DRAINED once everything that the send queue has begun is done.
        en_sqd_async_notify(en_sqd_async_notify: bool) => EN_SQD_ASYNC_NOTIFY;
        /// What the peer may do: REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC.
        access(access: Access) => ACCESS_FLAGS;
        /// Index of the partition key.
        pkey_index(pkey_index: u16) => PKEY_INDEX;
        /// Port of the device, counted from 1.
        port(port: u8) => PORT;
        /// Queue key: what a datagram must carry to be taken.
        qkey(qkey: u32) => QKEY;
        /// Address of the peer's port.
        av(av: AddressVector) => AV;
        /// Largest packet: 256, 512, 1024, 2048 or 4096 bytes.
        path_mtu(path_mtu: u32) => PATH_MTU;
        /// Number of the peer.
        dest_qp_num(dest_qp_num: u32) => DEST_QPN;
        /// First packet number to receive, of 24 bits.
        rq_psn(rq_psn: u32) => RQ_PSN;
        /// First packet number to send, of 24 bits.
        sq_psn(sq_psn: u32) => SQ_PSN;
        /// How many READs and atomics of the peer may be under way: with 0 all of them are refused, as the
        /// peer finds out (Q7).
        max_dest_rd_atomic(max_dest_rd_atomic: u8) => MAX_DEST_RD_ATOMIC;
        /// How many READs and atomics of this side may be under way: with 0 none can be posted (Q7). Not
        /// more than the peer's `max_dest_rd_atomic`.
        max_rd_atomic(max_rd_atomic: u8) => MAX_QP_RD_ATOMIC;
        /// How long the peer waits before it tries again when no receive was posted: 1 to 31 for 0.01 ms to
        /// 491.52 ms, 0 for 655.36 ms.
        min_rnr_timer(min_rnr_timer: u8) => MIN_RNR_TIMER;
        /// How long to wait for an answer before trying again: 1 to 31 for 4.096 us · 2^`timeout`, 0 for ever.
        timeout(timeout: u8) => TIMEOUT;
        /// How often to try again: 0 to 7. (Soft-RoCE takes 7 for ever.)
        retry_cnt(retry_cnt: u8) => RETRY_CNT;
        /// How often to try again where no receive was posted: 0 to 6, or 7 for ever.
        rnr_retry(rnr_retry: u8) => RNR_RETRY;
    }

    /// Which attributes are given.
    #[must_use]
    pub const fn mask(&self) -> QpAttrMask {
        self.mask
    }

    /// The same without these attributes.
    #[must_use]
    pub const fn without(mut self, mask: QpAttrMask) -> Self {
        self.mask = self.mask.difference(mask);
        self
    }

    /// As libibverbs takes it.
    pub(crate) fn raw(&self) -> ibv_qp_attr {
        ibv_qp_attr {
            qp_state: self.state.0,
            cur_qp_state: self.cur_state.0,
            path_mtu: mtu_number(self.path_mtu),
            qkey: self.qkey,
            rq_psn: self.rq_psn,
            sq_psn: self.sq_psn,
            dest_qp_num: self.dest_qp_num,
            qp_access_flags: self.access.bits(),
            ah_attr: self.av.raw(),
            pkey_index: self.pkey_index,
            en_sqd_async_notify: self.en_sqd_async_notify.into(),
            max_rd_atomic: self.max_rd_atomic,
            max_dest_rd_atomic: self.max_dest_rd_atomic,
            min_rnr_timer: self.min_rnr_timer,
            port_num: self.port,
            timeout: self.timeout,
            retry_cnt: self.retry_cnt,
            rnr_retry: self.rnr_retry,
            ..qp::no_attributes()
        }
    }
}

/// `enum ibv_mtu`; for what is no packet size a number that is larger than all of them, so that no device
/// takes it. (Soft-RoCE takes 0.)
const fn mtu_number(bytes: u32) -> u32 {
    match bytes {
        256 | 512 | 1024 | 2048 | 4096 => bytes.trailing_zeros() - 7,
        _ => 0xff,
    }
}

impl Default for QpAttr {
    fn default() -> Self {
        Self::new()
    }
}
