//! Faults where nobody answers: what the peer would not have taken is lost, and the sender alone fails (UC, UD).
//! And those that leave alone what needs no peer.

use std::time::Duration;

use crate::common::windows::Opening;
use crate::common::{S, faulty, pair_on};
use cq_core::wr::SendWr;
use transport_rxe_loop::{Access, Faults, QpAttr, QpState, QpType, When};

const FOREVER: Duration = Duration::from_secs(3600);
const TINY: Duration = Duration::from_micros(10);
const KINDS: [QpType; 2] = [QpType::Uc, QpType::Ud];

#[test]
fn q07_a_message_is_lost_that_finds_no_receive_or_a_peer_that_has_stopped() {
    let faults = || Faults::seeded(1);
    for (faults, received) in [
        (faults().starve(When::nth(1), FOREVER), &[10, 11][..]),
        (faults().stop(When::nth(1), FOREVER), &[]),
    ] {
        for kind in KINDS {
            let (mut a, mut b) = pair_on(&faulty(faults.clone()), kind);
            (10..12).for_each(|wr_id| b.recv(wr_id, 0, 64));
            for wr_id in 1..4 {
                a.post_to(b.qp.number(), &[SendWr::send_inline(wr_id, b"message!")]);
            }
            a.expect(&[1, 2, 3].map(|wr_id| (wr_id, S::SUCCESS)));
            b.expect(&received.iter().map(|&wr_id| (wr_id, S::SUCCESS)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn q01_a_failure_of_the_sender_stops_its_send_queue_only() {
    for kind in KINDS {
        // The second has a status that only an answer could tell.
        let faults = Faults::seeded(1)
            .fail(When::nth(1), S::LOC_QP_OP_ERR)
            .fail(When::nth(2), S::REM_ACCESS_ERR);
        let (mut a, mut b) = pair_on(&faulty(faults), kind);
        b.recv(10, 0, 64);
        for status in [S::LOC_QP_OP_ERR, S::REM_ACCESS_ERR] {
            a.post_to(b.qp.number(), &[SendWr::send_inline(1, b"message!")]);
            a.expect(&[(1, status)]);
            assert_eq!(a.state(), QpState::SQE);
            a.qp.modify(&QpAttr::to(QpState::RTS).cur_state(QpState::SQE)).unwrap();
        }
        assert_eq!(b.state(), QpState::RTS);
        a.post_to(b.qp.number(), &[SendWr::send_inline(2, b"message!")]);
        a.expect(&[(2, S::SUCCESS)]);
        b.expect(&[(10, S::SUCCESS)]);
    }
}

#[test]
fn q06_what_needs_no_peer_does_not_wait_for_one() {
    let faults = Faults::seeded(1).stop(When::nth(1), FOREVER).delay(When::nth(1), TINY);
    let (mut a, b) = pair_on(&faulty(faults), QpType::Rc);
    let opening = Opening::of(&a);
    a.post(SendWr::bind_window(1, opening.bind(Access::REMOTE_WRITE)));
    a.expect(&[(1, S::SUCCESS)]);
    assert_eq!(a.context.injected().unwrap().to_string(), "seed 1, 1 delayed");
    a.post(SendWr::write_inline(2, b"x", b.region.remote(0).unwrap()));
    a.expect_nothing();
    a.to(QpState::ERR);
    a.expect(&[(2, S::WR_FLUSH_ERR)]);
}
