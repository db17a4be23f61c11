//! The attributes of a queue pair.

use core::time::Duration;

use super::state::ONLY_RELIABLE;
use crate::sentences::numbered_sentences;
use crate::setup::{
    Access, AckTimeout, AddressVector, DeviceError, Endpoint, Errno, Mtu, Port, QpAttrMask,
    QpState, QpType, RnrTimer,
};

/// Declares the attributes: a field, the methods that set each, and those that go through all of them.
macro_rules! attributes {
    ($(#[$meta:meta])* $attrs:ident { $($(#[$doc:meta])* $name:ident: $type:ty => $flag:ident;)+ }) => {
        $(#[$meta])*
        #[doc(alias = "ibv_qp_attr")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[must_use]
        #[non_exhaustive]
        pub struct $attrs {
            $($(#[$doc])* pub $name: Option<$type>,)+
        }

        impl $attrs {
            /// No attributes. Without [`state`](Self::state), modifying keeps the state.
            pub const fn new() -> Self {
                Self { $($name: None),+ }
            }

            $($(#[$doc])*
            pub const fn $name(mut self, $name: $type) -> Self {
                self.$name = Some($name);
                self
            })+

            /// The attributes that are given.
            #[must_use]
            pub const fn mask(&self) -> QpAttrMask {
                let mut mask = QpAttrMask::empty();
                $(if self.$name.is_some() {
                    mask = mask.union(QpAttrMask::$flag);
                })+
                mask
            }

            /// The same, without these attributes.
            pub const fn without(mut self, mask: QpAttrMask) -> Self {
                $(if mask.contains(QpAttrMask::$flag) {
                    self.$name = None;
                })+
                self
            }

            /// These attributes, and those of `before` that are not among them.
            pub fn or(self, before: Self) -> Self {
                Self { $($name: self.$name.or(before.$name)),+ }
            }
        }
    };
}

attributes! {
    /// `struct ibv_qp_attr` and its mask: the attributes to modify a queue pair with. Those that are `None` are not in the
    /// mask.
    ///
    /// ```
    /// use cq_verbs::setup::{Access, QpAttr, QpAttrMask, QpState, QpType};
    ///
    /// let attr = QpAttr::new().state(QpState::INIT).port(1).pkey_index(0).access(Access::REMOTE_WRITE);
    /// assert!(attr.mask().contains(QpAttrMask::PORT));
    /// assert_eq!(attr.check(QpState::RESET, QpType::RC), Ok(QpState::INIT));
    ///
    /// let without = attr.without(QpAttrMask::PORT);
    /// let error = without.check(QpState::RESET, QpType::RC).unwrap_err();
    /// assert_eq!(error.to_string(), "going from RESET to INIT also needs PORT");
    /// ```
    QpAttr {
        /// The new state.
        state: QpState => STATE;
        /// The state that the caller expects the queue pair to be in.
        cur_state: QpState => CUR_STATE;
        /// Whether to report SQ_DRAINED once all sends that had begun are done.
        en_sqd_async_notify: bool => EN_SQD_ASYNC_NOTIFY;
        /// The peer's rights: REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC.
        access: Access => ACCESS_FLAGS;
        /// Index of the partition key.
        pkey_index: u16 => PKEY_INDEX;
        /// Port of the device, from 1.
        port: u8 => PORT;
        /// Queue key. Datagrams with another one are dropped.
        qkey: u32 => QKEY;
        /// The path to the peer's port.
        av: AddressVector => AV;
        /// Path MTU.
        path_mtu: Mtu => PATH_MTU;
        /// The peer's queue pair number.
        dest_qp_num: u32 => DEST_QPN;
        /// First packet sequence number to receive, of 24 bits.
        rq_psn: u32 => RQ_PSN;
        /// First packet sequence number to send, of 24 bits.
        sq_psn: u32 => SQ_PSN;
        /// The maximum of outstanding READs and atomics of the peer. With 0 they fail at the peer
        /// ([Q7](cq_core::contract#q7)).
        max_dest_rd_atomic: u8 => MAX_DEST_RD_ATOMIC;
        /// The maximum of outstanding READs and atomics of this queue pair, at most the peer's `max_dest_rd_atomic`. With 0
        /// none can be posted ([Q7](cq_core::contract#q7)).
        max_rd_atomic: u8 => MAX_QP_RD_ATOMIC;
        /// The time that the peer waits before it retries where no receive is posted.
        min_rnr_timer: RnrTimer => MIN_RNR_TIMER;
        /// The time to wait for an answer before a retry.
        timeout: AckTimeout => TIMEOUT;
        /// The number of retries where the peer does not answer: 0 to 7. (Soft-RoCE takes 7 for no limit.)
        retry_cnt: u8 => RETRY_CNT;
        /// The number of retries where no receive is posted: 0 to 6, or 7 for no limit.
        rnr_retry: u8 => RNR_RETRY;
    }
}

impl QpAttr {
    /// RESET→INIT, with all attributes that a connection requires.
    pub const fn init(port: &Port, access: Access) -> Self {
        Self::new().state(QpState::INIT).pkey_index(0).port(port.number).access(access)
    }

    /// INIT→RTR, with all attributes that a reliable connection requires. The path MTU is one that both ports allow,
    /// the peer may have one READ or atomic outstanding, and waits 0.64 ms for a receive.
    pub fn rtr(port: &Port, peer: &Endpoint) -> Self {
        const RNR: RnrTimer = RnrTimer::at_least(Duration::from_micros(640));
        Self::new()
            .state(QpState::RTR)
            .av(AddressVector::new(port, peer.gid, peer.lid))
            .path_mtu(port.mtu.min(peer.mtu))
            .dest_qp_num(peer.qp_num)
            .rq_psn(peer.psn)
            .max_dest_rd_atomic(1)
            .min_rnr_timer(RNR)
    }

    /// RTR→RTS, with all attributes that a reliable connection requires: sends wait for receives without limit, and for
    /// a peer that does not answer for some seconds at most; the first packet is number 0; one READ or atomic may be
    /// outstanding.
    pub const fn rts() -> Self {
        const ACK: AckTimeout = AckTimeout::at_least(Duration::from_millis(67));
        Self::new()
            .state(QpState::RTS)
            .timeout(ACK)
            .retry_cnt(7)
            .rnr_retry(7)
            .sq_psn(0)
            .max_rd_atomic(1)
    }

    /// The attributes among these that only a reliable connection has are dropped, if this type is another.
    pub const fn for_type(self, qp_type: QpType) -> Self {
        match qp_type {
            QpType::RC => self,
            _ => self.without(ONLY_RELIABLE),
        }
    }

    /// Validates a transition of a queue pair of this type that is in state `from`, as the specification has it
    /// ([Q1](cq_core::contract#q1)). Returns the new state. A device may allow less.
    ///
    /// # Errors
    /// There is no such transition, attributes are missing, not allowed, or out of range.
    pub fn check(&self, from: QpState, of: QpType) -> Result<QpState, ModifyError> {
        let to = self.state.unwrap_or(from);
        let rule = from.rule(to, of).ok_or(ModifyError::Illegal { from, to })?;
        let given = self.mask().difference(QpAttrMask::STATE);
        let missing = rule.required.difference(given);
        if !missing.is_empty() {
            return Err(ModifyError::Missing { from, to, missing });
        }
        let superfluous = given.difference(rule.required).difference(rule.optional);
        if !superfluous.is_empty() {
            return Err(ModifyError::Superfluous { from, to, superfluous });
        }
        if let Some(claimed) = self.cur_state.filter(|claimed| *claimed != from) {
            return Err(ModifyError::NotIn { is: from, claimed });
        }
        self.check_values()?;
        Ok(to)
    }

    fn check_values(&self) -> Result<(), ModifyError> {
        const BITS24: u32 = (1 << 24) - 1;
        let bits24 = "it has 24 bits";
        let byte = |value: Option<u8>| value.map(u32::from);
        let ranges = [
            (QpAttrMask::DEST_QPN, self.dest_qp_num, BITS24, bits24),
            (QpAttrMask::RQ_PSN, self.rq_psn, BITS24, bits24),
            (QpAttrMask::SQ_PSN, self.sq_psn, BITS24, bits24),
            (QpAttrMask::RETRY_CNT, byte(self.retry_cnt), 7, "0 to 7"),
            (QpAttrMask::RNR_RETRY, byte(self.rnr_retry), 7, "0 to 7"),
        ];
        for (attr, value, max, allowed) in ranges {
            if let Some(value) = value.filter(|value| *value > max) {
                return Err(ModifyError::BadValue { attr, value, allowed });
            }
        }
        Ok(())
    }
}

/// Why a queue pair could not be modified ([Q1](cq_core::contract#q1)). Nothing was changed, unless
/// the error of a transport ([`Device`](Self::Device)) is documented to say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ModifyError {
    /// The transition does not exist.
    Illegal {
        /// The current state.
        from: QpState,
        /// The requested state.
        to: QpState,
    },
    /// The transition requires further attributes.
    Missing {
        /// The current state.
        from: QpState,
        /// The requested state.
        to: QpState,
        /// The missing attributes.
        missing: QpAttrMask,
    },
    /// The transition does not allow these attributes.
    Superfluous {
        /// The current state.
        from: QpState,
        /// The requested state.
        to: QpState,
        /// The attributes that are not allowed.
        superfluous: QpAttrMask,
    },
    /// An attribute's value is out of range.
    BadValue {
        /// The attribute.
        attr: QpAttrMask,
        /// The requested value.
        value: u32,
        /// The allowed values.
        allowed: &'static str,
    },
    /// The queue pair is not in the state that the caller gave as the current one.
    NotIn {
        /// The current state.
        is: QpState,
        /// The state that the caller gave.
        claimed: QpState,
    },
    /// The transport can't, for a reason of its own.
    Device(DeviceError),
    /// The device refused this transition.
    Refused {
        /// The current state.
        from: QpState,
        /// The requested state.
        to: QpState,
        /// The attributes that were given.
        mask: QpAttrMask,
        /// The error number.
        errno: Errno,
    },
}

numbered_sentences!(
    /// The number that `ibv_modify_qp(3)` returns.
    ModifyError {
        Self::Illegal { from, to } => Errno::EINVAL, ("a queue pair can't go from {from} to {to}");
        Self::Missing { from, to, missing } => Errno::EINVAL, ("going from {from} to {to} also needs {missing}");
        Self::Superfluous { from, to, superfluous } => Errno::EINVAL, ("going from {from} to {to} does not take {superfluous}");
        Self::BadValue { attr, value, allowed } => Errno::EINVAL, ("{attr} can't be {value}: {allowed}");
        Self::NotIn { is, claimed } => Errno::EINVAL, ("the queue pair is in {is}, not in {claimed}");
        Self::Device(error) => error.errno(), ("{error}");
        Self::Refused { from, to, mask, errno } => errno,
            ("the device refused to take the queue pair from {from} to {to} with {mask}: {errno}; see ibv_modify_qp(3)");
    }
);
