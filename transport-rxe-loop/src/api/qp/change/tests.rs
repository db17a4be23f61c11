use super::*;
use crate::inside::prelude::*;

/// Modifies a queue pair that `meanwhile` happens to once the change is judged: what comes of it, and the words.
fn refused(
    qp: &QueuePair,
    attr: &QpAttr,
    meanwhile: impl FnOnce(&QueuePair),
) -> Result<(QpState, QpState), ModifyError> {
    let seen = identity::read(&qp.claimed.queue.slot.identity);
    meanwhile(qp);
    match qp.change_from(seen, attr)? {
        Some(change) => Ok(change),
        None => qp.change(attr),
    }
}

#[test]
fn q01_what_is_refused_since_sends_failed_meanwhile_leaves_the_queue_key() {
    let mut qp = Fixture::new().datagrams();
    let slot = qp.claimed.queue.slot;
    let fails = |qp: &QueuePair| assert!(identity::fail_sends(&slot.identity, qp.qpn()));
    let change = refused(&qp, &QpAttr::new().qkey(2), fails);
    let (from, to) = (QpState::SQE, QpState::SQE);
    assert_eq!(change, Err(ModifyError::Illegal { from, to }));
    assert_eq!(sync::load(&slot.qkey), 1, "in SQE it receives by the old one");
    qp.modify(&QpAttr::new().state(QpState::RTS).qkey(2)).unwrap();
    assert_eq!(sync::load(&slot.qkey), 2);
}

#[test]
fn q01_what_is_refused_since_the_queue_pair_failed_meanwhile_changes_no_attribute() {
    let fixture = Fixture::new();
    let mut qp = fixture.qp();
    let (slot, dest) = (fixture.slot(&qp), fixture.device.engine.dest(qp.index()));
    let words = || {
        let all = [&slot.access, &slot.timeout, &slot.retry_cnt, &slot.rnr_retry, dest];
        let rest = [&slot.min_rnr_timer, &slot.max_rd_atomic, &slot.max_dest_rd_atomic];
        all.into_iter().chain(rest).map(sync::load).collect::<Vec<_>>()
    };
    let fails = |qp: &QueuePair| assert!(identity::fail(&qp.claimed.queue.slot.identity, qp.qpn()));
    let number = qp.number();
    let steps = [
        QpAttr::init(&Port::new(1), Access::REMOTE_WRITE),
        QpAttr::new().access(Access::REMOTE_READ),
        QpAttr::rtr(&Port::new(1), &Endpoint::new(number)).access(Access::REMOTE_ATOMIC),
        QpAttr::rts().min_rnr_timer(RnrTimer::from_number(3).unwrap()),
        QpAttr::new().access(Access::REMOTE_WRITE).min_rnr_timer(RnrTimer::from_number(4).unwrap()),
        QpAttr::new().state(QpState::SQD),
        QpAttr::new()
            .timeout(AckTimeout::from_number(1).unwrap())
            .retry_cnt(1)
            .rnr_retry(1)
            .max_rd_atomic(1),
        QpAttr::new().state(QpState::RTS).access(Access::REMOTE_READ),
    ];
    for failing in 1..steps.len() {
        for step in &steps[..failing] {
            qp.modify(step).unwrap();
        }
        let before = words();
        let change = refused(&qp, &steps[failing], fails);
        assert!(change.is_err(), "step {failing}: {change:?}");
        assert_eq!(words(), before, "step {failing}");
        qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
    }
}

#[test]
fn q09_that_a_queue_pair_takes_no_more_is_told_once_after_each_reset() {
    let mut qp = Fixture::new().own_peer();
    let word = &qp.claimed.queue.slot.report_last;
    assert_eq!(sync::load(word), 1);
    for (step, expected) in [
        (QpAttr::new().state(QpState::ERR), 0),
        (QpAttr::new().state(QpState::RESET), 0),
        (QpAttr::init(&Port::new(1), Access::empty()), 1),
        (QpAttr::rtr(&Port::new(1), &Endpoint::new(qp.number())), 1),
        (QpAttr::rts(), 1),
    ] {
        if expected == 0 {
            // As once it was told.
            sync::store(word, 0);
        }
        qp.modify(&step).unwrap();
        assert_eq!(sync::load(word), expected, "{step:?}");
    }
    sync::store(word, 0);
    qp.modify(&QpAttr::new().min_rnr_timer(RnrTimer::from_number(1).unwrap())).unwrap();
    qp.modify(&QpAttr::new().state(QpState::SQD)).unwrap();
    assert_eq!(sync::load(word), 0, "it is not reset");
}

#[test]
fn q01_draining_is_told_for_the_change_that_asks_for_it_and_no_other() {
    for (options, unasked) in [(OpenOptions::new(), 0), (OpenOptions::new().imitate_rxe(), 1)] {
        let qp = Fixture::of(options).own_peer();
        let word = &qp.claimed.queue.slot.send.report_drained;
        assert_eq!(sync::load(word), 0);
        // As an earlier one left it that was not over when sending went on.
        sync::store(word, 1);
        qp.change(&QpAttr::new().min_rnr_timer(RnrTimer::from_number(1).unwrap())).unwrap();
        assert_eq!(sync::load(word), 1);
        qp.change(&QpAttr::new().state(QpState::SQD)).unwrap();
        assert_eq!(sync::load(word), unasked);
    }
}
