//! SQE, beyond what the conformance suite tries: slots come back, and sends that were held back fail (Q3, Q7).

use crate::common::{BAD, End, S, pair_of, settle};
use cq_core::transport::{PostError, Refused};
use cq_core::wr::SendWr;
use transport_rxe_loop::{QpAttr, QpState, QpType};

const TYPES: [QpType; 2] = [QpType::Uc, QpType::Ud];

/// A list of which the second fails over a piece of its own.
fn post_a_bad_one(a: &mut End, b: &End) {
    let good = [a.region.sge(0, 8).unwrap()];
    let list = [
        SendWr::send(1, &good).unsignaled(),
        SendWr::send(2, &[BAD]).unsignaled(),
        SendWr::send(3, &good),
        SendWr::send(4, &good).unsignaled(),
    ];
    a.post_to(b.qp.number(), &list);
}

#[test]
fn q03_sends_are_refused_in_sqe_until_it_is_in_rts_again() {
    for of in TYPES {
        let (mut a, mut b) = pair_of(of);
        post_a_bad_one(&mut a, &b);
        let refused = PostError { posted: 0, why: Refused::WrongState };
        let to = b.qp.number();
        assert_eq!(a.try_post_to(to, &[SendWr::send_inline(5, b"x")]), Err(refused));
        assert_eq!(settle(&mut a.cq, 3).len(), 3);
        a.qp.modify(&QpAttr::to(QpState::RTS)).unwrap();
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
fn q07_a_send_that_fails_while_it_is_drained_stops_there_too() {
    for of in TYPES {
        let (mut a, b) = pair_of(of);
        a.qp.modify(&QpAttr::to(QpState::SQD)).unwrap();
        post_a_bad_one(&mut a, &b);
        a.expect_nothing();
        a.qp.modify(&QpAttr::to(QpState::RTS)).unwrap();
        a.expect(&[(2, S::LOC_PROT_ERR), (3, S::WR_FLUSH_ERR), (4, S::WR_FLUSH_ERR)]);
        assert_eq!(a.qp.state().unwrap(), QpState::SQE);
    }
}
