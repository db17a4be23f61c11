//! Requests that wait for their peer, and for how long: the timers of Q7.

use std::time::{Duration, Instant};

use crate::common::{
    End, S, connect, connect_by, impatient, let_short_times_pass, patient, settle, take, unanswered,
};
use cq_core::setup::{Endpoint, Port};
use transport_rxe_loop::{Access, QpAttr, QpState};

/// Two ends, both ready: the first sends by `rts`, the second has receivers wait `min_rnr_timer`.
fn pair_by(rts: &QpAttr, min_rnr_timer: u8) -> (End, End) {
    let (mut a, mut b) = (End::new(), End::new());
    connect_by(&mut a.qp, &QpAttr::rtr(&Port::new(1), &Endpoint::new(b.qp.number())), rts);
    let rtr =
        QpAttr::rtr(&Port::new(1), &Endpoint::new(a.qp.number())).min_rnr_timer(min_rnr_timer);
    connect_by(&mut b.qp, &rtr, &QpAttr::rts());
    (a, b)
}

/// DeviceOptions not to answer: from new, to where nobody answers.
const SILENCES: [fn(&mut End); 4] = [
    |_| {},
    |b| b.qp.modify(&QpAttr::init(&Port::new(1), Access::empty())).unwrap(),
    |b| {
        b.qp.modify(&QpAttr::init(&Port::new(1), Access::empty())).unwrap();
        b.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
    },
    |b| b.qp.connect_to(b.qp.number()).unwrap(),
];

/// An end that sends by `rts` to another that does not answer.
fn silent(rts: &QpAttr, silence: fn(&mut End)) -> (End, End) {
    let (a, mut b) = unanswered(rts);
    silence(&mut b);
    (a, b)
}

/// Makes a peer answer that did not.
fn answer(b: &mut End, a: &End) {
    b.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    b.qp.connect_to(a.qp.number()).unwrap();
}

/// One request has succeeded: unless it was held up since `start`, for nearly the 6 times 655 ms that it
/// may wait for a receive at most.
fn expect_success(a: &mut End, start: Instant) -> bool {
    let status = settle(&mut a.cq, 1)[0].status();
    assert!(status == S::SUCCESS || start.elapsed() > Duration::from_secs(3), "{status}");
    status == S::SUCCESS
}

#[test]
fn q07_the_rnr_timer_is_the_responders() {
    let (mut a, mut b) = (End::new(), End::new());
    let (long, short) = (0, 1);
    for (theirs, receive) in [(short, false), (long, true)] {
        let mine = if receive { short } else { long };
        let (start, rts) = (Instant::now(), QpAttr::rts().rnr_retry(6));
        connect_by(
            &mut a.qp,
            &QpAttr::rtr(&Port::new(1), &Endpoint::new(b.qp.number())).min_rnr_timer(mine),
            &rts,
        );
        connect_by(
            &mut b.qp,
            &QpAttr::rtr(&Port::new(1), &Endpoint::new(a.qp.number())).min_rnr_timer(theirs),
            &rts,
        );
        a.send(1, 0, 8);
        if receive {
            let_short_times_pass();
            b.recv(2, 0, 8);
            expect_success(&mut a, start);
        } else {
            a.expect(&[(1, S::RNR_RETRY_EXC_ERR)]);
        }
        for end in [&mut a, &mut b] {
            end.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        }
    }
}

#[test]
fn q07_rnr_retry_7_outlasts_every_timer() {
    let (mut a, mut b) = pair_by(&impatient().rnr_retry(7), 1);
    a.send(1, 0, 8);
    let_short_times_pass();
    a.expect_nothing();
    b.recv(2, 0, 8);
    a.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q07_every_request_has_its_own_retries() {
    let (mut a, mut b) = pair_by(&QpAttr::rts().rnr_retry(6), 0);
    for wr_id in 0..20 {
        let start = Instant::now();
        a.send(wr_id, 0, 8);
        b.recv(wr_id, 0, 8);
        if !expect_success(&mut a, start) {
            return;
        }
    }
    b.qp.modify(&QpAttr::new().min_rnr_timer(1)).unwrap();
    a.send(30, 0, 8);
    a.expect(&[(30, S::RNR_RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_wait_has_the_attributes_of_when_it_began() {
    let (mut a, mut b) = unanswered(&QpAttr::rts().timeout(31)); // hours
    a.send(1, 0, 8);
    b.qp.modify(&QpAttr::init(&Port::new(1), Access::empty())).unwrap();
    b.recv(2, 0, 8);
    b.qp.modify(&QpAttr::rtr(&Port::new(1), &Endpoint::new(a.qp.number()))).unwrap();
    a.expect(&[(1, S::SUCCESS)]);
    b.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    for attr in
        [QpAttr::to(QpState::SQD), QpAttr::to(QpState::SQD).timeout(1), QpAttr::to(QpState::RTS)]
    {
        a.qp.modify(&attr).unwrap();
    }
    a.send(3, 0, 8);
    a.expect(&[(3, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_who_waits_for_a_receive_is_woken_by_it_whatever_rnr_retry_has_become() {
    let (mut a, mut b) = pair_by(&patient().rnr_retry(7), 0);
    a.send(1, 0, 8);
    for attr in [QpAttr::to(QpState::SQD), QpAttr::to(QpState::SQD).rnr_retry(0)] {
        a.qp.modify(&attr).unwrap();
    }
    b.recv(2, 0, 8);
    b.expect(&[(2, S::SUCCESS)]);
    a.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q07_a_peer_that_does_not_answer_in_time() {
    for retry_cnt in [0, 7] {
        let (mut a, mut b) = unanswered(&impatient().retry_cnt(retry_cnt));
        a.send(1, 0, 8);
        a.send(2, 0, 8);
        a.expect(&[(1, S::RETRY_EXC_ERR), (2, S::WR_FLUSH_ERR)]);
        assert_eq!((a.qp.state().unwrap(), b.qp.state().unwrap()), (QpState::ERR, QpState::RESET));
        b.expect_nothing();
    }
}

#[test]
fn q07_a_peer_that_answers_in_time_or_is_waited_for_without_end() {
    // The one takes hours.
    for rts in [QpAttr::rts().timeout(31), impatient().timeout(0).rnr_retry(7)] {
        for silence in SILENCES {
            let (mut a, mut b) = silent(&rts, silence);
            a.send(1, 0, 8);
            let_short_times_pass();
            a.expect_nothing();
            answer(&mut b, &a);
            b.recv(2, 0, 8);
            a.expect(&[(1, S::SUCCESS)]);
            b.expect(&[(2, S::SUCCESS)]);
        }
    }
}

/// Requests whose peer goes away: before they are posted, while they wait for a receive, and for an answer.
fn widows(rts: &QpAttr) -> Vec<End> {
    let (mut posts_late, b) = pair_by(rts, 0);
    b.qp.destroy();
    posts_late.send(1, 0, 8);
    let (mut waits_for_receive, b) = pair_by(rts, 0);
    waits_for_receive.send(1, 0, 8);
    b.qp.destroy();
    let wait_for_answers = SILENCES.map(|silence| {
        let (mut waits_for_answer, b) = silent(rts, silence);
        waits_for_answer.send(1, 0, 8);
        b.qp.destroy();
        waits_for_answer
    });
    [posts_late, waits_for_receive].into_iter().chain(wait_for_answers).collect()
}

#[test]
fn q07_a_peer_that_is_gone_ends_what_would_wait_for_ever() {
    for mut widow in widows(&patient()) {
        widow.expect(&[(1, S::RETRY_EXC_ERR)]);
    }
}

#[test]
fn q07_a_peer_that_is_gone_does_not_answer_in_time() {
    for mut widow in widows(&impatient().rnr_retry(7)) {
        widow.expect(&[(1, S::RETRY_EXC_ERR)]);
    }
    let mut widows = widows(&QpAttr::rts().timeout(31)); // hours
    let_short_times_pass();
    for widow in &mut widows {
        widow.expect_nothing();
        widow.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
        widow.expect(&[(1, S::WR_FLUSH_ERR)]);
    }
}

#[test]
fn q07_a_peer_that_is_gone_ends_a_wait_that_began_without_a_timeout() {
    let (mut a, b) = unanswered(&patient());
    a.send(1, 0, 8);
    for attr in [QpAttr::to(QpState::SQD), QpAttr::to(QpState::SQD).timeout(31)] {
        a.qp.modify(&attr).unwrap();
    }
    b.qp.destroy();
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_peer_that_has_failed_and_comes_back_without_a_receive() {
    let (mut a, mut b) = pair_by(&patient().rnr_retry(1), 1);
    b.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
    a.send(1, 0, 8);
    let_short_times_pass();
    a.expect_nothing();
    b.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    let rtr = QpAttr::rtr(&Port::new(1), &Endpoint::new(a.qp.number())).min_rnr_timer(1);
    connect_by(&mut b.qp, &rtr, &QpAttr::rts());
    a.expect(&[(1, S::RNR_RETRY_EXC_ERR)]);
}

#[test]
fn q02_leaving_rts_ends_a_wait_and_its_alarm_harms_nobody() {
    // Long enough to leave before, as a rule; short enough to see the alarm.
    let rts = QpAttr::rts().timeout(8).retry_cnt(7);
    for _ in 0..20 {
        let (mut a, _silent) = unanswered(&rts);
        a.send(1, 0, 8);
        a.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
        let first = settle(&mut a.cq, 1)[0].status();
        assert!([S::WR_FLUSH_ERR, S::RETRY_EXC_ERR].contains(&first));

        let (mut b, _silent) = unanswered(&rts);
        b.send(1, 0, 8);
        b.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        take(&mut b.cq);
        let mut c = End::new();
        connect(&mut b, &mut c);
        b.send(2, 0, 8); // waits for its receive without end

        let (mut d, _silent) = unanswered(&rts);
        d.send(1, 0, 8);
        d.qp.destroy();

        let_short_times_pass();
        a.expect_nothing();
        b.expect_nothing();
        c.recv(3, 0, 8);
        b.expect(&[(2, S::SUCCESS)]);
    }
}

#[test]
fn q01_a_request_whose_time_is_up_in_sqd_fails_and_what_is_behind_it_is_flushed() {
    let (mut a, _b) = unanswered(&QpAttr::rts().timeout(12).retry_cnt(7));
    a.send(1, 0, 8);
    // It has failed already where this thread was held up.
    let _ = a.qp.modify(&QpAttr::to(QpState::SQD));
    a.send(2, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR), (2, S::WR_FLUSH_ERR)]);
}

#[test]
fn q07_two_that_wait_in_a_chain() {
    let (mut a, mut b, c) = (End::new(), End::new(), End::new());
    let short = impatient().timeout(10);
    connect_by(
        &mut a.qp,
        &QpAttr::rtr(&Port::new(1), &Endpoint::new(b.qp.number())),
        &short.rnr_retry(7),
    );
    connect_by(&mut b.qp, &QpAttr::rtr(&Port::new(1), &Endpoint::new(a.qp.number())), &short);
    b.qp.modify(&QpAttr::new().min_rnr_timer(1)).unwrap();
    a.send(1, 0, 8); // for a receive of b
    b.send(2, 0, 8); // for a receive of a
    b.expect(&[(2, S::RNR_RETRY_EXC_ERR)]);
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
    drop(c);
}

#[test]
fn q07_a_receive_at_the_last_moment_is_used_or_stays() {
    let (mut a, mut b) = (End::new(), End::new());
    for round in 0..2000u32 {
        connect_by(
            &mut a.qp,
            &QpAttr::rtr(&Port::new(1), &Endpoint::new(b.qp.number())),
            &QpAttr::rts().rnr_retry(1),
        );
        connect_by(
            &mut b.qp,
            &QpAttr::rtr(&Port::new(1), &Endpoint::new(a.qp.number())).min_rnr_timer(1),
            &QpAttr::rts(),
        );
        a.send(1, 0, 8);
        for _ in 0..round % 500 * 10 {
            std::hint::spin_loop();
        }
        b.recv(2, 0, 8);
        match settle(&mut a.cq, 1)[0].status() {
            S::SUCCESS => {
                b.expect(&[(2, S::SUCCESS)]);
            }
            status => {
                assert_eq!((status, b.qp.state().unwrap()), (S::RNR_RETRY_EXC_ERR, QpState::RTS));
                b.expect_nothing();
                b.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
                b.expect(&[(2, S::WR_FLUSH_ERR)]);
            }
        }
        for end in [&mut a, &mut b] {
            end.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        }
    }
}
