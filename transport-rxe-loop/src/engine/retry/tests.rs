use super::*;
use crate::inside::prelude::*;

#[test]
fn q07_a_wait_ends_in_time_though_an_earlier_alarm_came_for_something_else() {
    let mut fixture = Fixture::new();
    let [mut qp, silent] = [(); 2].map(|()| fixture.qp());
    // 0.27 s: longer than somebody who may be suspended is left alone.
    connect_with(
        &mut qp,
        silent.number(),
        QpAttr::rts().timeout(AckTimeout::from_number(14).unwrap()).retry_cnt(3),
    );
    qp.post_send(&[SendWr::send_inline(1, b"x")]).unwrap();
    fixture.device.engine.alarms.wake_soon(qp.index()).unwrap();
    assert_eq!(fixture.next_wc(), (1, WcStatus::RETRY_EXC_ERR));
}

/// A queue pair that waits for seconds at least, whatever for, with the deadline of its wait.
fn patient(fixture: &Fixture) -> (QueuePair, &'static AtomicU64) {
    let mut qp = fixture.qp();
    let peer = qp.number();
    connect_with(
        &mut qp,
        peer,
        QpAttr::rts()
            .timeout(AckTimeout::from_number(31).unwrap())
            .rnr_retry(6)
            .min_rnr_timer(RnrTimer::from_number(0).unwrap()),
    );
    let deadline = &fixture.slot(&qp).send.deadline;
    (qp, deadline)
}

#[test]
fn q07_a_request_whose_time_is_over_is_tried_once_more_and_then_fails() {
    let fixture = Fixture::new();
    for waits_for in [WaitsFor::Receive, WaitsFor::Answer, WaitsFor::NoPeer] {
        let (qp, deadline) = patient(&fixture);
        let decide = |at| decide(fixture.device.engine, qp.qpn(), Position::new(at), waits_for);
        assert_eq!([decide(7), decide(7)], [Verdict::Wait; 2], "{waits_for:?}");
        assert!(has_begun(fixture.slot(&qp), Position::new(7)));
        sync::store(deadline, 1);
        assert_eq!(decide(7), Verdict::TryAgain, "{waits_for:?}: what came in time counts");
        assert_eq!(decide(7), Verdict::Fail(waits_for.status()));
        assert_eq!(decide(8), Verdict::Wait, "{waits_for:?}: the next begins anew");
    }
}

#[test]
fn q07_who_waits_for_something_else_begins_anew() {
    let fixture = Fixture::new();
    let (qp, deadline) = patient(&fixture);
    let (receive, answer) = (WaitsFor::Receive, WaitsFor::Answer);
    let decide = |waits_for| decide(fixture.device.engine, qp.qpn(), Position::new(7), waits_for);
    for [first, then] in [[receive, answer], [answer, receive]] {
        assert_eq!(decide(first), Verdict::Wait);
        sync::store(deadline, 1);
        assert_eq!(decide(then), Verdict::Wait, "{then:?} after {first:?}");
    }
    // One that goes away is the one that did not answer.
    assert_eq!(decide(answer), Verdict::Wait);
    sync::store(deadline, 1);
    assert_eq!(decide(WaitsFor::NoPeer), Verdict::TryAgain);
}

#[test]
fn q07_receives_are_waited_for_as_often_as_rnr_retry_says_and_answers_once_more_than_retry_cnt() {
    let micros = |time| Some(Duration::from_micros(time));
    for (retry, timer, time) in [
        (0, 0, micros(0)),
        (1, 0, micros(655_360)),
        (1, 1, micros(10)),
        (3, 12, micros(3 * 640)),
        (6, 31, micros(6 * 491_520)),
        (1, u32::MAX, micros(491_520)),
        (u32::MAX, u32::MAX, None),
    ] {
        assert_eq!(for_receive(retry, timer), time, "{retry} times {timer}");
    }
    assert!((0..32).all(|timer| for_receive(7, timer).is_none()));
    assert!((0..8).all(|retry_cnt| for_answer(retry_cnt, 0).is_none()));
    for (retry_cnt, timeout, tries) in
        [(0, 1, 1 << 1), (7, 14, 8 << 14), (7, 31, 8 << 31), (u32::MAX, u32::MAX, 8 << 31)]
    {
        assert_eq!(for_answer(retry_cnt, timeout), Some(Duration::from_nanos(4096 * tries)));
    }
}
