//! Completions that fail, come late, in another order, or not at all (C4, C8, C10, O3).

use cq_core::cq::CompletionQueue;
use cq_core::testing::fake::Script;
use cq_core::testing::fault::{FaultInjector, Faults, VENDOR_ERR, When};
use cq_core::transport::{Arm, Armed, Notify, PollCq, PollError};
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};

use super::{KEY, faults, injector, numbers, poll, wc};

const OK: WcStatus = WcStatus::SUCCESS;
const FLUSH: WcStatus = WcStatus::WR_FLUSH_ERR;
const RETRY: WcStatus = WcStatus::RETRY_EXC_ERR;

fn four() -> Script<16> {
    Script::new(KEY).on_poll(Ok(&[wc(1, 5), wc(2, 6), wc(3, 5), wc(4, 6)]))
}

#[test]
fn p06_room_for_nothing_gets_nothing_and_counts_for_nothing() {
    let script = four();
    let mut queue = injector(&script, &faults().delay(When::nth(1), 1));
    assert_eq!(queue.poll(&mut []), Ok(0));
    assert_eq!(numbers(&mut queue), [2, 4]);
    assert_eq!(queue.poll(&mut []), Ok(0));
    assert_eq!(numbers(&mut queue), [1, 3]);
}

#[test]
fn q02_the_nth_fails_and_its_queue_pair_is_flushed() {
    let script = four();
    let mut queue = injector(&script, &faults().fail(When::nth(1), RETRY));
    assert_eq!(poll(&mut queue), Ok(vec![(1, RETRY), (2, OK), (3, FLUSH), (4, OK)]));
    assert_eq!(queue.injected().to_string(), "seed 1, 1 failed, 1 flushed");
}

#[test]
fn q02_a_queue_pair_that_was_reset_completes_again() {
    let script = four().on_poll(Ok(&[wc(5, 5)]));
    let mut queue = injector(&script, &faults().fail(When::nth(1), RETRY));
    assert_eq!(poll(&mut queue).map(|found| found[2]), Ok((3, FLUSH)));
    queue.recover(5);
    assert_eq!(poll(&mut queue), Ok(vec![(5, OK)]));
}

#[test]
fn c03_a_failure_may_stand_alone_and_have_any_number() {
    let script = four();
    let odd = WcStatus(0x8000_0007);
    let mut queue = injector(&script, &faults().fail(When::nth(1), odd).failing_alone());
    assert_eq!(poll(&mut queue), Ok(vec![(1, odd), (2, OK), (3, OK), (4, OK)]));
}

#[test]
fn c04_what_a_failure_leaves_undefined_is_poison() {
    let script = four();
    let mut queue = injector(&script, &faults().fail(When::always(), RETRY));
    let mut room = [Wc::default(); 2];
    assert_eq!(queue.poll(&mut room), Ok(2));
    for (is, was) in room.iter().zip([wc(1, 5), wc(2, 6)]) {
        let failed = is.result().unwrap_err();
        assert_eq!((failed.wr_id(), failed.qp_num()), (was.wr_id(), was.qp_num()));
        assert_eq!(failed.vendor_err(), VENDOR_ERR);
        // What a program gets that does not look at the status.
        let careless = Wc::from_bytes({
            let mut bytes = is.to_bytes();
            bytes[8..12].fill(0);
            bytes
        });
        let careless = careless.result().unwrap();
        assert!(!WcOpcode::KNOWN.contains(&careless.opcode()));
        assert_ne!(careless.flags(), WcFlags::empty());
        assert_ne!((careless.byte_len(), careless.src_qp()), (64, 0));
    }
}

#[test]
fn q07_a_failure_of_the_device_is_not_covered_up() {
    let lost = Wc::new(1, WcStatus::REM_ACCESS_ERR, 5);
    let script = Script::new(KEY).on_poll(Ok(&[lost, wc(2, 6)]));
    let mut queue = injector(&script, &faults().fail(When::always().of_qp(5), RETRY));
    assert_eq!(poll(&mut queue), Ok(vec![(1, WcStatus::REM_ACCESS_ERR), (2, OK)]));
    assert_eq!(queue.injected().failed, 0);
}

#[test]
fn c11_the_nth_of_a_queue_pair_is_counted_by_itself() {
    let script = four();
    let mut queue = injector(&script, &faults().fail(When::nth(2).of_qp(6), RETRY));
    assert_eq!(poll(&mut queue), Ok(vec![(1, OK), (2, OK), (3, OK), (4, RETRY)]));
}

#[test]
fn c11_no_more_queue_pairs_fail_than_can_be_kept_in_mind() {
    let script = four();
    let mut queue = FaultInjector::<_, 1>::new(&script, &faults().fail(When::always(), RETRY));
    assert_eq!(poll(&mut queue), Ok(vec![(1, RETRY), (2, OK), (3, FLUSH), (4, OK)]));
}

#[test]
fn c10_a_queue_pair_stops_for_a_while_and_others_do_not() {
    let script = four();
    let mut queue = injector(&script, &faults().delay(When::nth(1).of_qp(5), 2));
    let polls = [(); 4].map(|()| numbers(&mut queue));
    assert_eq!(polls, [vec![2, 4], vec![], vec![1, 3], vec![]]);
    assert_eq!(queue.injected().to_string(), "seed 1, 1 delayed");
}

#[test]
fn c10_queue_pairs_overtake_each_other_but_never_themselves() {
    let mut orders: Vec<Vec<u64>> = (0..64)
        .map(|seed| {
            let (script, plan) = (four(), cq_core::testing::fault::Faults::seeded(seed));
            let mut queue = injector(&script, &plan.reorder(When::always()));
            let mut room = [Wc::default(); 1];
            let order = [(); 4].map(|()| {
                assert_eq!(queue.poll(&mut room), Ok(1));
                room[0].wr_id()
            });
            assert_eq!(queue.injected().reordered > 0, order != [1, 2, 3, 4]);
            order.to_vec()
        })
        .collect();
    orders.sort_unstable();
    orders.dedup();
    // All ways to merge 1, 3 with 2, 4.
    let all = [[1, 2, 3, 4], [1, 2, 4, 3], [1, 3, 2, 4], [2, 1, 3, 4], [2, 1, 4, 3], [2, 4, 1, 3]];
    assert_eq!(orders, all);
}

#[test]
fn n06_arming_ends_a_delay_and_says_so() {
    let script = four().on_arm(Ok(Armed::Armed));
    let mut queue = injector(&script, &faults().delay(When::always(), 1_000_000));
    assert_eq!(numbers(&mut queue), []);
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::MayHaveMissed), "nothing would tell of them");
    assert_eq!(numbers(&mut queue), [1, 2, 3, 4]);
}

#[test]
fn o03_an_overrun_drops_what_comes_after_so_many_and_stays() {
    let script = four().on_poll(Ok(&[wc(5, 5)]));
    let mut queue = injector(&script, &faults().overrun_after(3));
    let lost = |count| Err(PollError::Overrun { dropped: Some(count) });
    assert_eq!(numbers(&mut queue), [1, 2, 3]);
    assert_eq!(poll(&mut queue), lost(2), "the fourth, and the fifth, which came meanwhile");
    assert_eq!(poll(&mut queue), lost(2));
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::MayHaveMissed), "or it would be slept over");
}

#[test]
fn o01_exactly_so_many_are_no_overrun() {
    let script = four();
    let mut queue = injector(&script, &faults().overrun_after(4));
    assert_eq!(numbers(&mut queue), [1, 2, 3, 4]);
    assert_eq!(numbers(&mut queue), []);
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::Armed));
}

#[test]
fn o03_a_failure_of_the_queue_comes_after_what_is_held_back() {
    let script = four().on_poll(Err(PollError::Device(5))).on_poll(Ok(&[wc(5, 5)]));
    let mut queue = injector(&script, &faults().delay(When::always(), 1_000_000));
    assert_eq!(numbers(&mut queue), []);
    assert_eq!(numbers(&mut queue), [1, 2, 3, 4]);
    assert_eq!(poll(&mut queue), Err(PollError::Device(5)), "once, as the queue said it");
    assert_eq!(numbers(&mut queue), []);
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    assert_eq!(numbers(&mut queue), [5]);
}

#[test]
fn p07_a_transport_that_claims_too_much_is_told_apart() {
    let script = Script::<16>::new(KEY).on_poll_claim(9);
    let mut cq = CompletionQueue::new(injector(&script, &faults()));
    let mut room = [Wc::default(); 4];
    assert_eq!(cq.poll(&mut room), Err(PollError::Misbehaved { asked: 4, returned: 9 }));
}

#[test]
#[should_panic(expected = "there is no 0th")]
fn a_zeroth_is_refused() {
    let _ = When::nth(0);
}

#[test]
#[should_panic(expected = "from 0 to 1")]
fn an_impossible_probability_is_refused() {
    let _ = When::chance(f64::NAN);
}

#[test]
#[should_panic(expected = "no failure")]
fn a_failure_that_is_none_is_refused() {
    let _ = faults().fail(When::nth(1), OK);
}

#[test]
#[should_panic(expected = "room for 16 faults")]
fn a_plan_that_is_full_says_so() {
    let _ = (0..17).fold(faults(), |faults, _| faults.fail(When::nth(1), RETRY));
}

#[test]
fn c04_what_failed_by_itself_or_comes_flushed_is_no_occasion_to_fail() {
    let own = Wc::new(1, WcStatus::RETRY_EXC_ERR, 5);
    let all = [own, wc(2, 6), wc(3, 6), wc(4, 7), wc(5, 7)];
    let script = Script::new(KEY).on_poll(Ok(&all));
    let plan =
        faults().fail(When::nth(1), WcStatus::LOC_LEN_ERR).fail(When::nth(2), WcStatus::REM_OP_ERR);
    let found = poll(&mut injector(&script, &plan)).unwrap();
    let statuses: Vec<_> = found.into_iter().map(|(_, status)| status).collect();
    let flushed = WcStatus::WR_FLUSH_ERR;
    assert_eq!(
        statuses,
        [own.status(), WcStatus::LOC_LEN_ERR, flushed, WcStatus::REM_OP_ERR, flushed]
    );
}

#[test]
fn n06_what_may_not_be_held_back_after_an_arm_is_no_occasion_for_a_delay() {
    let script = Script::new(KEY)
        .on_arm(Ok(Armed::MayHaveMissed))
        .on_poll(Ok(&[wc(1, 5)]))
        .on_poll(Ok(&[wc(2, 5)]));
    let mut queue = injector(&script, &faults().delay(When::nth(1), 1));
    let _ = queue.arm(Notify::Next).unwrap();
    let found = [(); 3].map(|()| numbers(&mut queue));
    assert_eq!(found, [vec![1], vec![], vec![2]], "the first that could be held back is");
}

#[test]
fn one_queue_pair_alone_is_no_occasion_for_another_order() {
    // Some seed takes the other one first.
    let second_first = (0..100).any(|seed| {
        let script = Script::new(KEY).on_poll(Ok(&[wc(1, 5)])).on_poll(Ok(&[wc(2, 5), wc(3, 6)]));
        let mut queue = injector(&script, &Faults::seeded(seed).reorder(When::nth(1)));
        assert_eq!(numbers(&mut queue), [1]);
        numbers(&mut queue) == [3, 2]
    });
    assert!(second_first);
}
