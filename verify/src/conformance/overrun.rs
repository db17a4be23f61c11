//! Overrun: O1–O7; P6 of a queue that has overrun.

use cq_core::transport::PollError;

use super::stand::*;

super::chapter! {
    o01_a_queue_holds_what_it_says_and_at_least_what_was_asked,
    o01_sizes_out_of_range_are_refused,
    o02_an_overrun_is_told_once_and_names_the_queue,
    o03_what_was_stored_comes_first_then_every_poll_fails,
    o04_queue_pairs_of_the_queue_go_to_err,
    o04_flushes_arrive_on_the_other_queue,
    o04_each_queue_pair_is_told_of_once,
    o04_sends_overrun_their_queue_too,
    o04_others_do_not_notice,
    o05_every_completion_wakes_up_to_the_one_that_overruns,
    o05_an_overrun_wakes_who_waits_for_solicited,
    o06_an_overrun_queue_goes_once_its_queue_pairs_are_gone,
    p06_room_for_nothing_in_an_overrun_queue_returns_nothing,
    o07_a_queue_of_all_that_is_outstanding_never_overruns,
}

/// A pair whose second end has a queue for few receives.
fn narrow<D: Device>() -> (End<D>, End<D>) {
    pair_with(&Plan::default(), &Plan { cqe: 4, ..Plan::with_channel() })
}

/// Sends a message, which takes a receive of `b`.
#[track_caller]
fn message<D: Device>(a: &mut End<D>, b: &mut End<D>, id: u64) {
    b.recv(id, 0, 8);
    a.send(id);
    wait_until(&a.device, "a message arrives, or nobody takes it any more", || {
        !take(&mut a.sent).is_empty() || b.qp.state() == State::Err
    });
}

/// Sends to `b` until the queue of its receives has overrun; the number of the message that did it.
#[track_caller]
fn overrun<D: Device>(a: &mut End<D>, b: &mut End<D>) -> u64 {
    let most = 4 * u64::from(b.received.capacity()) + 64;
    for id in 0..most {
        message(a, b, id);
        if b.qp.state() == State::Err {
            return id;
        }
    }
    panic!("{most} messages did not overrun a queue of {}", b.received.capacity());
}

fn o01_a_queue_holds_what_it_says_and_at_least_what_was_asked<D: Device>() {
    for asked in [1, 2, 3, 7, 8, 64, 100] {
        let narrow = Plan { cqe: asked, ..Plan::default() };
        let (mut a, mut b) = pair_with::<D>(&Plan::default(), &narrow);
        let capacity = b.received.capacity();
        assert!(capacity >= asked, "{capacity} is fewer than {asked}");
        for round in 0..3 {
            let ids = round * u64::from(capacity)..(round + 1) * u64::from(capacity);
            ids.clone().for_each(|id| message(&mut a, &mut b, id));
            assert_eq!(b.qp.state(), State::Rts, "{capacity} completions are no overrun");
            b.expect_received(&all(ids, S::SUCCESS));
        }
    }
}

fn o01_sizes_out_of_range_are_refused<D: Device>() {
    let device = D::open();
    let most = device.limits().max_cqe;
    assert!(device.create_cq(0, None).is_err(), "a queue that holds nothing");
    assert!(device.create_cq(most + 1, None).is_err(), "more than the limit");
    let largest = device.create_cq(most, None);
    assert!(largest.is_ok_and(|cq| cq.capacity() >= most), "as many as the limit");
}

fn o02_an_overrun_is_told_once_and_names_the_queue<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    let overruns = |b: &mut End<D>| {
        let told = b.take_async().into_iter();
        told.filter(|(kind, _)| *kind == AsyncEventType::CQ_ERR).map(|(_, it)| it).collect()
    };
    let before: Vec<Element> = overruns(&mut b);
    assert_eq!(before, [], "before it");
    overrun(&mut a, &mut b);
    for id in 1000..1010 {
        b.recv(id, 0, 8); // flushed, and dropped as well
    }
    let told: Vec<Element> = overruns(&mut b);
    assert_eq!(told, [Element::Cq(b.received.key())]);
}

fn o03_what_was_stored_comes_first_then_every_poll_fails<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    let last = overrun(&mut a, &mut b);
    let mut stored = Vec::new();
    let mut room = [Wc::default(); 3];
    let error = loop {
        match b.received.poll(&mut room) {
            Ok(0) => panic!("empty after {} completions, and no error", stored.len()),
            Ok(count) => stored.extend(room[..count].iter().map(Wc::wr_id)),
            Err(error) => break error,
        }
    };
    let count = stored.len() as u64;
    assert!(count >= u64::from(b.received.capacity()), "it held {count} only");
    assert!(count <= last, "of messages 0 to {last} one at least was dropped");
    assert_eq!(stored, (0..count).collect::<Vec<_>>(), "in order, without a gap");
    let is_told = |error| matches!(error, PollError::Overrun { dropped: None | Some(1..) });
    assert!(is_told(error), "{error:?}");
    for _ in 0..3 {
        assert!(b.received.poll(&mut room).is_err_and(is_told), "it fails for ever");
    }
}

fn o04_queue_pairs_of_the_queue_go_to_err<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    let init = QpInit { recv_cq: &b.received, ..QpInit::new(&b.sent) };
    let mut second = b.device.create_qp(&b.pd, &init).unwrap();
    let itself = second.number();
    connect(&mut second, itself);
    overrun(&mut a, &mut b);
    b.expect_state(State::Err);
    wait_until(&b.device, "the other queue pair is in ERR", || second.state() == State::Err);
}

fn o04_flushes_arrive_on_the_other_queue<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    for id in 100..103 {
        b.send(id); // nobody receives: they wait
    }
    overrun(&mut a, &mut b);
    b.expect_sent(&all(100..103, S::WR_FLUSH_ERR));
}

fn o04_each_queue_pair_is_told_of_once<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    overrun(&mut a, &mut b);
    for id in 1000..1010 {
        b.recv(id, 0, 8); // flushed, and dropped as well
    }
    let overrun = (AsyncEventType::CQ_ERR, Element::Cq(b.received.key()));
    let failed = (AsyncEventType::QP_FATAL, b.element());
    b.expect_async(&[overrun, failed]);
}

fn o04_sends_overrun_their_queue_too<D: Device>() {
    let caps = Caps { max_send_wr: 64, ..CAPS };
    let (mut a, mut b) =
        pair_with::<D>(&Plan { caps, cqe: 4, ..Plan::default() }, &Plan::default());
    for id in 0..4 {
        a.recv(100 + id, 0, 8);
        b.recv(200 + id, 0, 8);
    }
    let list: Vec<_> = (0..64).map(|id| SendWr::write_inline(id, b"x", b.remote(id))).collect();
    a.qp.post_send(&list).unwrap();
    a.expect_state(State::Err);
    a.expect_received(&all(100..104, S::WR_FLUSH_ERR));
    let overrun = (AsyncEventType::CQ_ERR, Element::Cq(a.sent.key()));
    a.expect_async(&[overrun, (AsyncEventType::QP_FATAL, a.element())]);
    let mut room = [Wc::default(); 64];
    let stored = a.sent.poll(&mut room).unwrap();
    assert!((4..64).contains(&stored), "{stored} were stored");
    let in_order = room[..stored].iter().map(Wc::wr_id).eq(0..stored as u64);
    assert!(in_order && a.sent.poll(&mut room).is_err(), "{room:?}");
    assert_eq!(b.qp.state(), State::Rts, "it was not its queue");
    b.expect_nothing();
}

fn o04_others_do_not_notice<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    let (mut c, mut d) = pair::<D>();
    overrun(&mut a, &mut b);
    for id in 0..20 {
        message(&mut c, &mut d, id);
        d.expect_received(&[(id, S::SUCCESS)]);
    }
    assert_eq!((c.qp.state(), d.qp.state()), (State::Rts, State::Rts));
    assert_eq!(c.take_async(), [], "events are told to who has the queue");
}

fn o05_every_completion_wakes_up_to_the_one_that_overruns<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    let key = b.received.key();
    for id in 0..4 * u64::from(b.received.capacity()) + 64 {
        arm(&mut b.received, Notify::Next);
        message(&mut a, &mut b, id);
        b.expect_event(key);
        if b.qp.state() == State::Err {
            return;
        }
    }
    panic!("it did not overrun");
}

fn o05_an_overrun_wakes_who_waits_for_solicited<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    arm(&mut b.received, Notify::Solicited);
    b.expect_no_event();
    overrun(&mut a, &mut b);
    let key = b.received.key();
    b.expect_event(key);
}

fn o06_an_overrun_queue_goes_once_its_queue_pairs_are_gone<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    overrun(&mut a, &mut b);
    let End { qp, received, .. } = b;
    let received = received.destroy().expect_err("a queue pair uses it");
    drop(qp);
    assert!(received.destroy().is_ok(), "nobody uses it any more");
}

fn p06_room_for_nothing_in_an_overrun_queue_returns_nothing<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    overrun(&mut a, &mut b);
    assert_eq!(b.received.poll(&mut []), Ok(0), "with completions waiting");
    while b.received.poll(&mut [Wc::default(); 4]).is_ok() {}
    assert_eq!(b.received.poll(&mut []), Ok(0), "once it fails");
}

fn o07_a_queue_of_all_that_is_outstanding_never_overruns<D: Device>() {
    let device = D::open();
    let caps = Caps { max_send_wr: 4, max_recv_wr: 4, ..CAPS };
    let (pd, mut cq) = (device.alloc_pd(), device.create_cq(3 * (4 + 4), None).unwrap());
    let init = QpInit { caps, ..QpInit::new(&cq) };
    let mut qps: Vec<_> = (0..3).map(|_| device.create_qp(&pd, &init).unwrap()).collect();
    for _ in 0..20 {
        for qp in &mut qps {
            let itself = qp.number();
            connect(qp, itself);
            qp.modify(&Attr::to(State::Sqd)).unwrap(); // so that nothing is carried out
            for id in 0..4 {
                qp.post_send(&[SendWr::send_inline(id, b"").unsignaled()]).unwrap();
                qp.post_recv(&[RecvWr::new(10 + id, &[])]).unwrap();
            }
        }
        for qp in &mut qps {
            qp.modify(&Attr::to(State::Err)).unwrap();
        }
        let flushed = settle(&device, &mut cq, 24);
        assert_eq!(flushed.len(), 24, "every request of every queue pair");
        for qp in &mut qps {
            qp.modify(&Attr::to(State::Reset)).unwrap();
        }
    }
}
