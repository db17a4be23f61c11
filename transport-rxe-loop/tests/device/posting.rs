//! Posting and the slots of the queues: Q4, Q5, the limits.

use crate::common::{self, CAPS, End, S, connect, open, pair, pair_with};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wr::{RecvWr, SendWr, Sge};
use transport_rxe_loop::{QpAttr, QpCaps, QpState};

fn refused(posted: usize, why: Refused) -> Result<(), PostError> {
    Err(PostError { posted, why })
}

#[test]
fn q04_a_list_stops_at_the_first_bad_request_and_names_it() {
    let (mut a, mut b) = pair();
    for wr_id in 0..3 {
        b.recv(wr_id, 0, 64);
    }
    let long = [0; 65];
    let list = [
        SendWr::send_inline(10, b"good"),
        SendWr::send_inline(11, b"good"),
        SendWr::send_inline(12, &long),
        SendWr::send_inline(13, b"never posted"),
    ];
    assert_eq!(a.qp.post_send(&list), refused(2, Refused::InlineTooLong { max: 64 }));
    a.expect(&[(10, S::SUCCESS), (11, S::SUCCESS)]);
    b.expect(&[(0, S::SUCCESS), (1, S::SUCCESS)]);

    let five = [Sge::default(); 5];
    let list = [RecvWr::new(3, &[]), RecvWr::new(4, &five)];
    assert_eq!(b.qp.post_recv(&list), refused(1, Refused::TooManySges { max: 4 }));
    assert_eq!(
        a.qp.post_send(&[SendWr::send(1, &five)]),
        refused(0, Refused::TooManySges { max: 4 })
    );
}

#[test]
fn sends_are_done_once_they_are_carried_out_flushed_or_dropped() {
    let is_drained = |end: &End| end.qp.sends_done() == end.qp.sends_posted();
    let (mut a, mut b) = pair();
    let ends = [(QpState::Rts, S::SUCCESS), (QpState::Err, S::WR_FLUSH_ERR)];
    for (wr_id, (to, status)) in (0..).zip(ends) {
        assert!(is_drained(&a));
        b.recv(wr_id, 0, 64);
        a.qp.modify(&QpAttr::to(QpState::Sqd)).unwrap();
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
    a.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    assert!(is_drained(&a));
}

#[test]
fn q04_a_message_past_the_devices_limit_is_refused() {
    let (mut a, _b) = pair();
    let max = open().attributes().max_msg_size;
    let huge = [Sge { addr: 0, length: u32::MAX, lkey: 0 }; 2];
    assert_eq!(a.qp.post_send(&[SendWr::send(1, &huge)]), refused(0, Refused::TooLong { max }));
    a.expect_nothing();
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
fn q04_a_full_receive_queue_refuses() {
    let (mut a, mut b) = pair();
    for wr_id in 0..8 {
        b.recv(wr_id, 0, 8);
    }
    assert_eq!(b.qp.post_recv(&[RecvWr::new(8, &[])]), refused(0, Refused::QueueFull));
    a.send(1, 0, 8);
    b.recv(8, 0, 8);
    assert_eq!(b.qp.post_recv(&[RecvWr::new(9, &[])]), refused(0, Refused::QueueFull));
}

#[test]
fn q05_a_queue_fed_only_unsignaled_requests_fills_up() {
    let (mut a, mut b) = pair();
    for wr_id in 0..8 {
        b.recv(wr_id, 0, 8);
        a.qp.post_send(&[SendWr::send_inline(wr_id, b"x").unsignaled()]).unwrap();
    }
    a.expect_nothing();
    assert_eq!(a.qp.post_send(&[SendWr::send_inline(9, b"x")]), refused(0, Refused::QueueFull));
}

#[test]
fn q05_a_slot_comes_back_when_a_completion_that_covers_it_is_polled() {
    let (mut a, mut b) = pair();
    for wr_id in 0..8 {
        b.recv(wr_id, 0, 8);
    }
    for wr_id in 0..8 {
        let wr = SendWr::send_inline(wr_id, b"x");
        a.qp.post_send(&[if wr_id == 3 { wr } else { wr.unsignaled() }]).unwrap();
    }
    let full = refused(0, Refused::QueueFull);
    assert_eq!(a.qp.post_send(&[SendWr::send_inline(9, b"x")]), full, "completed, not polled");
    a.expect(&[(3, S::SUCCESS)]);
    for wr_id in 10..14 {
        a.send(wr_id, 0, 1); // the four that it covers
    }
    assert_eq!(a.qp.post_send(&[SendWr::send_inline(9, b"x")]), full);
}

#[test]
fn q05_slots_come_back_for_ever() {
    let (mut a, mut b) = pair();
    for round in 0..10_000 {
        b.recv(round, 0, 8);
        a.send(round, 0, 8);
        if round % 8 == 7 {
            let wanted: Vec<_> = (round - 7..=round).map(|id| (id, S::SUCCESS)).collect();
            a.expect(&wanted);
            b.expect(&wanted);
        }
    }
}

#[test]
fn q05_flushed_requests_give_their_slots_back_too() {
    let (mut a, mut b) = pair();
    b.recv(0, 0, 4);
    for wr_id in 0..8 {
        a.send(wr_id, 0, 8);
    }
    assert_eq!(a.qp.post_send(&[SendWr::send_inline(9, b"")]), refused(0, Refused::QueueFull));
    common::settle(&mut a.cq, 8);
    for wr_id in 10..18 {
        a.send(wr_id, 0, 8);
    }
    common::settle(&mut a.cq, 8);
}

#[test]
fn queues_that_are_not_used_may_have_no_room() {
    let none =
        QpCaps { max_send_wr: 0, max_recv_wr: 0, max_send_sge: 0, max_recv_sge: 0, max_inline: 0 };
    let (mut a, _b) = pair_with(none);
    assert_eq!(a.qp.caps(), none);
    assert_eq!(a.qp.post_send(&[SendWr::send(1, &[])]), refused(0, Refused::QueueFull));
    assert_eq!(a.qp.post_recv(&[RecvWr::new(1, &[])]), refused(0, Refused::QueueFull));
}

#[test]
fn the_capacity_is_what_was_asked_for_also_if_it_is_no_power_of_two() {
    let (mut a, mut b) = pair_with(QpCaps { max_send_wr: 5, max_recv_wr: 3, ..CAPS });
    assert_eq!((a.qp.caps().max_send_wr, a.qp.caps().max_recv_wr), (5, 3));
    for wr_id in 0..5 {
        a.send(wr_id, 0, 8);
    }
    assert_eq!(a.qp.post_send(&[SendWr::send(9, &[])]), refused(0, Refused::QueueFull));
    for round in 0..5 {
        b.recv(round, 0, 8);
    }
    a.expect(&[0, 1, 2, 3, 4].map(|id| (id, S::SUCCESS)));
}

#[test]
fn the_largest_requests_work() {
    let attributes = open().attributes();
    let caps = QpCaps {
        max_send_wr: 2,
        max_recv_wr: 2,
        max_send_sge: attributes.max_sge,
        max_recv_sge: attributes.max_sge,
        max_inline: attributes.max_inline,
    };
    let (mut a, mut b) = (End::with(caps), End::with(caps));
    connect(&mut a, &mut b);
    let count = attributes.max_sge as usize;
    let bytes: Vec<u8> = (0..attributes.max_inline).map(|i| i as u8).collect();
    a.region.write(0, &bytes).unwrap();
    let cut = |end: &End, at: usize| -> Vec<Sge> {
        (0..count).map(|i| end.region.sge(at + i * 16, 16).unwrap()).collect()
    };
    b.qp.post_recv(&[RecvWr::new(1, &cut(&b, 1024)), RecvWr::new(2, &cut(&b, 2048))]).unwrap();
    let sges = cut(&a, 0);
    a.qp.post_send(&[SendWr::send(3, &sges), SendWr::send_inline(4, &bytes)]).unwrap();
    b.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
    assert_eq!(b.bytes(1024, 256), bytes);
    assert_eq!(b.bytes(2048, 256), bytes);
}
