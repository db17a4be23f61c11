//! Requests that wait for their peer, and for how long, beyond what the conformance suite asks: the timers of Q7.

use std::time::{Duration, Instant};

use crate::common::*;

/// Connects two ends: the first sends by `rts`, the second has receivers wait `min_rnr_timer`.
fn connect_two(a: &mut End, b: &mut End, rts: &QpAttr, min_rnr_timer: u8) {
    connect_by(&mut a.qp, &rtr(&b.qp), rts);
    connect_by(
        &mut b.qp,
        &rtr(&a.qp).min_rnr_timer(RnrTimer::from_number(min_rnr_timer).unwrap()),
        &QpAttr::rts(),
    );
}

/// Two ends that are connected so.
fn pair_by(rts: &QpAttr, min_rnr_timer: u8) -> (End, End) {
    let (mut a, mut b) = (End::new(), End::new());
    connect_two(&mut a, &mut b, rts, min_rnr_timer);
    (a, b)
}

#[test]
fn q07_the_rnr_timer_is_the_responders() {
    // It is 0 for the longest, and that of the requester the other one.
    let rts = QpAttr::rts().rnr_retry(6);
    for theirs in [1, 0] {
        let (mut a, mut b) = (End::new(), End::new());
        connect_by(
            &mut a.qp,
            &rtr(&b.qp).min_rnr_timer(RnrTimer::from_number(1 - theirs).unwrap()),
            &rts,
        );
        connect_by(
            &mut b.qp,
            &rtr(&a.qp).min_rnr_timer(RnrTimer::from_number(theirs).unwrap()),
            &rts,
        );
        let start = Instant::now();
        a.send(1, 0, 8);
        if theirs == 1 {
            a.expect(&[(1, S::RNR_RETRY_EXC_ERR)]);
            continue;
        }
        let_short_times_pass();
        b.recv(2, 0, 8);
        let status = settle(&mut a.cq, 1)[0].status();
        // It waits six times 655 ms, for which the machine may have been held up.
        assert!(status == S::SUCCESS || start.elapsed() > Duration::from_secs(3), "{status}");
    }
}

/// Changes in SQD what was in force when a wait began.
fn change(a: &mut End, attr: QpAttr) {
    a.to(QpState::SQD);
    a.qp.modify(&attr.state(QpState::SQD)).unwrap();
}

#[test]
fn q07_a_wait_has_the_attributes_of_when_it_began() {
    // The next one has others.
    let (mut a, mut b) = unanswered(&QpAttr::rts().timeout(AckTimeout::from_number(31).unwrap())); // hours
    a.send(1, 0, 8);
    b.qp.modify(&QpAttr::init(&Port::new(1), Access::empty())).unwrap();
    b.recv(2, 0, 8);
    b.qp.modify(&rtr(&a.qp)).unwrap();
    a.expect(&[(1, S::SUCCESS)]);
    b.to(QpState::RESET);
    change(&mut a, QpAttr::new().timeout(AckTimeout::from_number(1).unwrap()));
    a.to(QpState::RTS);
    a.send(3, 0, 8);
    a.expect(&[(3, S::RETRY_EXC_ERR)]);
    // Who waits for a receive is woken by it, whatever rnr_retry has become.
    let (mut a, mut b) = pair_by(&patient().rnr_retry(7), 0);
    a.send(1, 0, 8);
    change(&mut a, QpAttr::new().rnr_retry(0));
    b.recv(2, 0, 8);
    b.expect(&[(2, S::SUCCESS)]);
    a.expect(&[(1, S::SUCCESS)]);
    // A wait without a timeout ends with its peer, whatever the timeout has become.
    let (mut a, b) = unanswered(&patient());
    a.send(1, 0, 8);
    change(&mut a, QpAttr::new().timeout(AckTimeout::from_number(31).unwrap()));
    drop(b);
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_peer_that_has_failed_and_comes_back_without_a_receive() {
    let (mut a, mut b) = pair_by(&patient().rnr_retry(1), 1);
    b.to(QpState::ERR);
    a.send(1, 0, 8);
    let_short_times_pass();
    a.expect_nothing();
    b.to(QpState::RESET);
    connect_by(
        &mut b.qp,
        &rtr(&a.qp).min_rnr_timer(RnrTimer::from_number(1).unwrap()),
        &QpAttr::rts(),
    );
    a.expect(&[(1, S::RNR_RETRY_EXC_ERR)]);
}

#[test]
fn q02_leaving_rts_ends_a_wait_and_its_alarm_harms_nobody() {
    // Long enough to leave before, as a rule; short enough to see the alarm.
    let rts = QpAttr::rts().timeout(AckTimeout::from_number(8).unwrap()).retry_cnt(7);
    for _ in 0..20 {
        let (mut a, _silent) = unanswered(&rts);
        a.send(1, 0, 8);
        a.to(QpState::ERR);
        let first = settle(&mut a.cq, 1)[0].status();
        assert!([S::WR_FLUSH_ERR, S::RETRY_EXC_ERR].contains(&first));

        let (mut b, _silent) = unanswered(&rts);
        b.send(1, 0, 8);
        b.to(QpState::RESET);
        take(&mut b.cq);
        let mut c = End::new();
        connect(&mut b.qp, &mut c.qp);
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
    let (mut a, _b) =
        unanswered(&QpAttr::rts().timeout(AckTimeout::from_number(12).unwrap()).retry_cnt(7));
    a.send(1, 0, 8);
    // It has failed already where this thread was held up.
    let _ = a.qp.modify(&QpAttr::new().state(QpState::SQD));
    a.send(2, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR), (2, S::WR_FLUSH_ERR)]);
}

#[test]
fn q07_two_that_wait_in_a_chain() {
    let (mut a, mut b) = (End::new(), End::new());
    let short = impatient().timeout(AckTimeout::from_number(10).unwrap());
    connect_by(&mut a.qp, &rtr(&b.qp), &short.rnr_retry(7));
    connect_by(&mut b.qp, &rtr(&a.qp).min_rnr_timer(RnrTimer::from_number(1).unwrap()), &short);
    a.send(1, 0, 8); // for a receive of b
    b.send(2, 0, 8); // for a receive of a
    b.expect(&[(2, S::RNR_RETRY_EXC_ERR)]);
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_receive_at_the_last_moment_is_used_or_stays() {
    let (mut a, mut b) = (End::new(), End::new());
    for round in 0..2000u32 {
        connect_two(&mut a, &mut b, &QpAttr::rts().rnr_retry(1), 1);
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
                assert_eq!((status, b.state()), (S::RNR_RETRY_EXC_ERR, QpState::RTS));
                b.expect_nothing();
                b.to(QpState::ERR);
                b.expect(&[(2, S::WR_FLUSH_ERR)]);
            }
        }
        a.to(QpState::RESET);
        b.to(QpState::RESET);
    }
}
