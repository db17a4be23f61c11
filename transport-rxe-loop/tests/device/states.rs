//! The state machine: Q1–Q3.

use crate::common::{self, CAPS, End, QKEY, S, bring_to, connect, connect_by, pair, patient};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{Access, ModifyError, QpAttr, QpAttrMask, QpState, QpType};

/// Every attribute that there is a setter for.
fn everything(peer: u32, from: QpState, to: QpState) -> QpAttr {
    QpAttr::to(to)
        .cur_state(from)
        .access(Access::REMOTE_WRITE)
        .pkey_index(0)
        .port(1)
        .qkey(QKEY)
        .av(1)
        .path_mtu(1024)
        .dest_qp_num(peer)
        .rq_psn(1)
        .sq_psn(2)
        .max_dest_rd_atomic(1)
        .max_rd_atomic(1)
        .min_rnr_timer(1)
        .timeout(1)
        .retry_cnt(1)
        .rnr_retry(1)
        .en_sqd_async_notify(true)
}

/// Only these attributes.
fn only(attr: QpAttr, mask: QpAttrMask) -> QpAttr {
    attr.without(attr.mask().difference(mask | QpAttrMask::STATE))
}

const TYPES: [QpType; 3] = [QpType::Rc, QpType::Uc, QpType::Ud];

/// Whether a queue pair can be in a state: no reliable connection stops at SQE.
fn is_reached(qp_type: QpType, state: QpState) -> bool {
    qp_type != QpType::Rc || state != QpState::Sqe
}

/// A queue pair of a type in a state.
fn end_in(qp_type: QpType, state: QpState) -> End {
    let mut end = End::of(qp_type, CAPS);
    let peer = end.qp.number();
    end.bring_to(peer, state);
    end
}

/// Every change of state of every type, possible or not.
fn changes() -> impl Iterator<Item = (QpType, QpState, QpState)> {
    let from = |of| QpState::ALL.into_iter().filter(move |&from| is_reached(of, from));
    let pairs = TYPES.into_iter().flat_map(move |of| from(of).map(move |from| (of, from)));
    pairs.flat_map(|(of, from)| QpState::ALL.into_iter().map(move |to| (of, from, to)))
}

/// The transitions of ibv_modify_qp(3), written out again.
fn required(of: QpType, from: QpState, to: QpState) -> Option<QpAttrMask> {
    use QpState::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
    use QpType::{Rc, Uc, Ud};
    type M = QpAttrMask;
    Some(match (from, to, of) {
        (_, Reset, _) => M::empty(),
        (Reset, Err, _) => return None,
        (_, Err, _) => M::empty(),
        (Reset, Init, Rc | Uc) => M::PKEY_INDEX | M::PORT | M::ACCESS_FLAGS,
        (Reset, Init, Ud) => M::PKEY_INDEX | M::PORT | M::QKEY,
        (Init, Rtr, Rc) => {
            M::AV | M::PATH_MTU | M::DEST_QPN | M::RQ_PSN | M::MAX_DEST_RD_ATOMIC | M::MIN_RNR_TIMER
        }
        (Init, Rtr, Uc) => M::AV | M::PATH_MTU | M::DEST_QPN | M::RQ_PSN,
        (Init, Rtr, Ud) => M::empty(),
        (Rtr, Rts, Rc) => {
            M::TIMEOUT | M::RETRY_CNT | M::RNR_RETRY | M::SQ_PSN | M::MAX_QP_RD_ATOMIC
        }
        (Rtr, Rts, Uc | Ud) => M::SQ_PSN,
        (Init, Init, _) | (Rts, Rts | Sqd, _) | (Sqd, Rts | Sqd, _) | (Sqe, Rts, _) => M::empty(),
        _ => return None,
    })
}

#[test]
fn q01_every_transition_is_as_the_manual_lists_it() {
    for (of, from, to) in changes() {
        let mut end = end_in(of, from);
        let attr = everything(end.qp.number(), from, to);
        let Some(required) = required(of, from, to) else {
            let illegal = ModifyError::Illegal { from, to };
            assert_eq!(end.qp.modify(&attr), Err(illegal));
            assert_eq!(end.qp.modify(&QpAttr::to(to)), Err(illegal));
            assert_eq!(end.qp.state(), from);
            continue;
        };
        assert_eq!(end.qp.modify(&only(attr, required)), Ok(()), "{of:?}: {from} to {to}");
        assert_eq!(end.qp.state(), to);
    }
}

#[test]
fn q01_every_missing_attribute_is_named_and_changes_nothing() {
    for (of, from, to) in changes() {
        let required = required(of, from, to).unwrap_or(QpAttrMask::empty());
        for missing in required.iter() {
            let mut end = end_in(of, from);
            let attr = only(everything(end.qp.number(), from, to), required).without(missing);
            let error = end.qp.modify(&attr).unwrap_err();
            assert_eq!(error, ModifyError::Missing { from, to, missing }, "{of:?}");
            assert!(error.to_string().contains(&missing.to_string()), "{error}");
            assert_eq!(end.qp.state(), from);
        }
    }
}

/// Every attribute that a change does not list is too much, one at a time; and every one that it lists is
/// not.
#[test]
fn q01_superfluous_attributes_are_named_and_change_nothing() {
    for (of, from, to) in changes() {
        let Some(rule) = from.rule(to, of) else { continue };
        for further in everything(0, from, to).without(QpAttrMask::STATE).mask().iter() {
            let mut end = end_in(of, from);
            let attr = only(everything(end.qp.number(), from, to), rule.required | further);
            if (rule.required | rule.optional).contains(further) {
                assert_eq!(end.qp.modify(&attr), Ok(()), "{of:?}: {from} to {to} with {further}");
                continue;
            }
            let error = ModifyError::Superfluous { from, to, superfluous: further };
            assert_eq!(end.qp.modify(&attr), Err(error), "{of:?}");
            assert_eq!(end.qp.state(), from);
        }
    }
}

#[test]
fn q01_the_table_has_sqe_too() {
    for of in TYPES {
        assert!(QpState::Sqe.rule(QpState::Rts, of).is_some());
        for to in [QpState::Init, QpState::Rtr, QpState::Sqd, QpState::Sqe] {
            assert_eq!(QpState::Sqe.rule(to, of), None);
        }
    }
}

#[test]
fn q01_values_out_of_range_are_named_and_change_nothing() {
    let mut end = End::new();
    let peer = end.qp.number();
    bring_to(&mut end.qp, peer, QpState::Init);
    let rtr = QpAttr::rtr(peer);
    for (attr, bad) in [
        (QpAttrMask::DEST_QPN, rtr.dest_qp_num(1 << 24)),
        (QpAttrMask::RQ_PSN, rtr.rq_psn(1 << 24)),
        (QpAttrMask::PATH_MTU, rtr.path_mtu(1000)),
        (QpAttrMask::MIN_RNR_TIMER, rtr.min_rnr_timer(32)),
        (QpAttrMask::AV, rtr.av(2)),
        (QpAttrMask::PKEY_INDEX, rtr.pkey_index(1)),
    ] {
        match end.qp.modify(&bad) {
            Err(ModifyError::BadValue { attr: named, .. }) => assert_eq!(named, attr),
            other => panic!("{attr}: {other:?}"),
        }
        assert_eq!(end.qp.state(), QpState::Init);
    }
    end.qp.modify(&rtr).unwrap();
    for bad in [
        QpAttr::rts().timeout(32),
        QpAttr::rts().retry_cnt(8),
        QpAttr::rts().rnr_retry(8),
        QpAttr::rts().sq_psn(u32::MAX),
        QpAttr::rts().access(Access::from_bits_retain(1 << 10)),
    ] {
        assert!(matches!(end.qp.modify(&bad), Err(ModifyError::BadValue { .. })));
    }
    assert_eq!(end.qp.state(), QpState::Rtr);
}

#[test]
fn q01_a_wrong_current_state_is_refused() {
    let (mut a, _b) = pair();
    let error = a.qp.modify(&QpAttr::to(QpState::Rts).cur_state(QpState::Rtr)).unwrap_err();
    assert_eq!(error, ModifyError::NotIn { is: QpState::Rts, claimed: QpState::Rtr });
    a.qp.modify(&QpAttr::new().cur_state(QpState::Rts)).unwrap();
}

#[test]
fn q01_sqd_holds_sends_back_and_rts_resumes_them() {
    let (mut a, mut b) = pair();
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    a.qp.modify(&QpAttr::to(QpState::Sqd)).unwrap();
    a.send(3, 0, 8);
    a.expect_nothing();
    a.recv(4, 0, 8);
    b.send(5, 0, 8); // the receive side goes on
    a.expect(&[(4, S::SUCCESS)]);
    a.qp.modify(&QpAttr::to(QpState::Rts)).unwrap();
    a.expect(&[(3, S::SUCCESS)]);
    b.expect(&[(5, S::SUCCESS), (1, S::SUCCESS)]);
}

#[test]
fn q02_err_flushes_both_queues_in_order_and_what_is_posted_later() {
    let (mut a, mut b) = pair();
    for wr_id in 0..3 {
        a.send(wr_id, 0, 8); // no receive: they wait
        a.recv(10 + wr_id, 0, 8);
    }
    a.expect_nothing();
    a.qp.modify(&QpAttr::to(QpState::Err)).unwrap();
    let flushed = |ids: &[u64]| -> Vec<_> { ids.iter().map(|id| (*id, S::WR_FLUSH_ERR)).collect() };
    a.expect(&flushed(&[0, 1, 2, 10, 11, 12]));
    a.send(4, 0, 8);
    a.recv(13, 0, 8);
    let unsignaled = SendWr::send_inline(5, b"x").unsignaled();
    a.qp.post_send(&[unsignaled]).unwrap();
    a.expect(&flushed(&[4, 13, 5]));
    a.qp.modify(&QpAttr::to(QpState::Err)).unwrap();
    a.expect_nothing();
    b.expect_nothing();
    assert_eq!(b.qp.state(), QpState::Rts);
}

#[test]
fn q02_reset_drops_in_silence_and_the_pair_works_again() {
    let (mut a, mut b) = pair();
    for wr_id in 0..8 {
        a.send(wr_id, 0, 8);
        a.recv(10 + wr_id, 0, 8);
    }
    a.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    b.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    a.expect_nothing();
    connect(&mut a, &mut b);
    b.recv(1, 0, 8);
    for wr_id in 20..28 {
        a.send(wr_id, 0, 8); // all slots are back
    }
    b.expect(&[(1, S::SUCCESS)]);
    a.expect(&[(20, S::SUCCESS)]);
}

#[test]
fn q02_a_completion_from_before_reset_gives_no_slot_back() {
    let (mut a, mut b) = pair();
    for wr_id in 0..8 {
        b.recv(wr_id, 0, 8);
        a.send(wr_id, 0, 8);
    }
    a.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    b.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    connect(&mut a, &mut b);
    for wr_id in 10..18 {
        a.send(wr_id, 0, 8); // no receive: they wait
    }
    let old: Vec<_> = (0..8).map(|wr_id| (wr_id, S::SUCCESS)).collect();
    a.expect(&old);
    let full = PostError { posted: 0, why: Refused::QueueFull };
    assert_eq!(a.qp.post_send(&[SendWr::send_inline(99, b"")]), Err(full));
}

/// Every state that a queue pair of a type can be in.
fn states() -> impl Iterator<Item = (QpType, QpState)> {
    let all = TYPES.into_iter().flat_map(|of| QpState::ALL.map(|state| (of, state)));
    all.filter(|&(of, state)| is_reached(of, state))
}

#[test]
fn q03_sends_are_refused_outside_rts_sqd_and_err_and_never_run() {
    for (of, state) in states() {
        let (mut a, mut b) = (End::of(of, CAPS), End::of(of, CAPS));
        let (peer, mine) = (b.qp.number(), a.qp.number());
        b.bring_to(mine, QpState::Rts);
        a.bring_to(peer, state);
        let posted = a.try_post_to(peer, &[SendWr::send_inline(1, b"x")]);
        if matches!(state, QpState::Rts | QpState::Sqd | QpState::Err) {
            assert_eq!(posted, Ok(()), "{of:?}: {state}");
            continue;
        }
        let refused = PostError { posted: 0, why: Refused::WrongState };
        assert_eq!(posted, Err(refused), "{of:?}: {state}");
        a.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
        a.bring_to(peer, QpState::Rts);
        b.recv(2, 0, 64);
        a.expect_nothing();
        b.expect_nothing();
    }
}

#[test]
fn q03_receives_are_refused_in_reset_only() {
    for (of, state) in states() {
        let mut end = end_in(of, state);
        let posted = end.qp.post_recv(&[RecvWr::new(1, &[])]);
        match state {
            QpState::Reset => {
                assert_eq!(posted, Err(PostError { posted: 0, why: Refused::WrongState }));
            }
            QpState::Err => {
                end.expect(&[(1, S::WR_FLUSH_ERR)]);
            }
            _ => assert_eq!(posted, Ok(())),
        }
    }
}

#[test]
fn a_request_waits_for_a_peer_that_is_not_ready_yet() {
    for state in [QpState::Reset, QpState::Init] {
        let (mut a, mut b) = (End::with(CAPS), End::with(CAPS));
        connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &patient());
        bring_to(&mut b.qp, a.qp.number(), state);
        let write = SendWr::write_inline(1, b"early", b.region.remote(0).unwrap());
        a.qp.post_send(&[write]).unwrap();
        a.expect_nothing();
        if state == QpState::Reset {
            b.qp.modify(&QpAttr::init(Access::REMOTE_WRITE)).unwrap();
        }
        a.expect_nothing();
        b.qp.modify(&QpAttr::rtr(a.qp.number())).unwrap();
        a.expect(&[(1, S::SUCCESS)]);
        assert_eq!(b.bytes(0, 5), b"early");
    }
}

#[test]
fn q01_every_attribute_is_told_until_reset() {
    type M = QpAttrMask;
    let (mut a, b) = (End::new(), End::new());
    assert_eq!(a.qp.attributes(), QpAttr::to(QpState::Reset));
    let rtr = QpAttr::rtr(b.qp.number()).rq_psn(24).path_mtu(1024);
    for attr in [QpAttr::init(Access::REMOTE_READ), rtr, QpAttr::rts().timeout(17).sq_psn(1225)] {
        a.qp.modify(&attr).unwrap();
    }
    let refused = a.qp.modify(&QpAttr::new().access(Access::REMOTE_WRITE).timeout(3));
    assert!(refused.is_err());
    a.qp.modify(&QpAttr::new().min_rnr_timer(7).cur_state(QpState::Rts)).unwrap();
    let told = a.qp.attributes();
    for (attr, value) in [
        (M::STATE, Some(QpState::Rts as u32)),
        (M::ACCESS_FLAGS, Some(Access::REMOTE_READ.bits())),
        (M::PORT, Some(1)),
        (M::DEST_QPN, Some(b.qp.number())),
        (M::RQ_PSN, Some(24)),
        (M::SQ_PSN, Some(1225)),
        (M::PATH_MTU, Some(1024)),
        (M::TIMEOUT, Some(17)),
        (M::MIN_RNR_TIMER, Some(7)),
        (M::QKEY, None),
        (M::CUR_STATE, None),
    ] {
        assert_eq!(told.value(attr), value, "{attr}");
    }
    a.post(SendWr::send(1, &[common::BAD]));
    a.expect(&[(1, S::LOC_PROT_ERR)]);
    assert_eq!(a.qp.attributes(), told.state(QpState::Err));
    a.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    assert_eq!(a.qp.attributes(), QpAttr::to(QpState::Reset));
}
