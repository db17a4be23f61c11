//! Overrun (O1–O7), and polling a queue that has overrun (P6).

use std::time::Instant;

use cq_core::transport::PollError;
use cq_verbs::polling::PollWc;

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/overrun.rs"));

/// A pair whose second end has a small receive completion queue.
fn narrow<D: Device>() -> (End<D>, End<D>) {
    pair_with(&Plan::default(), &Plan { cqe: 4, ..Plan::with_channel() })
}

/// Whether the asynchronous event of this overrun has arrived. A device may require that it is read before a poll fails.
fn is_overrun<D: Device>(end: &mut End<D>, cq: CqKey) -> bool {
    end.is_told(AsyncEventType::CQ_ERR, Element::Cq(cq))
}

/// The completion queues with an asynchronous event of overrun.
fn overruns<D: Device>(end: &mut End<D>) -> Vec<Element> {
    let told = end.take_async().into_iter();
    told.filter(|(kind, _)| *kind == AsyncEventType::CQ_ERR).map(|(_, queue)| queue).collect()
}

/// Sends a message, which consumes a receive of `b`.
#[track_caller]
fn message<D: Device>(a: &mut End<D>, b: &mut End<D>, id: u64) {
    b.recv(id, 0, 8);
    a.send(id);
    let start = Instant::now();
    while take(&mut a.sent).is_empty() && !is_overrun(b, b.received.key()) {
        assert!(
            start.elapsed() < patience(),
            "message {id} neither arrives nor overruns the queue"
        );
        a.device.pause();
    }
}

/// Sends to `b` until its receive completion queue overruns; returns the number of the last message.
#[track_caller]
fn overrun<D: Device>(a: &mut End<D>, b: &mut End<D>) -> u64 {
    let most = 4 * u64::from(b.received.capacity()) + 64;
    for id in 0..most {
        message(a, b, id);
        if is_overrun(b, b.received.key()) {
            return id;
        }
    }
    panic!("{most} messages did not overrun a queue of {}", b.received.capacity());
}

fn n02_an_overrun_is_there_for_every_arm<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    overrun(&mut a, &mut b);
    let key = b.received.key();
    for on in [Notify::Solicited, Notify::Next] {
        arm(&mut b.received, on);
        b.expect_raised_when_armed(key);
    }
}

/// Polls an overrun queue until the poll fails, and again; returns the stored completions and the error.
#[track_caller]
fn drain(cq: &mut impl PollWc) -> (Vec<u64>, PollError) {
    let mut stored = Vec::new();
    let mut buffer = [Wc::default(); 3];
    let error = loop {
        match cq.poll_into(&mut buffer) {
            Ok(0) => panic!("empty after {} completions, and no error", stored.len()),
            Ok(count) => stored.extend(buffer[..count].iter().map(Wc::wr_id)),
            Err(error) => break error,
        }
    };
    for _ in 0..3 {
        let again = cq.poll_into(&mut buffer);
        assert!(
            matches!(again, Err(PollError::Overrun { .. })),
            "it fails for ever, not {again:?}"
        );
    }
    (stored, error)
}

/// Expects the stored completions to be the first of requests 0 to `last`, at least as many as the capacity.
#[track_caller]
fn check_stored((stored, error): (Vec<u64>, PollError), capacity: u32, last: u64) {
    let count = stored.len() as u64;
    assert!(count >= u64::from(capacity), "it held {count} only");
    assert!(count <= last, "of requests 0 to {last} one at least was dropped");
    assert_eq!(stored, (0..count).collect::<Vec<_>>(), "in order, without a gap");
    let is_told = matches!(error, PollError::Overrun { dropped: None | Some(1..) });
    assert!(is_told, "{error:?}");
}

/// A pair whose first end has a small send completion queue that has overrun by 64 sends.
fn overrun_by_sends<D: Device>() -> (End<D>, End<D>) {
    let caps = CAPS.max_send_wr(64);
    let (mut a, mut b) =
        pair_with::<D>(&Plan { caps, cqe: 4, ..Plan::default() }, &Plan::default());
    for id in 0..4 {
        a.recv(100 + id, 0, 8);
        b.recv(200 + id, 0, 8);
    }
    let list: Vec<_> = (0..64).map(|id| SendWr::write_inline(id, b"x", b.remote(id))).collect();
    a.qp.post_send(&list).unwrap();
    let (start, sent) = (Instant::now(), a.sent.key());
    while !is_overrun(&mut a, sent) && start.elapsed() < patience() {
        a.device.pause();
    }
    (a, b)
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
            assert_eq!(b.qp.state(), QpState::RTS, "{capacity} completions are no overrun");
            b.expect_received(&all(ids, S::SUCCESS));
        }
    }
}

fn o01_a_full_queue_takes_one_more_for_each_that_is_polled<D: Device>() {
    const MORE: u64 = 100;
    let narrow = Plan { cqe: 6, ..Plan::default() };
    let (mut a, mut b) = pair_with::<D>(&Plan::default(), &narrow);
    let capacity = u64::from(b.received.capacity());
    (0..capacity).for_each(|id| message(&mut a, &mut b, id));
    let mut buffer = [Wc::default(); 1];
    for id in 0..MORE {
        let End { received, device, .. } = &mut b;
        wait_until(device, "the oldest is there", || received.poll_into(&mut buffer).unwrap() == 1);
        assert_eq!((buffer[0].wr_id(), buffer[0].status()), (id, S::SUCCESS));
        message(&mut a, &mut b, capacity + id);
    }
    assert_eq!(b.qp.state(), QpState::RTS, "{capacity} completions are no overrun");
    b.expect_received(&all(MORE..MORE + capacity, S::SUCCESS));
}

fn o01_sizes_out_of_range_are_refused<D: Device>() {
    let device = D::open();
    let most = device.limits().max_cqe;
    assert!(device.create_cq(0, None).is_err(), "a queue that holds nothing");
    assert!(device.create_cq(most + 1, None).is_err(), "more than the limit");
    let largest = device.create_cq(most, None);
    assert!(largest.is_ok_and(|cq| cq.capacity() >= most), "as many as the limit");
}

fn o02_an_overrun_is_told_when_it_happens_and_names_the_queue<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    for id in 0..u64::from(b.received.capacity()) {
        message(&mut a, &mut b, id);
    }
    assert_eq!(b.take_async(), [], "before it");
    overrun(&mut a, &mut b);
    let it = Element::Cq(b.received.key());
    assert!(overruns(&mut b).iter().all(|named| *named == it), "it and no other");
}

fn o02_an_overrun_by_a_receive_is_told_once<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    overrun(&mut a, &mut b);
    for id in 1000..1010 {
        b.recv(id, 0, 8); // flushed, and dropped as well
    }
    rest(&b.device);
    assert_eq!(overruns(&mut b).len(), 1);
}

fn o02_an_overrun_by_sends_is_told_once<D: Device>() {
    let (mut a, _b) = overrun_by_sends::<D>();
    rest(&a.device);
    assert_eq!(overruns(&mut a).len(), 1);
}

fn o03_what_was_stored_comes_first_then_every_poll_fails<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    let last = overrun(&mut a, &mut b);
    let capacity = b.received.capacity();
    let _whatever_it_says = b.received.resize(64);
    check_stored(drain(&mut b.received), capacity, last);
    let _whatever_it_says = b.received.resize(64);
    assert!(drain(&mut b.received).0.is_empty(), "no size mends it");
}

fn o03_sends_that_were_stored_come_first_then_every_poll_fails<D: Device>() {
    let (mut a, mut b) = overrun_by_sends::<D>();
    check_stored(drain(&mut a.sent), a.sent.capacity(), 63);
    assert_eq!(b.qp.state(), QpState::RTS, "it was not its queue");
    b.expect_nothing();
}

fn o04_the_queue_pair_that_overran_its_queue_goes_to_err<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    overrun(&mut a, &mut b);
    b.expect_state(QpState::ERR);
}

fn o04_every_queue_pair_of_the_queue_goes_to_err<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    let init = QpInit { recv_cq: &b.received, ..small(&b.sent) };
    let mut second = b.device.create_qp(&b.pd, &init).unwrap();
    let third = End::<D>::near(&Plan::default());
    connect(&mut second, third.qp.number());
    let [mut early, fresh] = [(); 2].map(|()| b.device.create_qp(&b.pd, &init).unwrap());
    early.modify(&attr::init(Access::EVERY)).unwrap();
    overrun(&mut a, &mut b);
    for qp in [second, early] {
        wait_until(&b.device, "the other queue pair is in ERR", || qp.state() == QpState::ERR);
    }
    assert_eq!(fresh.state(), QpState::RESET, "no way leads from there to ERR");
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
    let of_it = b.element();
    let mut told = Vec::new();
    wait_for("the queue pair is told of", || {
        told.extend(b.take_async().into_iter().filter(|(_, element)| *element == of_it));
        !told.is_empty()
    });
    rest(&b.device);
    told.extend(b.take_async().into_iter().filter(|(_, element)| *element == of_it));
    assert_eq!(told, [(AsyncEventType::QP_FATAL, of_it)]);
}

fn o04_sends_that_overrun_their_queue_send_the_queue_pair_to_err<D: Device>() {
    let (mut a, _b) = overrun_by_sends::<D>();
    a.expect_state(QpState::ERR);
    a.expect_received(&all(100..104, S::WR_FLUSH_ERR));
}

fn o04_others_do_not_notice<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    let (mut c, mut d) = pair::<D>();
    overrun(&mut a, &mut b);
    for id in 0..20 {
        message(&mut c, &mut d, id);
        d.expect_received(&[(id, S::SUCCESS)]);
    }
    assert_eq!((c.qp.state(), d.qp.state()), (QpState::RTS, QpState::RTS));
    assert_eq!(c.take_async(), [], "events are told to who has the queue");
}

fn o05_the_completion_that_overruns_wakes_who_waits_for_any<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    let key = b.received.key();
    for id in 0..4 * u64::from(b.received.capacity()) + 64 {
        arm(&mut b.received, Notify::Next);
        message(&mut a, &mut b, id);
        b.expect_event(key);
        if is_overrun(&mut b, key) {
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

fn p06_an_empty_slice_returns_zero_of_an_overrun_queue<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    overrun(&mut a, &mut b);
    assert_eq!(b.received.poll_into(&mut []), Ok(0), "with completions waiting");
    drain(&mut b.received);
    assert_eq!(b.received.poll_into(&mut []), Ok(0), "once it fails");
}

fn o07_a_queue_of_all_that_is_outstanding_never_overruns<D: Device>() {
    let device = D::open();
    let caps = CAPS.max_send_wr(4).max_recv_wr(4);
    let (pd, mut cq) = (device.alloc_pd(), device.create_cq(3 * (4 + 4), None).unwrap());
    let init = QpInit { caps, ..small(&cq) };
    let mut qps: Vec<_> = (0..3).map(|_| device.create_qp(&pd, &init).unwrap()).collect();
    let peer = End::<D>::far(&Plan::default());
    for _ in 0..20 {
        for qp in &mut qps {
            connect(qp, peer.qp.number());
            qp.modify(&QpAttr::new().state(QpState::SQD)).unwrap(); // so that nothing is carried out
            for id in 0..4 {
                qp.post_send(&[SendWr::send_inline(id, b"").unsignaled()]).unwrap();
                qp.post_recv(&[RecvWr::new(10 + id, &[])]).unwrap();
            }
        }
        for qp in &mut qps {
            qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
        }
        let flushed = settle(&device, &mut cq, 24);
        assert_eq!(flushed.len(), 24, "every request of every queue pair");
        for qp in &mut qps {
            qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
        }
    }
}
