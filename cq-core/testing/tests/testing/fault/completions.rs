//! Completions that fail, come late, in another order, or not at all (C4, C8, C10, O3).

use cq_testing::fault::{FaultInjector, Faults, VENDOR_ERR, When};

use super::*;

const BROKEN: PollError = PollError::Device(5);

#[test]
fn q02_q07_c11_the_nth_fails_and_its_queue_pair_is_flushed() {
    let lost = Wc::new(1, WcStatus::REM_ACCESS_ERR, 5);
    let own = Wc::new(1, RETRY, 5);
    let flushed = Script::new(KEY).on_poll(Ok(&[own, wc(2, 6), wc(3, 6), wc(4, 7), wc(5, 7)]));
    let first = || faults().fail(When::nth(1), RETRY);
    let odd = WcStatus(0x8000_0007);
    check::<8>(&[
        (
            four(),
            first(),
            &["1 RETRY_EXC_ERR, 2, 3 WR_FLUSH_ERR, 4", "seed 1, 1 failed, 1 flushed"],
        ),
        // A failure may stand alone and have any number (C3).
        (
            four(),
            faults().fail(When::nth(1), odd).failing_alone(),
            &["1 WcStatus(2147483655), 2, 3, 4", "seed 1, 1 failed"],
        ),
        // A failure of the device is not covered up.
        (
            Script::new(KEY).on_poll(Ok(&[lost, wc(2, 6)])),
            faults().fail(When::always().of_qp(5), RETRY),
            &["1 REM_ACCESS_ERR, 2", "seed 1"],
        ),
        // The nth of a queue pair is counted by itself.
        (
            four(),
            faults().fail(When::nth(2).of_qp(6), RETRY),
            &["1, 2, 3, 4 RETRY_EXC_ERR", "seed 1, 1 failed"],
        ),
        // What failed by itself or comes flushed is no occasion to fail (C4).
        (
            flushed,
            faults()
                .fail(When::nth(1), WcStatus::LOC_LEN_ERR)
                .fail(When::nth(2), WcStatus::REM_OP_ERR),
            &[
                "1 RETRY_EXC_ERR, 2 LOC_LEN_ERR, 3 WR_FLUSH_ERR, 4 REM_OP_ERR, 5 WR_FLUSH_ERR",
                "seed 1, 2 failed, 2 flushed",
            ],
        ),
        // Of several rules the first whose time has come wins, and all count.
        (
            three(),
            faults().fail(When::nth(2), FLUSH).fail(When::nth(1), odd).fail(When::always(), RETRY),
            &["1 WcStatus(2147483655), 2 WR_FLUSH_ERR, 3 RETRY_EXC_ERR", "seed 1, 3 failed"],
        ),
    ]);
    // No more queue pairs fail than can be kept in mind.
    check::<1>(&[(
        four(),
        faults().fail(When::always(), RETRY),
        &["1 RETRY_EXC_ERR, 2, 3 WR_FLUSH_ERR, 4", "seed 1, 1 failed, 1 flushed"],
    )]);
}

#[test]
fn c10_a_queue_pair_stops_for_a_while_and_others_do_not() {
    let first = |polls| faults().delay(When::nth(1), polls);
    check::<8>(&[
        (
            four(),
            faults().delay(When::nth(1).of_qp(5), 2),
            &["2, 4", "", "1, 3", "", "seed 1, 1 delayed"],
        ),
        (three(), faults().delay(When::always(), 0), &["1, 2, 3", "seed 1"]),
    ]);
    // Delays go on where the injector was filled to the brim, and then the rest comes in one poll (P2).
    check::<1>(&[
        (three(), faults().delay(When::always(), 1), &["", "1", "2", "3", "", "seed 1, 3 delayed"]),
        (three(), first(1), &["", "1, 2, 3", "seed 1, 1 delayed"]),
    ]);
    let script = three();
    let mut queue = FaultInjector::<_, 1>::new(&script, &first(1));
    assert_eq!([poll(&mut queue), poll(&mut queue)], ["", "1, 2, 3"]);
    assert!(!script.calls().contains(&Call::Poll(0)), "no poll for nothing");
}

#[test]
fn o03_an_overrun_drops_what_comes_after_so_many_and_stays() {
    let (two, five) = ("Overrun { dropped: Some(2) }", "Overrun { dropped: Some(5) }");
    let fails = Script::new(KEY).on_poll(Ok(&[wc(1, 5), wc(2, 6)])).on_poll(Err(BROKEN));
    let one = "Overrun { dropped: Some(1) }";
    check::<8>(&[
        // The fourth, and the fifth, which came meanwhile.
        (
            four().on_poll(Ok(&[wc(5, 5)])),
            faults().overrun_after(3),
            &["1, 2, 3", two, two, "seed 1, 2 dropped"],
        ),
        // Exactly so many are no overrun (O1).
        (four(), faults().overrun_after(4), &["1, 2, 3, 4", "", "seed 1"]),
        // It ends also where the queue fails meanwhile.
        (fails, faults().overrun_after(1), &["1", one, one, "seed 1, 1 dropped"]),
    ]);
    // Everything that comes later is counted, also with little room.
    let later = four().on_arm(Ok(Armed::Armed)).on_poll(Ok(&[wc(5, 5), wc(6, 6)]));
    let mut queue = FaultInjector::<_, 2>::new(&later, &faults().overrun_after(1));
    assert_eq!([poll(&mut queue), poll(&mut queue)], ["1", "Overrun { dropped: Some(3) }"]);
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::MayHaveMissed), "or it would be slept over");
    assert_eq!(poll(&mut queue), five);
    assert_eq!(queue.poll_into(&mut []), Ok(0), "P6");
    assert_eq!(queue.injected().to_string(), "seed 1, 5 dropped");
    // A queue that may hold nothing overruns at once, but not before something has come.
    let script = Script::new(KEY).on_arm(Ok(Armed::Armed)).on_poll(Ok(&[wc(1, 5)]));
    let mut queue = injector(&script, &faults().overrun_after(0));
    assert_eq!(poll(&mut queue), "");
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::Armed));
    assert_eq!([poll(&mut queue), poll(&mut queue)], [one; 2], "for ever");
}

#[test]
fn o01_a_poll_that_finds_nothing_does_not_count_for_the_overrun() {
    let script =
        Script::new(KEY).on_poll(Ok(&[])).on_poll(Ok(&[])).on_poll(Ok(&[wc(1, 5), wc(2, 6)]));
    let mut queue = injector(&script, &faults().overrun_after(2).reorder(When::nth(1)));
    let polls = [(); 3].map(|()| poll(&mut queue));
    assert!(polls[..2] == ["", ""] && ["1, 2", "2, 1"].contains(&polls[2].as_str()), "{polls:?}");
}

#[test]
fn p06_empty_buffer_gets_nothing_and_counts_for_nothing() {
    let script = four();
    let mut queue = injector(&script, &faults().delay(When::nth(1), 1));
    for found in ["2, 4", "1, 3"] {
        assert_eq!(queue.poll_into(&mut []), Ok(0));
        assert_eq!(poll(&mut queue), found);
    }
}

#[test]
fn q02_a_queue_pair_that_was_reset_completes_again_and_leaves_the_others_flushed() {
    let script = four().on_poll(Ok(&[wc(5, 6)]));
    let plan = faults().fail(When::nth(1), RETRY).fail(When::nth(2), RETRY);
    let (mut queue, mut buffer) = (injector(&script, &plan), [Wc::default(); 2]);
    assert_eq!(queue.poll_into(&mut buffer), Ok(2));
    assert_eq!(buffer.map(|wc| wc.status()), [RETRY; 2]);
    queue.recover(6);
    assert_eq!([poll(&mut queue), poll(&mut queue)], ["3 WR_FLUSH_ERR, 4", "5"]);
}

#[test]
fn c04_what_a_failure_leaves_undefined_is_poison() {
    let script = four();
    let mut queue = injector(&script, &faults().fail(When::always(), RETRY));
    let mut buffer = [Wc::default(); 2];
    assert_eq!(queue.poll_into(&mut buffer), Ok(2));
    for (is, was) in buffer.iter().zip([wc(1, 5), wc(2, 6)]) {
        let failed = is.result().unwrap_err();
        assert_eq!((failed.wr_id(), failed.qp_num()), (was.wr_id(), was.qp_num()));
        assert_eq!(failed.vendor_err(), VENDOR_ERR);
        // What a program gets that does not look at the status.
        let mut bytes = is.to_bytes();
        bytes[8..12].fill(0);
        let careless = Wc::from_bytes(bytes);
        let careless = careless.result().unwrap();
        assert!(!WcOpcode::KNOWN.contains(&careless.opcode()));
        assert_ne!(careless.flags(), WcFlags::empty());
        assert_ne!((careless.byte_len(), careless.src_qp()), (64, 0));
    }
}

#[test]
fn c10_queue_pairs_overtake_each_other_but_never_themselves() {
    let mut orders: Vec<String> = (0..64)
        .map(|seed| {
            let script = four();
            let mut queue = injector(&script, &Faults::seeded(seed).reorder(When::always()));
            let order = poll(&mut queue);
            assert_eq!(queue.injected().reordered > 0, order != "1, 2, 3, 4");
            order
        })
        .collect();
    orders.sort_unstable();
    orders.dedup();
    // All ways to merge 1, 3 with 2, 4.
    let all = ["1, 2, 3, 4", "1, 2, 4, 3", "1, 3, 2, 4", "2, 1, 3, 4", "2, 1, 4, 3", "2, 4, 1, 3"];
    assert_eq!(orders, all);
}

#[test]
fn one_queue_pair_alone_is_no_occasion_for_another_order() {
    // Some seed takes the other one first.
    let second_first = (0..100).any(|seed| {
        let script = Script::new(KEY).on_poll(Ok(&[wc(1, 5)])).on_poll(Ok(&[wc(2, 5), wc(3, 6)]));
        let mut queue = injector(&script, &Faults::seeded(seed).reorder(When::nth(1)));
        [poll(&mut queue), poll(&mut queue)] == ["1", "3, 2"]
    });
    assert!(second_first);
}

#[test]
fn n06_arming_ends_a_delay_and_says_so() {
    let script = four().on_arm(Ok(Armed::Armed));
    let mut queue = injector(&script, &faults().delay(When::always(), 1_000_000));
    assert_eq!(poll(&mut queue), "");
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::MayHaveMissed), "nothing would tell of them");
    assert_eq!(poll(&mut queue), "1, 2, 3, 4");
    // The first that could be held back after an arm is.
    let missed = Script::new(KEY).on_arm(Ok(Armed::MayHaveMissed));
    let script = missed.on_poll(Ok(&[wc(1, 5)])).on_poll(Ok(&[wc(2, 5)]));
    let mut queue = injector(&script, &faults().delay(When::nth(1), 1));
    let _ = queue.arm(Notify::Next).unwrap();
    assert_eq!([(); 3].map(|()| poll(&mut queue)), ["1", "", "2"]);
}

#[test]
fn n06_o03_a_failure_of_the_queue_comes_after_what_is_held_back_and_is_not_slept_over() {
    let script = four().on_poll(Err(BROKEN)).on_poll(Ok(&[wc(5, 5)]));
    let mut queue = injector(&script, &faults().delay(When::always(), 1_000_000));
    let found = [(); 4].map(|()| poll(&mut queue));
    assert_eq!(found, ["", "1, 2, 3, 4", "Device(5)", ""], "once, as the queue said it");
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    assert_eq!(poll(&mut queue), "5");

    let fails = Script::<16>::new(KEY).on_poll(Ok(&[wc(1, 5)])).on_poll(Err(BROKEN));
    let script = fails.on_arm(Ok(Armed::Armed));
    let mut queue = FaultInjector::<_, 1>::new(&script, &faults());
    assert_eq!(poll(&mut queue), "1");
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::MayHaveMissed), "it is still to be told");
    assert_eq!(poll(&mut queue), "Device(5)");
}

#[test]
fn p01_without_faults_no_more_is_taken_than_was_asked_for() {
    let script = four();
    let mut queue = FaultInjector::<_, 2>::new(&script, &faults());
    assert_eq!(queue.poll_into(&mut [Wc::default(); 3]), Ok(3));
    assert_eq!(script.calls(), [Call::Poll(2), Call::Poll(1)]);
    assert_eq!(poll(queue.get_mut()), "4");
}

#[test]
fn what_may_leave_late_or_not_at_all_is_taken_ahead_and_nothing_else() {
    let plans = [
        (faults().delay(When::nth(9), 1), 2),
        (faults().reorder(When::nth(9)), 2),
        (faults().overrun_after(9), 2),
        (faults().fail(When::nth(9), RETRY), 1),
    ];
    for (plan, taken) in plans {
        let script = three();
        let mut queue = FaultInjector::<_, 2>::new(&script, &plan);
        assert_eq!(queue.poll_into(&mut [Wc::default()]), Ok(1));
        assert_eq!(script.calls(), [Call::Poll(taken)], "{plan:?}");
    }
}

#[test]
fn p07_a_transport_that_claims_too_much_is_told_apart() {
    let script = Script::<16>::new(KEY).on_poll_claim(9);
    let mut cq = CompletionQueue::new(injector(&script, &faults()));
    let mut buffer = [Wc::default(); 4];
    assert_eq!(cq.poll(&mut buffer), Err(PollError::Misbehaved { asked: 4, returned: 9 }));
}
