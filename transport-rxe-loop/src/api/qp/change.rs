//! Modifying a queue pair: its state and attributes (Q1), and the consequences of a new state.

use cq_verbs::setup::{ModifyError, QpAttr, QpAttrMask, QpState, QpType};

use crate::api::qp::QueuePair;
use crate::conditions::PEER_SUSPENDED;
use crate::engine::identity::{self, Identity};
use crate::engine::overrun;
use crate::protocol::number::QpNumber;
use crate::sync::{self, AtomicU32};

/// The attributes that other queue pairs' requests are checked against.
const BY_OTHERS: QpAttrMask = QpAttrMask::ACCESS_FLAGS
    .union(QpAttrMask::QKEY)
    .union(QpAttrMask::MIN_RNR_TIMER)
    .union(QpAttrMask::MAX_DEST_RD_ATOMIC);

impl QueuePair {
    /// Changes state and attributes. Returns the old and the new state. A change to RESET is only validated.
    pub(super) fn change(&self, attr: &QpAttr) -> Result<(QpState, QpState), ModifyError> {
        loop {
            if let Some(change) =
                self.change_from(identity::read(&self.claimed.queue.slot.identity), attr)?
            {
                return Ok(change);
            }
        }
    }

    /// The same, from the identity `seen`; `None` if that has changed meanwhile. Whether the identity word could be
    /// changed decides about the attributes, too: if not, they are restored.
    fn change_from(
        &self,
        seen: Identity,
        attr: &QpAttr,
    ) -> Result<Option<(QpState, QpState)>, ModifyError> {
        let slot = self.claimed.queue.slot;
        let to = self.validate_change(attr, seen.state())?;
        let change = (seen.state(), to);
        if to == QpState::RESET {
            return Ok(Some(change));
        }
        if change == (QpState::SQE, QpState::RTS) {
            self.claimed.flush_sends();
        }
        // Attributes are stored before the state in which they are used. Those that other queue pairs use already are
        // stored once the change has succeeded.
        let receives = !matches!(seen.state(), QpState::RESET | QpState::INIT);
        let later = if receives { BY_OTHERS } else { QpAttrMask::empty() };
        let before = self.apply(&attr.without(later));
        if to == QpState::INIT {
            sync::store(&slot.report_last, 1);
        }
        let drains = change == (QpState::RTS, QpState::SQD);
        if drains {
            sync::store(&slot.send.report_drained, 0);
        }
        if !identity::change(&slot.identity, seen, to) {
            restore(before);
            return Ok(None);
        }
        if self.apply(&attr.without(later.complement())).iter().any(Option::is_some) {
            identity::changed(&slot.identity, seen.number());
        }
        // Not before the change: an owner that still handles an earlier SQD would report this one too soon.
        if drains
            && (attr.en_sqd_async_notify == Some(true) || self.behavior.always_reports_drained)
        {
            sync::store(&slot.send.report_drained, 1);
        }
        Ok(Some(change))
    }

    /// Handles the consequences of a new state: overruns, copies in flight, requests that wait for it.
    pub(super) fn changed(
        &self,
        attr: &QpAttr,
        from: QpState,
        to: QpState,
    ) -> Result<(), ModifyError> {
        // From now on other processes may leave remote requests for this one, or die in the middle of a request to it.
        let engine = self.claimed.queue.engine;
        let is_reached = self.qp_type == QpType::UD
            || attr
                .dest_qp_num
                .is_some_and(|peer| !engine.is_mine(engine.index(QpNumber::new(peer))));
        if to == QpState::RTR && is_reached {
            self.claimed.watch();
        }
        if to == QpState::INIT {
            overrun::joined(engine, self.claimed.queue.slot);
        }
        let waited = if to == QpState::ERR { self.claimed.wait_for_peer() } else { Ok(()) };
        if self.behavior.resumes_from_sqd || (from, to) != (QpState::SQD, QpState::RTS) {
            self.claimed.tell();
        }
        Ok(waited.map_err(|_| PEER_SUSPENDED)?)
    }

    /// Stores the attributes that are given. Returns the old values, for [`restore`].
    fn apply(&self, attr: &QpAttr) -> Stored {
        let slot = self.claimed.queue.slot;
        [
            (&slot.access, attr.access.map(|access| access.bits())),
            (&slot.qkey, attr.qkey),
            (self.claimed.queue.engine.dest(self.claimed.queue.index), attr.dest_qp_num),
            (&slot.timeout, attr.timeout.map(|timeout| timeout.number().into())),
            (&slot.retry_cnt, attr.retry_cnt.map(u32::from)),
            (&slot.rnr_retry, attr.rnr_retry.map(u32::from)),
            (&slot.min_rnr_timer, attr.min_rnr_timer.map(|timer| timer.number().into())),
            (&slot.max_rd_atomic, attr.max_rd_atomic.map(u32::from)),
            (&slot.max_dest_rd_atomic, attr.max_dest_rd_atomic.map(u32::from)),
            (&slot.sq_psn, attr.sq_psn),
            (&slot.rq_psn, attr.rq_psn),
        ]
        .map(|(word, value)| {
            let value = value?;
            let before = sync::load(word);
            sync::store(word, value);
            Some((word, before))
        })
    }
}

/// The attribute words that were stored, with their old values.
type Stored = [Option<(&'static AtomicU32, u32)>; 11];

fn restore(stored: Stored) {
    for (word, before) in stored.into_iter().flatten() {
        sync::store(word, before);
    }
}

#[cfg(test)]
mod tests;
