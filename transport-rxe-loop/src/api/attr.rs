//! What a queue pair is modified with: `struct ibv_qp_attr` and its mask.
//!
//! ```
//! use transport_rxe_loop::{Access, QpAttr, QpAttrMask, QpState};
//!
//! let attr = QpAttr::to(QpState::Init).port(1).pkey_index(0).access(Access::REMOTE_WRITE);
//! assert!(attr.mask().contains(QpAttrMask::PORT));
//! assert!(!attr.without(QpAttrMask::PORT).mask().contains(QpAttrMask::PORT));
//! ```

use cq_core::setup::{Access, QpAttrMask, QpType};
use thiserror::Error;

use crate::api::mr;
use crate::api::state::QpState;

/// Why a queue pair's state stays as it is (Q1). Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModifyError {
    /// There is no such transition.
    #[error("a queue pair can't go from {from} to {to}")]
    Illegal {
        /// The state it is in.
        from: QpState,
        /// The state that was asked for.
        to: QpState,
    },
    /// The transition needs further attributes.
    #[error("going from {from} to {to} also needs {missing}")]
    Missing {
        /// The state it is in.
        from: QpState,
        /// The state that was asked for.
        to: QpState,
        /// What is missing.
        missing: QpAttrMask,
    },
    /// The transition does not take these attributes.
    #[error("going from {from} to {to} does not take {superfluous}")]
    Superfluous {
        /// The state it is in.
        from: QpState,
        /// The state that was asked for.
        to: QpState,
        /// What is too much.
        superfluous: QpAttrMask,
    },
    /// An attribute's value is out of its range.
    #[error("{attr} can't be {value}: {allowed}")]
    BadValue {
        /// Which attribute.
        attr: QpAttrMask,
        /// What was asked for.
        value: u32,
        /// What can be asked for.
        allowed: &'static str,
    },
    /// The peer's process is suspended in the middle of a message. The queue pair is in ERR, and what it has
    /// posted is flushed; its receives once that process goes on or ends.
    #[error("the peer's process is suspended in the middle of a message: resume or end it")]
    PeerSuspended,
    /// This process was forked from the one whose queue pair it is.
    #[error("the queue pair is the parent process': open the device in this one, and make another")]
    Forked,
    /// The queue pair is not in the state that the caller takes it to be in.
    #[error("the queue pair is in {is}, not in {claimed}")]
    NotIn {
        /// The state it is in.
        is: QpState,
        /// What the caller gave as the current state.
        claimed: QpState,
    },
}

/// READs and atomics under way at most, either way.
pub const MAX_RD_ATOMIC: u8 = 16;

/// Attributes for [`QueuePair::modify`](crate::QueuePair::modify), as many as are given.
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

/// What an attribute is.
trait Attribute {
    /// As a number.
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
    QpState: it => it as u32;
    Access: it => it.bits();
}

/// Declares the methods that give one attribute each, and those that go through all.
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

        /// One attribute as a number, if it is given: a state's, the bits of rights, 1 for true.
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

        /// These, and what else was given before.
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
    /// No attribute at all: what is given then changes, and the state stays.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            mask: QpAttrMask::empty(),
            state: QpState::Reset,
            cur_state: QpState::Reset,
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

    /// To go to this state.
    #[must_use]
    pub const fn to(state: QpState) -> Self {
        Self::new().state(state)
    }

    /// RESET→INIT with everything that a connection needs.
    #[must_use]
    pub const fn init(access: Access) -> Self {
        Self::to(QpState::Init).pkey_index(0).port(1).access(access)
    }

    /// INIT→RTR with everything that a reliable connection needs.
    #[must_use]
    pub const fn rtr(dest_qp_num: u32) -> Self {
        Self::to(QpState::Rtr)
            .av(1)
            .path_mtu(4096)
            .dest_qp_num(dest_qp_num)
            .rq_psn(0)
            .max_dest_rd_atomic(MAX_RD_ATOMIC)
            .min_rnr_timer(12)
    }

    /// RTR→RTS with everything that a reliable connection needs: waits for receives as long as it takes, and half a second for
    /// a peer that does not answer.
    #[must_use]
    pub const fn rts() -> Self {
        Self::to(QpState::Rts)
            .timeout(14)
            .retry_cnt(7)
            .rnr_retry(7)
            .sq_psn(0)
            .max_rd_atomic(MAX_RD_ATOMIC)
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
        /// Index of the partition key: 0.
        pkey_index(pkey_index: u16) => PKEY_INDEX;
        /// Port of the device: 1.
        port(port: u8) => PORT;
        /// Queue key: what a datagram must carry to be taken.
        qkey(qkey: u32) => QKEY;
        /// Address of the peer: this fabric has port 1 only.
        av(av_port: u8) => AV;
        /// Largest packet: 256, 512, 1024, 2048 or 4096 bytes. There are no packets here; it is checked.
        path_mtu(path_mtu: u32) => PATH_MTU;
        /// Number of the peer.
        dest_qp_num(dest_qp_num: u32) => DEST_QPN;
        /// First packet number to receive, of 24 bits.
        rq_psn(rq_psn: u32) => RQ_PSN;
        /// First packet number to send, of 24 bits.
        sq_psn(sq_psn: u32) => SQ_PSN;
        /// How many READs and atomics of the peer may be under way: 0 refuses all of them, as the peer
        /// finds out (Q7); any other number is as good as the largest, since they are done one by one.
        max_dest_rd_atomic(max_dest_rd_atomic: u8) => MAX_DEST_RD_ATOMIC;
        /// How many READs and atomics of this side may be under way: with 0 none can be posted (Q7); any
        /// other number is as good as the largest, since they are done one by one.
        max_rd_atomic(max_rd_atomic: u8) => MAX_QP_RD_ATOMIC;
        /// How long the peer waits before it tries again when no receive was posted: 1 to 31 for 0.01 ms to
        /// 491.52 ms, 0 for 655.36 ms.
        min_rnr_timer(min_rnr_timer: u8) => MIN_RNR_TIMER;
        /// How long to wait for an answer before trying again: 1 to 31 for 4.096 us · 2^`timeout`, 0 for ever.
        timeout(timeout: u8) => TIMEOUT;
        /// How often to try again: 0 to 7.
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

    pub(crate) const fn has(&self, attr: QpAttrMask) -> bool {
        self.mask.contains(attr)
    }

    /// Judges a change of a queue pair of this type in state `from`: the state that it leads to.
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
