//! The room that atomics take, and when READ and atomics are refused: Q6, Q7.

use crate::common::{self, ALL, CAPS, End, S, open, pair, pair_with};
use cq_core::setup::Port;
use cq_core::transport::{Post, Refused};
use cq_core::wr::{Data, SendOp, SendWr, Sge};
use transport_rxe_loop::{AtomicCap, QpAttr, QpCaps, QpState};

#[test]
fn q06_a_full_queue_of_atomics_has_room_for_all_operands_and_pieces() {
    for max in 1..=open().attributes().max_sge {
        let caps = QpCaps { max_send_sge: max, max_inline: 0, ..CAPS };
        let (mut a, b) = pair_with(caps);
        let mut pieces = vec![Sge { addr: 1, length: 0, lkey: 2 }; max as usize];
        a.qp.modify(&QpAttr::to(QpState::SQD)).unwrap();
        for slot in 0..8 {
            pieces[max as usize - 1] = a.region.sge(slot * 8, 8).unwrap();
            b.set_word(slot * 8, slot as u64);
            let remote = b.region.remote(slot * 8).unwrap();
            let swap = 1 << 60 | slot as u64;
            a.post(SendWr::compare_swap(slot as u64, &pieces, remote, slot as u64, swap));
        }
        a.qp.modify(&QpAttr::to(QpState::RTS)).unwrap();
        let all: Vec<_> = (0..8).map(|wr_id| (wr_id, S::SUCCESS)).collect();
        a.expect(&all);
        for slot in 0..8 {
            let words = (a.word(slot * 8), b.word(slot * 8));
            assert_eq!(words, (slot as u64, 1 << 60 | slot as u64));
        }
    }
}

#[test]
fn q07_data_that_comes_back_can_not_be_inline() {
    let (mut a, b) = pair();
    let remote = b.region.remote(0).unwrap();
    for op in [
        SendOp::Read { remote },
        SendOp::CompareSwap { remote, compare: 0, swap: 1 },
        SendOp::FetchAdd { remote, add: 1 },
    ] {
        for bytes in [&[0; 8][..], &[], &[0; 65]] {
            let wr = SendWr::new(1, op, Data::Inline(bytes));
            assert_eq!(a.qp.post_send(&[wr]).unwrap_err().why, Refused::InlineResult);
        }
    }
    a.expect_nothing();
    assert_eq!(b.word(0), 0);
}

#[test]
fn q07_max_rd_atomic_0_refuses_until_it_is_raised_in_sqd() {
    let (mut a, mut b) = (End::new(), End::new());
    b.qp.connect_to(a.qp.number()).unwrap();
    common::bring_to(&mut a.qp, b.qp.number(), QpState::RTR);
    a.qp.modify(&QpAttr::rts().max_rd_atomic(0)).unwrap();
    let sge = [a.region.sge(0, 8).unwrap()];
    let remote = b.region.remote(0).unwrap();
    let all = [
        SendWr::read(1, &sge, remote),
        SendWr::compare_swap(1, &sge, remote, 0, 0),
        SendWr::fetch_add(1, &sge, remote, 0),
    ];
    assert_eq!(a.qp.post_send(&all).unwrap_err().why, Refused::NoReadAtomic);
    a.qp.modify(&QpAttr::to(QpState::SQD)).unwrap();
    a.qp.modify(&QpAttr::new().max_rd_atomic(1)).unwrap();
    a.qp.modify(&QpAttr::to(QpState::RTS)).unwrap();
    a.qp.post_send(&all).unwrap();
    a.expect(&[(1, S::SUCCESS); 3]);
}

#[test]
fn q07_max_rd_atomic_is_0_before_it_is_given_and_after_reset() {
    let (mut a, b) = pair();
    let sge = [a.region.sge(0, 8).unwrap()];
    let read = SendWr::read(1, &sge, b.region.remote(0).unwrap());
    a.post(read);
    a.expect(&[(1, S::SUCCESS)]);
    for state in [QpState::RESET, QpState::INIT, QpState::ERR] {
        let attr = if state == QpState::INIT {
            QpAttr::init(&Port::new(1), ALL)
        } else {
            QpAttr::to(state)
        };
        a.qp.modify(&attr).unwrap();
    }
    assert_eq!(a.qp.post_send(&[read]).unwrap_err().why, Refused::NoReadAtomic);
    a.post(SendWr::send(2, &sge));
    a.expect(&[(2, S::WR_FLUSH_ERR)]);
}

#[test]
fn the_device_says_how_many_reads_and_atomics_it_takes() {
    let attributes = open().attributes();
    assert_eq!((attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom), (16, 16));
    assert_eq!(attributes.atomic_cap, AtomicCap::HCA);
}
