//! The attributes of a queue pair: `struct ibv_qp_attr` and its mask.

use cq_core::setup::{Access, QpAttrMask, QpState, QpType};
use thiserror::Error;

use crate::api::mr;

/// Why a queue pair could not be modified (Q1). Nothing was changed, except with
/// [`PeerSuspended`](Self::PeerSuspended).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModifyError {
    /// The transition does not exist.
    #[error("a queue pair can't go from {from} to {to}")]
    Illegal {
        /// The current state.
        from: QpState,
        /// The requested state.
        to: QpState,
    },
    /// The transition requires further attributes.
    #[error("going from {from} to {to} also needs {missing}")]
    Missing {
        /// The current state.
        from: QpState,
        /// The requested state.
        to: QpState,
        /// The missing attributes.
        missing: QpAttrMask,
    },
    /// The transition does not allow these attributes.
    #[error("going from {from} to {to} does not take {superfluous}")]
    Superfluous {
        /// The current state.
        from: QpState,
        /// The requested state.
        to: QpState,
        /// The attributes that are not allowed.
        superfluous: QpAttrMask,
    },
    /// An attribute's value is out of range.
    #[error("{attr} can't be {value}: {allowed}")]
    BadValue {
        /// The attribute.
        attr: QpAttrMask,
        /// The requested value.
        value: u32,
        /// The allowed values.
        allowed: &'static str,
    },
    /// The peer's process is suspended in the middle of a message. The queue pair is in ERR and its sends are flushed;
    /// its receives are flushed once that process resumes or ends.
    #[error("the peer's process is suspended in the middle of a message: resume or end it")]
    PeerSuspended,
    /// This process is a forked child of the one that owns the queue pair.
    #[error("the queue pair is the parent process': open the device in this one, and make another")]
    Forked,
    /// The queue pair is not in the state that the caller gave as the current one.
    #[error("the queue pair is in {is}, not in {claimed}")]
    NotIn {
        /// The current state.
        is: QpState,
        /// The state that the caller gave.
        claimed: QpState,
    },
}

/// The maximum of outstanding READs and atomics, in either direction.
pub const MAX_RD_ATOMIC: u8 = 16;

/// Attributes for [`QueuePair::modify`](crate::QueuePair::modify), with the mask of those that are given.
///
/// ```
/// use transport_rxe_loop::{Access, QpAttr, QpAttrMask, QpState};
///
/// let attr = QpAttr::to(QpState::INIT).port(1).pkey_index(0).access(Access::REMOTE_WRITE);
/// assert!(attr.mask().contains(QpAttrMask::PORT));
/// assert!(!attr.without(QpAttrMask::PORT).mask().contains(QpAttrMask::PORT));
/// ```
///
/// # How long a request waits
/// A request of a reliable connection waits for a receive for [`rnr_retry`](Self::rnr_retry) times the peer's
/// [`min_rnr_timer`](Self::min_rnr_timer), and for an answer for [`retry_cnt`](Self::retry_cnt) + 1 times the local
/// [`timeout`](Self::timeout), as `ibv_modify_qp(3)` says. Then it fails with RNR_RETRY_EXC or RETRY_EXC.
///
/// No packet is ever lost. A peer does not answer only while it is in RESET, INIT or ERR, connected to another queue
/// pair, or of another type; or while its process is [suspended](crate::manual#suspended-processes) and has to act. It
/// may answer again in time. Where the specification leaves a choice:
///
/// - A peer that was destroyed, whose process died, or that never existed, does not answer either. With `timeout` 0 the
///   request then fails at once.
/// - A request that waits for a receive has the full time for an answer once its peer stops answering, and the other
///   way round.
/// - A request that waits has begun, so it goes on in SQD. Time in which the process was suspended counts. Attributes
///   that are changed meanwhile do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpAttr {
    mask: QpAttrMask,
    pub(crate) state: QpState,
    pub(crate) cur_state: QpState,
    pub(crate) access: Access,
    pub(crate) dest_qp_num: u32,
    pub(crate) qkey: u32,
    pub(crate) timeout: u8,
    pub(crate) retry_cnt: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) min_rnr_timer: u8,
    pub(crate) max_rd_atomic: u8,
    pub(crate) max_dest_rd_atomic: u8,
    pub(crate) en_sqd_async_notify: bool,
    pkey_index: u16,
    port: u8,
    av_port: u8,
    path_mtu: u32,
    pub(crate) rq_psn: u32,
    pub(crate) sq_psn: u32,
}

/// An attribute's type.
trait Attribute {
    /// The value as a number.
    fn number(self) -> u32;
}

macro_rules! numbers {
    ($($type:ty: $it:ident => $number:expr;)+) => {
        $(impl Attribute for $type {
            fn number(self) -> u32 {
                let $it = self;
                $number
            }
        })+
    };
}

numbers! {
    bool: it => it.into();
    u8: it => it.into();
    u16: it => it.into();
    u32: it => it;
    QpState: it => it.0;
    Access: it => it.bits();
}

/// Declares a setter for each attribute, and the methods that go through all attributes.
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

        /// The value of one attribute as a number, if it is given: a state's number, the bits of access flags, 1 for
        /// true.
        ///
        /// ```
        /// use transport_rxe_loop::{QpAttr, QpAttrMask};
        ///
        /// let attr = QpAttr::new().timeout(14);
        /// assert_eq!(attr.value(QpAttrMask::TIMEOUT), Some(14));
        /// assert_eq!(attr.value(QpAttrMask::QKEY), None);
        /// ```
        #[must_use]
        pub fn value(&self, attr: QpAttrMask) -> Option<u32> {
            let all = [$((QpAttrMask::$flag, self.$field.number())),+];
            let found = all.into_iter().find(|&(flag, _)| flag == attr && self.has(flag));
            found.map(|(_, number)| number)
        }

        /// These attributes, and those of `before` that are not among them.
        pub(crate) fn over(&self, before: Self) -> Self {
            let mut all = before;
            $(if self.has(QpAttrMask::$flag) {
                all = all.$name(self.$field);
            })+
            all
        }
    };
}

impl QpAttr {
    /// No attributes. Without [`state`](Self::state), modifying keeps the state.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            mask: QpAttrMask::empty(),
            state: QpState::RESET,
            cur_state: QpState::RESET,
            access: Access::empty(),
            dest_qp_num: 0,
            qkey: 0,
            rnr_retry: 0,
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
            en_sqd_async_notify: false,
            pkey_index: 0,
            port: 0,
            av_port: 0,
            path_mtu: 0,
            rq_psn: 0,
            sq_psn: 0,
            timeout: 0,
            retry_cnt: 0,
            min_rnr_timer: 0,
        }
    }

    /// The transition to this state, without further attributes.
    #[must_use]
    pub const fn to(state: QpState) -> Self {
        Self::new().state(state)
    }

    /// RESET→INIT, with all attributes that a connection requires.
    #[must_use]
    pub const fn init(access: Access) -> Self {
        Self::to(QpState::INIT).pkey_index(0).port(1).access(access)
    }

    /// INIT→RTR, with all attributes that a reliable connection requires.
    #[must_use]
    pub const fn rtr(dest_qp_num: u32) -> Self {
        Self::to(QpState::RTR)
            .av(1)
            .path_mtu(4096)
            .dest_qp_num(dest_qp_num)
            .rq_psn(0)
            .max_dest_rd_atomic(MAX_RD_ATOMIC)
            .min_rnr_timer(12)
    }

    /// RTR→RTS, with all attributes that a reliable connection requires. Sends wait for receives without limit, and
    /// half a second for a peer that does not answer.
    #[must_use]
    pub const fn rts() -> Self {
        Self::to(QpState::RTS)
            .timeout(14)
            .retry_cnt(7)
            .rnr_retry(7)
            .sq_psn(0)
            .max_rd_atomic(MAX_RD_ATOMIC)
    }

    setters! {
        /// The new state.
        state(state: QpState) => STATE;
        /// The state that the caller expects the queue pair to be in. It is checked.
        cur_state(cur_state: QpState) => CUR_STATE;
        /// Whether to report SQ_DRAINED once all sends that had begun are done.
        en_sqd_async_notify(en_sqd_async_notify: bool) => EN_SQD_ASYNC_NOTIFY;
        /// The peer's rights: REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC.
        access(access: Access) => ACCESS_FLAGS;
        /// Index of the partition key: 0.
        pkey_index(pkey_index: u16) => PKEY_INDEX;
        /// Port of the device: 1.
        port(port: u8) => PORT;
        /// Queue key. Datagrams with another one are dropped.
        qkey(qkey: u32) => QKEY;
        /// The peer's port: 1.
        av(av_port: u8) => AV;
        /// Path MTU: 256, 512, 1024, 2048 or 4096 bytes. It is checked and has no effect: the device has no packets.
        path_mtu(path_mtu: u32) => PATH_MTU;
        /// The peer's queue pair number.
        dest_qp_num(dest_qp_num: u32) => DEST_QPN;
        /// First packet sequence number to receive, of 24 bits.
        rq_psn(rq_psn: u32) => RQ_PSN;
        /// First packet sequence number to send, of 24 bits.
        sq_psn(sq_psn: u32) => SQ_PSN;
        /// The maximum of outstanding READs and atomics of the peer. With 0 they fail at the peer (Q7). All other
        /// values are equivalent, since requests are carried out one by one.
        max_dest_rd_atomic(max_dest_rd_atomic: u8) => MAX_DEST_RD_ATOMIC;
        /// The maximum of outstanding READs and atomics of this queue pair. With 0 none can be posted (Q7). All other
        /// values are equivalent, since requests are carried out one by one.
        max_rd_atomic(max_rd_atomic: u8) => MAX_QP_RD_ATOMIC;
        /// The time that the peer waits before it retries where no receive is posted: 1 to 31 for 0.01 ms to
        /// 491.52 ms, 0 for 655.36 ms.
        min_rnr_timer(min_rnr_timer: u8) => MIN_RNR_TIMER;
        /// The time to wait for an answer before a retry: 4.096 us · 2^`timeout` for 1 to 31, 0 for no limit.
        timeout(timeout: u8) => TIMEOUT;
        /// The number of retries where the peer does not answer: 0 to 7.
        retry_cnt(retry_cnt: u8) => RETRY_CNT;
        /// The number of retries where no receive is posted: 0 to 6, or 7 for no limit.
        rnr_retry(rnr_retry: u8) => RNR_RETRY;
    }

    /// The attributes that are given.
    #[must_use]
    pub const fn mask(&self) -> QpAttrMask {
        self.mask
    }

    /// The same, without these attributes.
    #[must_use]
    pub const fn without(mut self, mask: QpAttrMask) -> Self {
        self.mask = self.mask.difference(mask);
        self
    }

    pub(crate) const fn has(&self, attr: QpAttrMask) -> bool {
        self.mask.contains(attr)
    }

    /// Validates a change of a queue pair of this type in state `from`. Returns the new state.
    pub(crate) fn check(&self, from: QpState, of: QpType) -> Result<QpState, ModifyError> {
        let to = if self.has(QpAttrMask::STATE) { self.state } else { from };
        let rule = from.rule(to, of).ok_or(ModifyError::Illegal { from, to })?;
        let given = self.mask.difference(QpAttrMask::STATE);
        let missing = rule.required.difference(given);
        if !missing.is_empty() {
            return Err(ModifyError::Missing { from, to, missing });
        }
        let superfluous = given.difference(rule.required).difference(rule.optional);
        if !superfluous.is_empty() {
            return Err(ModifyError::Superfluous { from, to, superfluous });
        }
        if self.has(QpAttrMask::CUR_STATE) && self.cur_state != from {
            return Err(ModifyError::NotIn { is: from, claimed: self.cur_state });
        }
        self.check_values()?;
        Ok(to)
    }

    fn check_values(&self) -> Result<(), ModifyError> {
        const BITS24: u32 = (1 << 24) - 1;
        const READS: u32 = MAX_RD_ATOMIC as u32;
        let (five_bits, reads) = ("0 to 31", "0 to the device's max_qp_rd_atom");
        let ranges = [
            (QpAttrMask::PKEY_INDEX, u32::from(self.pkey_index), 0, 0, "there is index 0 only"),
            (QpAttrMask::PORT, u32::from(self.port), 1, 1, "there is port 1 only"),
            (QpAttrMask::AV, u32::from(self.av_port), 1, 1, "there is port 1 only"),
            (QpAttrMask::DEST_QPN, self.dest_qp_num, 0, BITS24, "numbers have 24 bits"),
            (QpAttrMask::RQ_PSN, self.rq_psn, 0, BITS24, "packet numbers have 24 bits"),
            (QpAttrMask::SQ_PSN, self.sq_psn, 0, BITS24, "packet numbers have 24 bits"),
            (QpAttrMask::MIN_RNR_TIMER, u32::from(self.min_rnr_timer), 0, 31, five_bits),
            (QpAttrMask::TIMEOUT, u32::from(self.timeout), 0, 31, five_bits),
            (QpAttrMask::RETRY_CNT, u32::from(self.retry_cnt), 0, 7, "0 to 7"),
            (QpAttrMask::RNR_RETRY, u32::from(self.rnr_retry), 0, 7, "0 to 7"),
            (QpAttrMask::MAX_QP_RD_ATOMIC, u32::from(self.max_rd_atomic), 0, READS, reads),
            (QpAttrMask::MAX_DEST_RD_ATOMIC, u32::from(self.max_dest_rd_atomic), 0, READS, reads),
            (
                QpAttrMask::ACCESS_FLAGS,
                mr::unknown_bits(self.access),
                0,
                0,
                "these bits are unknown",
            ),
        ];
        for (attr, value, min, max, allowed) in ranges {
            if self.has(attr) && !(min..=max).contains(&value) {
                return Err(ModifyError::BadValue { attr, value, allowed });
            }
        }
        if self.has(QpAttrMask::PATH_MTU) && ![256, 512, 1024, 2048, 4096].contains(&self.path_mtu)
        {
            let allowed = "256, 512, 1024, 2048 or 4096";
            return Err(ModifyError::BadValue {
                attr: QpAttrMask::PATH_MTU,
                value: self.path_mtu,
                allowed,
            });
        }
        Ok(())
    }
}

impl Default for QpAttr {
    fn default() -> Self {
        Self::new()
    }
}
