//! SQE: where the sender of an unreliable connection or of datagrams failed, and nobody else (Q1, Q3, Q7).

use crate::common::{BAD, CAPS, End, S, pair_of, settle};
use cq_core::transport::{PostError, Refused};
use cq_core::wr::{SendWr, Sge};
use transport_rxe_loop::{ModifyError, QpAttr, QpState, QpType};

const TYPES: [QpType; 2] = [QpType::Uc, QpType::Ud];

/// A list of which the second fails over a piece of its own.
fn post_a_bad_one(a: &mut End, b: &End, bad: &[Sge]) {
    let good = [a.region.sge(0, 8).unwrap()];
    let list = [
        SendWr::send(1, &good).unsignaled(),
        SendWr::send(2, bad).unsignaled(),
        SendWr::send(3, &good),
        SendWr::send(4, &good).unsignaled(),
    ];
    a.post_to(b.qp.number(), &list);
}

#[test]
fn q07_what_is_behind_a_send_that_failed_is_flushed_and_receives_go_on() {
    for of in TYPES {
        let (mut a, mut b) = pair_of(of);
        for wr_id in 10..13 {
            b.recv(wr_id, 0, 64);
            a.recv(wr_id, 0, 64);
        }
        post_a_bad_one(&mut a, &b, &[BAD]);
        a.expect(&[(2, S::LOC_PROT_ERR), (3, S::WR_FLUSH_ERR), (4, S::WR_FLUSH_ERR)]);
        b.expect(&[(10, S::SUCCESS)]);
        assert_eq!((a.qp.state(), b.qp.state()), (QpState::Sqe, QpState::Rts));
        let sge = [b.region.sge(0, 8).unwrap()];
        b.post_to(a.qp.number(), &[SendWr::send(5, &sge)]);
        a.expect(&[(10, S::SUCCESS)]);
        b.expect(&[(5, S::SUCCESS)]);
    }
}

#[test]
fn q07_every_fault_of_ones_own_stops_there() {
    for of in TYPES {
        let faults: [fn(&End) -> Vec<Sge>; 3] = [
            |_| vec![BAD],
            |end| vec![Sge { length: 8193, ..end.region.sge(0, 8192).unwrap() }],
            |end| {
                let other = End::new().region;
                let sge = end.region.sge(0, 8).unwrap();
                vec![sge, other.sge(0, 8).unwrap()]
            },
        ];
        for fault in faults {
            let (mut a, mut b) = pair_of(of);
            let bad = fault(&a);
            let len: u64 = bad.iter().map(|sge| u64::from(sge.length)).sum();
            let too_long = of == QpType::Ud && len > 4096;
            let status = if too_long { S::LOC_LEN_ERR } else { S::LOC_PROT_ERR };
            a.post_to(b.qp.number(), &[SendWr::send(1, &bad)]);
            a.expect(&[(1, status)]);
            assert_eq!(a.qp.state(), QpState::Sqe);
            b.expect_nothing();
        }
    }
}

#[test]
fn q03_sends_are_refused_in_sqe_until_it_is_in_rts_again() {
    for of in TYPES {
        let (mut a, mut b) = pair_of(of);
        post_a_bad_one(&mut a, &b, &[BAD]);
        let refused = PostError { posted: 0, why: Refused::WrongState };
        let to = b.qp.number();
        assert_eq!(a.try_post_to(to, &[SendWr::send_inline(5, b"x")]), Err(refused));
        assert_eq!(settle(&mut a.cq, 3).len(), 3);
        a.qp.modify(&QpAttr::to(QpState::Rts)).unwrap();
        b.recv(6, 0, 64);
        // All slots are back, too.
        for wr_id in 20..28 {
            a.post_to(to, &[SendWr::send_inline(wr_id, b"x")]);
        }
        let sent: Vec<_> = (20..28).map(|wr_id| (wr_id, S::SUCCESS)).collect();
        a.expect(&sent);
        b.expect(&[(6, S::SUCCESS)]);
    }
}

#[test]
fn q01_sqe_leads_to_rts_err_and_reset_only() {
    for of in TYPES {
        for to in QpState::ALL {
            let mut end = End::of(of, CAPS);
            let peer = end.qp.number();
            end.bring_to(peer, QpState::Sqe);
            end.recv(1, 0, 64);
            let from = QpState::Sqe;
            match to {
                QpState::Rts | QpState::Err | QpState::Reset => {
                    end.qp.modify(&QpAttr::to(to)).unwrap();
                }
                _ => {
                    let illegal = ModifyError::Illegal { from, to };
                    assert_eq!(end.qp.modify(&QpAttr::to(to)), Err(illegal));
                }
            }
            if to == QpState::Err {
                end.expect(&[(1, S::WR_FLUSH_ERR)]);
            }
            end.expect_nothing();
        }
    }
}

#[test]
fn q07_a_send_that_fails_while_it_is_drained_stops_there_too() {
    for of in TYPES {
        let (mut a, b) = pair_of(of);
        a.qp.modify(&QpAttr::to(QpState::Sqd)).unwrap();
        post_a_bad_one(&mut a, &b, &[BAD]);
        a.expect_nothing();
        a.qp.modify(&QpAttr::to(QpState::Rts)).unwrap();
        a.expect(&[(2, S::LOC_PROT_ERR), (3, S::WR_FLUSH_ERR), (4, S::WR_FLUSH_ERR)]);
        assert_eq!(a.qp.state(), QpState::Sqe);
    }
}

#[test]
fn q07_a_reliable_connection_goes_to_err_as_ever() {
    let (mut a, b) = pair_of(QpType::Rc);
    a.recv(10, 0, 64);
    a.post_to(b.qp.number(), &[SendWr::send(1, &[BAD])]);
    a.expect(&[(1, S::LOC_PROT_ERR), (10, S::WR_FLUSH_ERR)]);
    assert_eq!(a.qp.state(), QpState::Err);
}
