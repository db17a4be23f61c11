//! Completion queues that ignore overruns (O8).

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/ignoring.rs"));

/// More completions than any of the queues holds.
const MANY: u64 = 64;

/// A pair whose ends have small completion queues that ignore overruns.
fn narrow<D: Device>() -> (End<D>, End<D>) {
    let caps = CAPS.max_send_wr(MANY as u32);
    let plan = Plan { caps, cqe: 4, ignores_overrun: true, ..Plan::with_channel() };
    pair_with(&plan, &plan)
}

/// Sends messages `ids` to `b`, which polls none of their completions.
#[track_caller]
fn messages<D: Device>(a: &mut End<D>, b: &mut End<D>, ids: std::ops::Range<u64>) {
    for id in ids {
        b.recv(id, 0, 8);
        a.send(id);
        a.expect_sent(&[(id, S::SUCCESS)]);
    }
    rest(&b.device);
}

/// Polls an overrun queue: it holds the first of these completions, at least as many as its capacity.
#[track_caller]
fn stored<D: Device>(cq: &mut D::Cq, of: std::ops::Range<u64>) {
    let (least, got) = (u64::from(cq.capacity()), take(cq));
    let count = got.len() as u64;
    assert!((least..of.end - of.start).contains(&count), "{count} of {of:?} were stored");
    assert!(got.iter().map(Wc::wr_id).eq(of.start..of.start + count), "the first ones, in order");
    assert!(got.iter().all(|wc| wc.status() == S::SUCCESS));
}

fn o08_what_finds_no_room_is_dropped_and_nobody_fails<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    messages(&mut a, &mut b, 0..MANY);
    assert_eq!((a.qp.state(), b.qp.state()), (QpState::RTS, QpState::RTS));
    b.expect_async(&[]);
    stored::<D>(&mut b.received, 0..MANY);
    b.expect_silence(); // polling does not fail either
}

fn o08_sends_that_find_no_room_fail_nobody<D: Device>() {
    let (mut a, b) = narrow::<D>();
    complete(&mut a, &b, 0..MANY);
    assert_eq!((a.qp.state(), b.qp.state()), (QpState::RTS, QpState::RTS));
    a.expect_async(&[]);
    stored::<D>(&mut a.sent, 0..MANY);
    a.expect_silence();
}

fn o08_what_comes_when_there_is_room_again_is_stored<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    let capacity = u64::from(b.received.capacity());
    let mut next = 0;
    for _ in 0..3 {
        messages(&mut a, &mut b, next..next + MANY);
        stored::<D>(&mut b.received, next..next + MANY);
        next += MANY;
        messages(&mut a, &mut b, next..next + capacity);
        b.expect_received(&all(next..next + capacity, S::SUCCESS));
        next += capacity;
    }
}

fn o08_dropped_completions_give_their_slots_back<D: Device>() {
    let (mut a, b) = narrow::<D>();
    let slots = u64::from(a.qp.caps().max_send_wr);
    for round in 0..3 {
        complete(&mut a, &b, 0..slots);
        stored::<D>(&mut a.sent, 0..slots);
        let silent = SendWr::write_inline(90, b"x", b.remote(0)).unsignaled();
        for _ in 0..slots {
            assert_eq!(a.try_post(silent), Ok(()), "round {round}");
        }
        let full = a.try_post(silent).map_err(|error| error.why);
        assert_eq!(full, Err(WrError::QueueFull), "nothing covers the unsignaled ones");
        a.to(QpState::RESET);
        a.connect(&b.qp);
    }
}

fn o08_a_dropped_completion_gives_back_every_slot_that_it_covers<D: Device>() {
    let (mut a, b) = narrow::<D>();
    complete(&mut a, &b, 0..MANY);
    let last = MANY + u64::from(a.qp.caps().max_send_wr);
    for id in MANY..last {
        let signaled = SendWr::write_inline(id, b"x", b.remote(0));
        let covered = signaled.unsignaled();
        for wr in [covered, covered, signaled] {
            a.post(wr); // there is a slot, though nothing was polled
        }
        rest(&a.device);
    }
    stored::<D>(&mut a.sent, 0..last);
    a.expect_silence();
}

fn o08_a_receive_that_was_dropped_gives_its_place_back<D: Device>() {
    let (mut a, mut b) = narrow::<D>();
    let places = u64::from(b.qp.caps().max_recv_wr);
    for _ in 0..4 {
        messages(&mut a, &mut b, 0..MANY);
        take(&mut b.received);
        let list = vec![RecvWr::new(1, &[]); places as usize];
        assert_eq!(b.qp.post_recv(&list), Ok(()));
        b.to(QpState::RESET);
        b.connect(&a.qp);
        a.to(QpState::RESET);
        a.connect(&b.qp);
    }
}

fn o08_a_dropped_completion_wakes_who_waits<D: Device>() {
    for (on, count) in [(Notify::Next, 1), (Notify::Solicited, 1), (Notify::Solicited, u16::MAX)] {
        let (mut a, mut b) = narrow::<D>();
        offered(b.received.moderate(count, u16::MAX)); // it is not held back
        messages(&mut a, &mut b, 0..MANY);
        b.expect_no_event();
        arm(&mut b.received, on);
        messages(&mut a, &mut b, MANY..MANY + 1);
        let key = b.received.key();
        b.expect_event(key);
    }
}

fn o08_a_failure_that_is_dropped_ends_its_queue_pair_all_the_same<D: Device>() {
    let (mut a, b) = narrow::<D>();
    complete(&mut a, &b, 0..MANY);
    a.post(SendWr::write_inline(90, b"x", RemoteAddr { rkey: 0, ..b.remote(0) }));
    a.expect_state(QpState::ERR);
    stored::<D>(&mut a.sent, 0..MANY);
    a.send(91);
    a.expect_sent(&[(91, S::WR_FLUSH_ERR)]);
}
