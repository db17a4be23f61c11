//! Faults on demand, one by one: what each does to both ends, and what it leaves alone.

use std::time::{Duration, Instant};

use crate::common::windows::Opening;
use crate::common::*;
use cq_verbs::async_event::AsyncEventType as Event;
use transport_rxe_loop::{Faults, When};

/// Longer than any test takes.
const FOREVER: Duration = Duration::from_secs(3600);

/// Two ends in a device where this goes wrong, of which the first sends by `rts`.
fn pair_by(faults: Faults, rts: &QpAttr) -> (End, End) {
    let context = faulty(faults);
    let [mut a, mut b] = [(); 2].map(|()| End::on(&context, QpType::RC, CAPS));
    connect_by(&mut a.qp, &rtr(&b.qp), rts);
    let init = QpAttr::init(&Port::new(1), ALL);
    for attr in [init, rtr(&a.qp).min_rnr_timer(RnrTimer::from_number(1).unwrap()), *rts] {
        b.qp.modify(&attr).unwrap();
    }
    (a, b)
}

fn pair(faults: Faults) -> (End, End) {
    pair_by(faults, &patient())
}

fn injected(end: &End) -> String {
    end.context.injected().unwrap().to_string()
}

fn faults() -> Faults {
    Faults::seeded(1)
}

/// A request that the peer has a receive for, or needs none.
type Request = for<'a> fn(&'a End) -> SendWr<'a>;

const SEND: Request = |_| SendWr::send_inline(2, b"message!");
const WRITE: Request = |b| SendWr::write_inline(2, b"message!", b.region.remote(0).unwrap());
const WRITE_IMM: Request = |b| WRITE(b).with_imm([1; 4]);

/// What comes of a request that fails so: at its peer's receive, of what is reported there, and to its state.
#[track_caller]
fn expect(request: Request, status: S, theirs: Option<S>, event: Option<Event>) {
    let (mut a, mut b) = pair(faults().fail(When::nth(2), status));
    (10..13).for_each(|wr_id| b.recv(wr_id, 64, 8));
    a.to(QpState::SQD);
    [SEND(&b), request(&b), SEND(&b)].into_iter().for_each(|wr| a.post(wr));
    a.to(QpState::RTS);
    a.expect(&[(2, S::SUCCESS), (2, status), (2, S::WR_FLUSH_ERR)]);
    assert_eq!((a.state(), b.bytes(0, 8)), (QpState::ERR, vec![0; 8]));
    let fails = theirs.is_some() || event.is_some();
    let mut wanted = vec![(10, S::SUCCESS)];
    wanted.extend(theirs.map(|theirs| (11, theirs)));
    let flushed = if fails { 10 + wanted.len() as u64..13 } else { 13..13 };
    wanted.extend(all(flushed, S::WR_FLUSH_ERR));
    b.expect(&wanted);
    assert_eq!(b.state(), if fails { QpState::ERR } else { QpState::RTS });
    let reported: Vec<_> = reports(&mut a.context).iter().map(|report| report.event_type).collect();
    assert_eq!(reported, Vec::from_iter(event));
    assert_eq!(injected(&a), "seed 1, 1 failed");
}

#[test]
fn q07_a_failure_of_its_own_leaves_the_peer_alone() {
    // The last is a number that nobody knows (C3).
    let statuses = [S::LOC_PROT_ERR, S::RETRY_EXC_ERR, S::RNR_RETRY_EXC_ERR, S(0xdead_beef)];
    for request in [SEND, WRITE, WRITE_IMM] {
        statuses.into_iter().for_each(|status| expect(request, status, None, None));
    }
}

#[test]
fn q07_a_failure_that_the_peer_has_a_part_in_fails_both() {
    expect(SEND, S::REM_INV_REQ_ERR, Some(S::LOC_LEN_ERR), None);
    expect(SEND, S::REM_OP_ERR, Some(S::LOC_PROT_ERR), None);
    expect(SEND, S::REM_ACCESS_ERR, None, Some(Event::QP_ACCESS_ERR));
    expect(WRITE_IMM, S::REM_ACCESS_ERR, Some(S::LOC_ACCESS_ERR), None);
    expect(WRITE_IMM, S::REM_INV_REQ_ERR, None, Some(Event::QP_REQ_ERR));
    expect(WRITE, S::REM_ACCESS_ERR, None, Some(Event::QP_ACCESS_ERR));
    expect(WRITE, S::REM_INV_REQ_ERR, None, Some(Event::QP_REQ_ERR));
    expect(WRITE, S::REM_OP_ERR, None, Some(Event::QP_REQ_ERR));
}

#[test]
fn q07_a_peer_that_does_not_listen_has_no_part_in_a_failure() {
    let faults = faults().fail(When::nth(1), S::REM_ACCESS_ERR);
    let (mut a, mut b) = pair_by(faults, &impatient());
    b.to(QpState::RESET);
    b.qp.connect_to(b.qp.number()).unwrap();
    a.post(WRITE(&b));
    a.expect(&[(2, S::RETRY_EXC_ERR)]);
    assert_eq!((b.state(), reports(&mut a.context)), (QpState::RTS, vec![]));
}

#[test]
fn c08_an_unsignaled_request_completes_when_it_fails() {
    let (mut a, b) = pair(faults().fail(When::nth(2), S::FATAL_ERR));
    (0..3).for_each(|_| a.post(WRITE(&b).unsignaled()));
    a.expect(&[(2, S::FATAL_ERR), (2, S::WR_FLUSH_ERR)]);
}

#[test]
fn q07_a_failure_of_a_receive_waits_for_it() {
    let (mut a, mut b) = pair(faults().fail(When::nth(1), S::REM_OP_ERR));
    a.post(SEND(&b));
    a.expect_nothing();
    b.recv(1, 0, 8);
    a.expect(&[(2, S::REM_OP_ERR)]);
    b.expect(&[(1, S::LOC_PROT_ERR)]);
}

/// What arrives of "before" where "after!" is written over it once it was posted, and before it completed.
fn written_over(inline: bool) -> Vec<u8> {
    /// Far longer than it takes to write over it.
    const LATE: Duration = Duration::from_millis(50);
    loop {
        let (mut a, mut b) = pair(faults().delay(When::always(), LATE));
        b.recv(1, 0, 6);
        a.region.write(0, b"before").unwrap();
        let start = Instant::now();
        if inline {
            a.post(SendWr::send_inline(2, b"before"));
        } else {
            a.send(2, 0, 6);
        }
        a.region.write(0, b"after!").unwrap();
        let in_time = start.elapsed() < LATE;
        a.expect(&[(2, S::SUCCESS)]);
        if in_time {
            return b.bytes(0, 6);
        }
    }
}

#[test]
fn q06_a_buffer_that_is_reused_too_early_is_caught() {
    assert_eq!(written_over(false), b"after!");
    assert_eq!(written_over(true), b"before", "inline bytes are free on return");
}

#[test]
fn q02_what_is_deferred_is_flushed_dropped_and_drained_like_the_rest() {
    let (mut a, b) = pair(faults().delay(When::nth(2), FOREVER));
    (0..3).for_each(|_| a.post(WRITE(&b)));
    a.expect(&[(2, S::SUCCESS)]);
    a.qp.modify(&QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true)).unwrap();
    assert_eq!(reports(&mut a.context)[0].event_type, Event::SQ_DRAINED, "it is not begun");
    a.to(QpState::RTS);
    a.expect_nothing();
    a.to(QpState::ERR);
    a.expect(&[(2, S::WR_FLUSH_ERR); 2]);

    let (mut a, b) = pair(faults().delay(When::nth(1), FOREVER));
    a.post(WRITE(&b));
    a.to(QpState::RESET);
    a.qp.connect_to(b.qp.number()).unwrap();
    a.post(WRITE(&b));
    a.expect(&[(2, S::SUCCESS)]);
    a.qp.destroy();
}

#[test]
fn q07_a_receive_that_is_not_there_in_time_fails_the_requester_only() {
    for (rnr_retry, request) in [(0, SEND), (1, WRITE_IMM), (2, SEND), (0, WRITE_IMM)] {
        let rts = patient().rnr_retry(rnr_retry);
        let (mut a, mut b) = pair_by(faults().starve(When::nth(1), FOREVER), &rts);
        b.recv(1, 0, 8);
        a.post(WRITE(&b)); // takes none, and does not count
        a.post(request(&b));
        a.expect(&[(2, S::SUCCESS), (2, S::RNR_RETRY_EXC_ERR)]);
        b.expect_nothing();
        assert_eq!(b.state(), QpState::RTS);
    }
}

#[test]
fn q07_a_timer_that_began_in_a_storm_ends_after_it() {
    let (rts, storm) = (patient().rnr_retry(1), Duration::from_millis(5));
    let (mut a, mut b) = pair_by(faults().starve(When::nth(1), storm), &rts);
    // 10 ms from the first try on, and nothing is posted. The second request has the first one tried again.
    b.qp.modify(&QpAttr::new().min_rnr_timer(RnrTimer::from_number(20).unwrap())).unwrap();
    (0..2).for_each(|_| a.post(SEND(&b)));
    a.expect(&[(2, S::RNR_RETRY_EXC_ERR), (2, S::WR_FLUSH_ERR)]);
}

#[test]
fn q07_what_is_not_there_for_a_while_is_waited_for() {
    // A peer no longer than it takes, whether the timers would run for hours or for ever.
    let (while_it_is, hours) =
        (Duration::from_millis(2), QpAttr::rts().timeout(AckTimeout::from_number(31).unwrap()));
    for (faults, rts, injects) in [
        (faults().starve(When::nth(1), while_it_is), patient(), "seed 1, 1 starved"),
        (faults().stop(When::nth(1), while_it_is), hours, "seed 1, 1 stopped"),
        (
            faults().stop(When::nth(1), while_it_is),
            hours.timeout(AckTimeout::UNLIMITED),
            "seed 1, 1 stopped",
        ),
    ] {
        let (mut a, mut b) = pair_by(faults, &rts);
        b.recv(1, 0, 8);
        a.post(SEND(&b));
        a.expect(&[(2, S::SUCCESS)]);
        b.expect(&[(1, S::SUCCESS)]);
        assert_eq!(injected(&a), injects);
    }
}

#[test]
fn q07_a_peer_that_stops_for_long_does_nothing_and_ends_requests() {
    let (mut a, mut b) = pair_by(faults().stop(When::nth(1), FOREVER), &impatient());
    a.post(WRITE(&b));
    a.expect(&[(2, S::RETRY_EXC_ERR)]);
    assert_eq!(b.state(), QpState::RTS);
    let to = a.region.remote(0).unwrap();
    b.post(SendWr::write_inline(1, b"x", to));
    let_short_times_pass();
    b.expect_nothing();
    b.to(QpState::ERR);
    b.expect(&[(1, S::WR_FLUSH_ERR)]);
}

#[test]
fn q09_a_shared_receive_fails_and_the_others_stay() {
    let faults = faults().starve(When::nth(1), Duration::from_millis(1));
    let (mut a, mut b) = pair(faults.fail(When::nth(1), S::REM_OP_ERR));
    let srq = &mut b.pd.create_srq(&SrqInit::new(4)).unwrap();
    b.qp = b.pd.qp(&b.cq).caps(CAPS).srq(&*srq).create().unwrap();
    a.to(QpState::RESET);
    connect(&mut a.qp, &mut b.qp);
    let sges = [b.region.sge(..64).unwrap()];
    srq.post_recv(&[10, 11].map(|wr_id| RecvWr::new(wr_id, &sges))).unwrap();
    a.post(SEND(&b));
    a.expect(&[(2, S::REM_OP_ERR)]);
    b.expect(&[(10, S::LOC_PROT_ERR)]);
    assert_eq!((a.state(), b.state()), (QpState::ERR, QpState::ERR));
    assert_eq!(injected(&a), "seed 1, 1 failed, 1 starved");
}

#[test]
fn o03_a_queue_overruns_when_it_is_told_to() {
    let (mut a, mut b) = pair(faults().overrun(When::nth(3)));
    (0..4).for_each(|_| a.post(WRITE(&b)));
    assert_eq!(b.state(), QpState::RTS);
    assert_eq!(a.state(), QpState::ERR);
    let mut buffer = [Wc::default(); 8];
    assert_eq!(a.cq.poll_into(&mut buffer), Ok(2), "what was stored comes first");
    for _ in 0..2 {
        let polled = a.cq.poll_into(&mut buffer);
        assert!(matches!(polled, Err(PollError::Overrun { dropped: Some(1..) })), "{polled:?}");
    }
    let events = reports(&mut a.context);
    assert_eq!(events, [cq_err(&a.cq), fatal(&a.qp)]);
    b.expect_nothing();
}

#[test]
fn n05_an_event_comes_for_nothing() {
    let context = faulty(faults().spurious(When::nth(2)));
    let mut channel = context.create_channel().unwrap();
    let queues = [(); 2].map(|()| context.cq(8).channel(&channel).create().unwrap());
    let mut a = End::on(&context, QpType::RC, CAPS);
    a.qp = a.pd.qp(&queues[0]).caps(CAPS).recv_cq(&queues[1]).create().unwrap();
    a.qp.connect_to(a.qp.number()).unwrap();
    for wanted in [vec![], queues.iter().map(Arm::key).collect(), vec![]] {
        a.post(SendWr::write_inline(2, &[], NOWHERE).unsignaled());
        let named: Vec<_> = std::iter::from_fn(|| channel.take_event().unwrap()).collect();
        assert_eq!(named, wanted, "nothing was armed");
    }
}

/// Where nobody answers, what the peer would not have taken is lost, and the sender alone fails.
const UNRELIABLE: [QpType; 2] = [QpType::UC, QpType::UD];

#[test]
fn q07_a_message_is_lost_that_finds_no_receive_or_a_peer_that_has_stopped() {
    for (faults, received) in [
        (faults().starve(When::nth(1), FOREVER), 10..12),
        (faults().stop(When::nth(1), FOREVER), 10..10),
    ] {
        for kind in UNRELIABLE {
            let (mut a, mut b) = pair_on(&faulty(faults.clone()), kind);
            (10..12).for_each(|wr_id| b.recv(wr_id, 0, 64));
            for wr_id in 1..4 {
                a.post_to(b.qp.number(), &[SendWr::send_inline(wr_id, b"message!")]);
            }
            a.expect(&all(1..4, S::SUCCESS));
            b.expect(&all(received.clone(), S::SUCCESS));
        }
    }
}

#[test]
fn q01_a_failure_of_the_sender_stops_its_send_queue_only() {
    for kind in UNRELIABLE {
        // The second has a status that only an answer could tell.
        let faults =
            faults().fail(When::nth(1), S::LOC_QP_OP_ERR).fail(When::nth(2), S::REM_ACCESS_ERR);
        let (mut a, mut b) = pair_on(&faulty(faults), kind);
        b.recv(10, 0, 64);
        for status in [S::LOC_QP_OP_ERR, S::REM_ACCESS_ERR] {
            a.post_to(b.qp.number(), &[SendWr::send_inline(1, b"message!")]);
            a.expect(&[(1, status)]);
            assert_eq!(a.state(), QpState::SQE);
            a.qp.modify(&QpAttr::new().state(QpState::RTS).cur_state(QpState::SQE)).unwrap();
        }
        assert_eq!(b.state(), QpState::RTS);
        a.post_to(b.qp.number(), &[SendWr::send_inline(2, b"message!")]);
        a.expect(&[(2, S::SUCCESS)]);
        b.expect(&[(10, S::SUCCESS)]);
    }
}

#[test]
fn q06_what_needs_no_peer_does_not_wait_for_one() {
    let tiny = Duration::from_micros(10);
    let faults = faults().stop(When::nth(1), FOREVER).delay(When::nth(1), tiny);
    let (mut a, b) = pair_on(&faulty(faults), QpType::RC);
    let opening = Opening::of(&a);
    a.post(SendWr::bind_window(1, opening.bind(Access::REMOTE_WRITE)));
    a.expect(&[(1, S::SUCCESS)]);
    assert_eq!(injected(&a), "seed 1, 1 delayed");
    a.post(SendWr::write_inline(2, b"x", b.region.remote(0).unwrap()));
    a.expect_nothing();
    a.to(QpState::ERR);
    a.expect(&[(2, S::WR_FLUSH_ERR)]);
}

#[test]
fn a_device_without_faults_has_injected_none() {
    assert_eq!(open().injected(), None);
}
