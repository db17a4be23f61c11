//! Posting in batches, telling that sends are done, and slots beyond what Q4 and Q5 say.

use crate::common::{End, S, pair, pair_with};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{QpAttr, QpCaps, QpState};

/// What is said where the first request finds no slot.
const FULL: Result<(), PostError> = Err(PostError { posted: 0, why: Refused::QueueFull });

#[test]
fn sends_are_done_once_they_are_carried_out_flushed_or_dropped() {
    let is_drained = |end: &End| end.qp.sends_done() == end.qp.sends_posted();
    let (mut a, mut b) = pair();
    let ends = [(QpState::RTS, S::SUCCESS), (QpState::ERR, S::WR_FLUSH_ERR)];
    for (wr_id, (to, status)) in (0..).zip(ends) {
        assert!(is_drained(&a));
        b.recv(wr_id, 0, 64);
        a.qp.modify(&QpAttr::to(QpState::SQD)).unwrap();
        a.qp.post_send(&[SendWr::send(wr_id, &[])]).unwrap();
        assert!(!is_drained(&a));
        a.qp.modify(&QpAttr::to(to)).unwrap();
        a.expect(&[(wr_id, status)]);
        assert!(is_drained(&a));
    }
    // Nobody has what it is posted for, so that it waits.
    let (mut a, _b) = pair();
    a.qp.post_send(&[SendWr::send(1, &[])]).unwrap();
    assert!(!is_drained(&a));
    a.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    assert!(is_drained(&a));
}

#[test]
fn q04_a_batch_is_posted_whole_or_not_at_all() {
    let (mut a, mut b) = pair();
    (0..8).for_each(|wr_id| b.recv(wr_id, 0, 64));
    let good = |wr_id| SendWr::send_inline(wr_id, b"good");

    {
        let mut batch = a.qp.batch();
        (10..18).for_each(|wr_id| batch.put(&good(wr_id)).unwrap());
        assert_eq!(batch.put(&good(18)), Err(Refused::QueueFull));
    }
    a.expect_nothing();
    b.expect_nothing();

    // Nor did what was forgotten cost a slot; and what is refused is left out of what is posted.
    let mut batch = a.qp.batch();
    batch.put(&good(20)).unwrap();
    let refused = batch.put(&SendWr::send_inline(21, &[0; 65]));
    assert_eq!(refused, Err(Refused::InlineTooLong { max: 64 }));
    batch.post();
    (22..29).for_each(|wr_id| batch.put(&good(wr_id)).unwrap());
    batch.post();
    a.expect(&[20, 22, 23, 24, 25, 26, 27, 28].map(|wr_id| (wr_id, S::SUCCESS)));
}

#[test]
fn a_receives_slot_comes_back_when_it_is_taken() {
    let (mut a, mut b) = pair();
    (0..8).for_each(|wr_id| b.recv(wr_id, 0, 8));
    assert_eq!(b.qp.post_recv(&[RecvWr::new(8, &[])]), FULL);
    a.send(1, 0, 8);
    b.recv(8, 0, 8); // nobody has polled
    assert_eq!(b.qp.post_recv(&[RecvWr::new(9, &[])]), FULL);
}

#[test]
fn queues_that_are_not_used_may_have_no_room() {
    let none =
        QpCaps { max_send_wr: 0, max_recv_wr: 0, max_send_sge: 0, max_recv_sge: 0, max_inline: 0 };
    let (mut a, _b) = pair_with(none);
    assert_eq!(a.qp.caps(), none);
    assert_eq!(a.qp.post_send(&[SendWr::send(1, &[])]), FULL);
}
