//! Changing the state of queue pairs: how the attributes are told, and what is wrong with them (Q1).

use crate::common::{self, CAPS, End, S, bring_to, pair};
use cq_core::setup::{AddressVector, Endpoint, Gid, Port};
use cq_core::wr::SendWr;
use transport_rxe_loop::{Access, ModifyError, QpAttr, QpAttrMask, QpState, QpType};

#[test]
fn q01_what_is_wrong_with_a_change_is_told() {
    for of in [QpType::Rc, QpType::Uc, QpType::Ud] {
        let mut end = End::of(of, CAPS);
        let way = common::way(of, end.qp.number());
        for (attr, to) in way.into_iter().zip([QpState::INIT, QpState::RTR, QpState::RTS]) {
            let from = end.qp.state().unwrap();
            for missing in attr.without(QpAttrMask::STATE).mask().iter() {
                let error = end.qp.modify(&attr.without(missing)).unwrap_err();
                assert_eq!(error, ModifyError::Missing { from, to, missing }, "{of:?}");
                assert!(error.to_string().contains(&missing.to_string()), "{error}");
            }
            let superfluous = QpAttrMask::EN_SQD_ASYNC_NOTIFY;
            let error = ModifyError::Superfluous { from, to, superfluous };
            assert_eq!(end.qp.modify(&attr.en_sqd_async_notify(true)), Err(error), "{of:?}");
            // Which is so whatever it brings.
            for attr in [QpAttr::to(QpState::SQE), attr.state(QpState::SQE)] {
                let illegal = ModifyError::Illegal { from, to: QpState::SQE };
                assert_eq!(end.qp.modify(&attr), Err(illegal), "{of:?}");
            }
            assert_eq!(end.qp.state().unwrap(), from);
            end.qp.modify(&attr).unwrap();
        }
    }
}

#[test]
fn q01_the_table_has_sqe_too() {
    type M = QpAttrMask;
    for (of, running) in
        [(QpType::Rc, M::ACCESS_FLAGS), (QpType::Uc, M::ACCESS_FLAGS), (QpType::Ud, M::QKEY)]
    {
        let rule = QpState::SQE.rule(QpState::RTS, of).unwrap();
        assert_eq!((rule.required, rule.optional), (M::empty(), M::CUR_STATE | running));
        for to in [QpState::ERR, QpState::RESET] {
            let rule = QpState::SQE.rule(to, of).unwrap();
            assert_eq!((rule.required, rule.optional), (M::empty(), M::empty()));
        }
        for to in [QpState::INIT, QpState::RTR, QpState::SQD, QpState::SQE] {
            assert_eq!(QpState::SQE.rule(to, of), None);
        }
    }
}

#[test]
fn q01_values_out_of_range_are_named_and_change_nothing() {
    let mut end = End::new();
    let peer = end.qp.number();
    bring_to(&mut end.qp, peer, QpState::INIT);
    let rtr = QpAttr::rtr(&Port::new(1), &Endpoint::new(peer));
    for (attr, bad) in [
        (QpAttrMask::DEST_QPN, rtr.dest_qp_num(1 << 24)),
        (QpAttrMask::RQ_PSN, rtr.rq_psn(1 << 24)),
        (QpAttrMask::PATH_MTU, rtr.path_mtu(1000)),
        (QpAttrMask::MIN_RNR_TIMER, rtr.min_rnr_timer(32)),
        (QpAttrMask::AV, rtr.av(AddressVector::of(&Port::new(2), Gid::default(), 0))),
        (QpAttrMask::PKEY_INDEX, rtr.pkey_index(1)),
    ] {
        match end.qp.modify(&bad) {
            Err(ModifyError::BadValue { attr: named, .. }) => assert_eq!(named, attr),
            other => panic!("{attr}: {other:?}"),
        }
        assert_eq!(end.qp.state().unwrap(), QpState::INIT);
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
    assert_eq!(end.qp.state().unwrap(), QpState::RTR);
}

#[test]
fn q01_a_wrong_current_state_is_refused() {
    let (mut a, _b) = pair();
    let error = a.qp.modify(&QpAttr::to(QpState::RTS).cur_state(QpState::RTR)).unwrap_err();
    assert_eq!(error, ModifyError::NotIn { is: QpState::RTS, claimed: QpState::RTR });
    a.qp.modify(&QpAttr::new().cur_state(QpState::RTS)).unwrap();
}

#[test]
fn q01_every_attribute_is_told_until_reset() {
    let (mut a, b) = (End::new(), End::new());
    assert_eq!(a.qp.attributes().unwrap(), QpAttr::to(QpState::RESET));
    let rtr = QpAttr::rtr(&Port::new(1), &Endpoint::new(b.qp.number())).rq_psn(24).path_mtu(1024);
    let init = QpAttr::init(&Port::new(1), Access::REMOTE_READ);
    let rts = QpAttr::rts().timeout(17).sq_psn(1225);
    for attr in [init, rtr, rts] {
        a.qp.modify(&attr).unwrap();
    }
    let refused = a.qp.modify(&QpAttr::new().access(Access::REMOTE_WRITE).timeout(3));
    assert!(refused.is_err());
    a.qp.modify(&QpAttr::new().min_rnr_timer(7).cur_state(QpState::RTS)).unwrap();
    let told = a.qp.attributes().unwrap();
    assert_eq!(told, rts.over(rtr).over(init).min_rnr_timer(7));
    a.post(SendWr::send(1, &[common::BAD]));
    a.expect(&[(1, S::LOC_PROT_ERR)]);
    assert_eq!(a.qp.attributes().unwrap(), told.state(QpState::ERR));
    a.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    assert_eq!(a.qp.attributes().unwrap(), QpAttr::to(QpState::RESET));
}
