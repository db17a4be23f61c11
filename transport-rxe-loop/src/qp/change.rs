//! Changing the state of a queue pair and its attributes (Q1), and whom that concerns.

use cq_core::setup::{QpAttrMask, QpType};

use crate::attr::QpAttr;
use crate::error::ModifyError;
use crate::identity::{self, Identity};
use crate::imitate;
use crate::overrun;
use crate::qp::QueuePair;
use crate::state::QpState;
use crate::sync::{self, AtomicU32};

/// Attributes by which what others send is judged.
const BY_OTHERS: QpAttrMask = QpAttrMask::ACCESS_FLAGS
    .union(QpAttrMask::QKEY)
    .union(QpAttrMask::MIN_RNR_TIMER)
    .union(QpAttrMask::MAX_DEST_RD_ATOMIC);

impl QueuePair {
    /// Changes state and attributes, from one state to the other; to RESET is only judged.
    pub(super) fn change(&self, attr: &QpAttr) -> Result<(QpState, QpState), ModifyError> {
        loop {
            if let Some(change) = self.change_from(identity::read(self.place.slot), attr)? {
                return Ok(change);
            }
        }
    }

    /// The same, of a queue pair that was seen like this; `None` if it is not so any more. Only the change of the
    /// word decides, and with it the attributes: they are in force once it has succeeded, and else stay as they were.
    fn change_from(
        &self,
        seen: Identity,
        attr: &QpAttr,
    ) -> Result<Option<(QpState, QpState)>, ModifyError> {
        let slot = self.place.slot;
        let to = self.judge_change(attr, seen.state)?;
        let change = (seen.state, to);
        if to == QpState::Reset {
            return Ok(Some(change));
        }
        if change == (QpState::Sqe, QpState::Rts) {
            self.place.flush_sends();
        }
        // Before the state that makes anybody go by them; but what others go by already, once it is sure.
        let receives = !matches!(seen.state, QpState::Reset | QpState::Init);
        let later = if receives { BY_OTHERS } else { QpAttrMask::empty() };
        let before = self.apply(attr, later.complement());
        if to == QpState::Init {
            sync::store(&slot.report_last, 1);
        }
        let drains = change == (QpState::Rts, QpState::Sqd);
        if drains {
            sync::store(&slot.send.report_drained, 0);
        }
        if !identity::change(slot, seen, to) {
            restore(before);
            return Ok(None);
        }
        self.apply(attr, later);
        // Not before: who still takes it for an earlier SQD would report this one too soon.
        if drains && imitate::tells_drained(self.place.fabric, attr.en_sqd_async_notify) {
            sync::store(&slot.send.report_drained, 1);
        }
        Ok(Some(change))
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

    /// Stores those of some attributes that are given; says what there was before, to be [put back](restore).
    fn apply(&self, attr: &QpAttr, some: QpAttrMask) -> Stored {
        let slot = self.place.slot;
        [
            (QpAttrMask::ACCESS_FLAGS, &slot.access),
            (QpAttrMask::QKEY, &slot.qkey),
            (QpAttrMask::DEST_QPN, self.place.fabric.dest(self.number())),
            (QpAttrMask::TIMEOUT, &slot.timeout),
            (QpAttrMask::RETRY_CNT, &slot.retry_cnt),
            (QpAttrMask::RNR_RETRY, &slot.rnr_retry),
            (QpAttrMask::MIN_RNR_TIMER, &slot.min_rnr_timer),
            (QpAttrMask::MAX_QP_RD_ATOMIC, &slot.max_rd_atomic),
            (QpAttrMask::MAX_DEST_RD_ATOMIC, &slot.max_dest_rd_atomic),
        ]
        .map(|(flag, word)| {
            let value = attr.value(flag).filter(|_| some.contains(flag))?;
            let before = sync::load(word);
            sync::store(word, value);
            Some((word, before))
        })
    }
}

/// The words of attributes that were stored, and what they held before.
type Stored = [Option<(&'static AtomicU32, u32)>; 9];

fn restore(stored: Stored) {
    for (word, before) in stored.into_iter().flatten() {
        sync::store(word, before);
    }
}

#[cfg(test)]
mod tests {
    use cq_core::setup::Access;

    use super::*;
    use crate::error::ModifyError;
    use crate::open::OpenOptions;
    use crate::qp::QpInit;

    /// Modifies a queue pair that `meanwhile` happens to once the change is judged: what comes of it, and the words.
    fn refused(
        qp: &QueuePair,
        attr: &QpAttr,
        meanwhile: impl FnOnce(&QueuePair),
    ) -> Result<(QpState, QpState), ModifyError> {
        let seen = identity::read(qp.place.slot);
        meanwhile(qp);
        match qp.change_from(seen, attr)? {
            Some(change) => Ok(change),
            None => qp.change(attr),
        }
    }

    #[test]
    fn q01_what_is_refused_since_sends_failed_meanwhile_leaves_the_queue_key() {
        let (context, _fabric) = OpenOptions::new().alone();
        let (pd, cq) = (context.alloc_pd(), context.create_cq(4, None).unwrap());
        let mut qp = pd.create_qp(&QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) }).unwrap();
        qp.activate(1).unwrap();
        let fails = |qp: &QueuePair| identity::fail_sends(qp.place.slot, qp.number());
        let change = refused(&qp, &QpAttr::new().qkey(2), fails);
        let (from, to) = (QpState::Sqe, QpState::Sqe);
        assert_eq!(change, Err(ModifyError::Illegal { from, to }));
        assert_eq!(sync::load(&qp.place.slot.qkey), 1, "in SQE it receives by the old one");
        qp.modify(&QpAttr::to(QpState::Rts).qkey(2)).unwrap();
        assert_eq!(sync::load(&qp.place.slot.qkey), 2);
    }

    #[test]
    fn q01_what_is_refused_since_the_queue_pair_failed_meanwhile_changes_no_attribute() {
        let (context, fabric) = OpenOptions::new().alone();
        let (pd, cq) = (context.alloc_pd(), context.create_cq(4, None).unwrap());
        let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
        let words = |qp: &QueuePair| {
            let slot = qp.place.slot;
            let all = [&slot.access, &slot.timeout, &slot.retry_cnt, &slot.rnr_retry];
            let rest = [&slot.min_rnr_timer, &slot.max_rd_atomic, &slot.max_dest_rd_atomic];
            let all = all.into_iter().chain(rest).chain([fabric.dest(qp.number())]);
            all.map(sync::load).collect::<Vec<_>>()
        };
        let fails = |qp: &QueuePair| assert!(identity::fail(qp.place.slot, qp.number()));
        let number = qp.number();
        let steps = [
            QpAttr::init(Access::REMOTE_WRITE),
            QpAttr::new().access(Access::REMOTE_READ),
            QpAttr::rtr(number).access(Access::REMOTE_ATOMIC),
            QpAttr::rts().min_rnr_timer(3),
            QpAttr::new().access(Access::REMOTE_WRITE).min_rnr_timer(4),
            QpAttr::to(QpState::Sqd),
            QpAttr::new().timeout(1).retry_cnt(1).rnr_retry(1).max_rd_atomic(1),
            QpAttr::to(QpState::Rts).access(Access::REMOTE_READ),
        ];
        for failing in 1..steps.len() {
            for step in &steps[..failing] {
                qp.modify(step).unwrap();
            }
            let before = words(&qp);
            let change = refused(&qp, &steps[failing], fails);
            assert!(change.is_err(), "step {failing}: {change:?}");
            assert_eq!(words(&qp), before, "step {failing}");
            qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
        }
    }

    /// A queue pair that is its own peer, and what its word of these says.
    fn connected(options: OpenOptions) -> (QueuePair, impl Fn() -> [u32; 2]) {
        let (context, fabric) = options.alone();
        let (pd, cq) = (context.alloc_pd(), context.create_cq(4, None).unwrap());
        let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
        qp.connect(qp.number()).unwrap();
        let slot = fabric.qp(qp.number());
        (qp, move || [&slot.send.report_drained, &slot.report_last].map(sync::load))
    }

    #[test]
    fn q09_that_a_queue_pair_takes_no_more_is_told_once_after_each_reset() {
        let (mut qp, words) = connected(OpenOptions::new());
        assert_eq!(words()[1], 1);
        let number = qp.number();
        for (step, expected) in [
            (QpAttr::to(QpState::Err), 0),
            (QpAttr::to(QpState::Reset), 0),
            (QpAttr::init(Access::empty()), 1),
            (QpAttr::rtr(number), 1),
            (QpAttr::rts(), 1),
        ] {
            if expected == 0 {
                // As once it was told.
                sync::store(&qp.place.slot.report_last, 0);
            }
            qp.modify(&step).unwrap();
            assert_eq!(words()[1], expected, "{step:?}");
        }
        sync::store(&qp.place.slot.report_last, 0);
        qp.modify(&QpAttr::new().min_rnr_timer(1)).unwrap();
        qp.modify(&QpAttr::to(QpState::Sqd)).unwrap();
        assert_eq!(words()[1], 0, "it is not reset");
    }

    #[test]
    fn q01_draining_is_told_for_the_change_that_asks_for_it_and_no_other() {
        for (options, unasked) in [(OpenOptions::new(), 0), (OpenOptions::new().imitate_rxe(), 1)] {
            let (qp, words) = connected(options);
            assert_eq!(words()[0], 0);
            // As an earlier one left it that was not over when sending went on.
            sync::store(&qp.place.slot.send.report_drained, 1);
            qp.change(&QpAttr::new().min_rnr_timer(1)).unwrap();
            assert_eq!(words()[0], 1);
            qp.change(&QpAttr::to(QpState::Sqd)).unwrap();
            assert_eq!(words()[0], unasked);
        }
    }
}
