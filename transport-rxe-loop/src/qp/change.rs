//! Changing the state of a queue pair and its attributes (Q1), and whom that concerns.

use cq_core::setup::{QpAttrMask, QpType};

use crate::attr::QpAttr;
use crate::error::ModifyError;
use crate::identity;
use crate::imitate;
use crate::overrun;
use crate::qp::QueuePair;
use crate::state::QpState;
use crate::sync;

impl QueuePair {
    /// Changes state and attributes, from one state to the other; to RESET is only judged.
    pub(super) fn change(&self, attr: &QpAttr) -> Result<(QpState, QpState), ModifyError> {
        let slot = self.place.slot;
        loop {
            let now = identity::read(slot);
            let to = self.judge_change(attr, now.state)?;
            if to == QpState::Reset {
                return Ok((now.state, to));
            }
            if (now.state, to) == (QpState::Sqe, QpState::Rts) {
                self.place.flush_sends();
            }
            self.apply(attr);
            if to == QpState::Init {
                sync::store_u32(&slot.report_last, 1);
            }
            let drains = (now.state, to) == (QpState::Rts, QpState::Sqd);
            if drains {
                sync::store_u32(&slot.send.report_drained, 0);
            }
            if identity::change(slot, now, to) {
                // Not before: who still takes it for an earlier SQD would report this one too soon.
                if drains && imitate::tells_drained(self.place.fabric, attr.en_sqd_async_notify) {
                    sync::store_u32(&slot.send.report_drained, 1);
                }
                return Ok((now.state, to));
            }
        }
    }

    /// Has everybody find out whom a change of state concerns.
    pub(super) fn changed(
        &self,
        attr: &QpAttr,
        from: QpState,
        to: QpState,
    ) -> Result<(), ModifyError> {
        // From here on other processes may call for this one, or die in the middle of a request for it.
        let is_reached = self.qp_type == QpType::Ud || !self.place.fabric.is_mine(attr.dest_qp_num);
        if to == QpState::Rtr && is_reached {
            self.place.watch();
        }
        if to == QpState::Init {
            overrun::joined(self.place.fabric, self.place.slot);
        }
        let outwaited = if to == QpState::Err { self.place.outwait_peer() } else { Ok(()) };
        if imitate::resumes(self.place.fabric, from, to) {
            self.place.tell();
        }
        outwaited.map_err(|_| ModifyError::PeerSuspended)
    }

    fn apply(&self, attr: &QpAttr) {
        let slot = self.place.slot;
        for (flag, word, value) in [
            (QpAttrMask::ACCESS_FLAGS, &slot.access, attr.access.bits()),
            (QpAttrMask::QKEY, &slot.qkey, attr.qkey),
            (QpAttrMask::DEST_QPN, self.place.fabric.dest(self.number()), attr.dest_qp_num),
            (QpAttrMask::TIMEOUT, &slot.timeout, attr.timeout.into()),
            (QpAttrMask::RETRY_CNT, &slot.retry_cnt, attr.retry_cnt.into()),
            (QpAttrMask::RNR_RETRY, &slot.rnr_retry, attr.rnr_retry.into()),
            (QpAttrMask::MIN_RNR_TIMER, &slot.min_rnr_timer, attr.min_rnr_timer.into()),
            (QpAttrMask::MAX_QP_RD_ATOMIC, &slot.max_rd_atomic, attr.max_rd_atomic.into()),
            (
                QpAttrMask::MAX_DEST_RD_ATOMIC,
                &slot.max_dest_rd_atomic,
                attr.max_dest_rd_atomic.into(),
            ),
        ] {
            if attr.mask().contains(flag) {
                sync::store_u32(word, value);
            }
        }
    }
}
