//! When faults come, how often, and what an injector tells of them.

use cq_core::testing::fake::{Call, Script};
use cq_core::testing::fault::{Dice, FaultInjector, Faults, Injected, Occasion, When};
use cq_core::transport::{Arm, Armed, Events, Notify, PollCq, PollError};
use cq_core::wc::{Wc, WcStatus};

use super::{KEY, faults, injector, numbers, poll, wc};

const OK: WcStatus = WcStatus::SUCCESS;
const FLUSH: WcStatus = WcStatus::WR_FLUSH_ERR;
const RETRY: WcStatus = WcStatus::RETRY_EXC_ERR;

/// How often of a thousand times it comes.
fn comes(when: When, seed: u64) -> usize {
    let (mut occasion, mut dice) = (Occasion::new(when), Dice::new(seed));
    (0..1000).filter(|_| occasion.comes(None, &mut dice)).count()
}

#[test]
fn a_chance_is_what_it_says() {
    for seed in 0..20 {
        assert_eq!(comes(When::always(), seed), 1000);
        assert_eq!(comes(When::chance(1.0), seed), 1000);
        assert_eq!(comes(When::chance(0.0), seed), 0);
        assert!((400..600).contains(&comes(When::chance(0.5), seed)));
        assert!((50..200).contains(&comes(When::chance(0.1), seed)));
        for n in [1, 2, 1000] {
            assert_eq!(comes(When::nth(n), seed), 1);
        }
        assert_eq!(comes(When::nth(1001), seed), 0);
    }
}

#[test]
fn dice_fall_on_every_side_and_alike_for_the_same_seed() {
    let throw = |mut dice: Dice, end: u64| (0..600).map(|_| dice.below(end)).collect::<Vec<_>>();
    for end in [1, 2, 6] {
        let thrown = throw(Dice::new(7), end);
        assert!((0..end).all(|side| thrown.contains(&side)), "of {end}");
        assert!(thrown.iter().all(|&side| side < end), "of {end}");
        assert_eq!(thrown, throw(Dice::new(7), end));
    }
    assert!(throw(Dice::new(7), 1 << 32).iter().any(|&side| side > 1 << 31));
    let mut dice = Dice::new(7);
    let forks = [dice.fork(), dice.fork(), dice].map(|dice| throw(dice, 6));
    assert!(forks[0] != forks[1] && forks[0] != forks[2] && forks[0] != throw(Dice::new(7), 6));
}

#[test]
fn an_occasion_counts_what_is_of_its_queue_pair() {
    let (mut occasion, mut dice) = (Occasion::new(When::nth(2).of_qp(5)), Dice::new(1));
    let qps = [Some(5), None, Some(6), Some(5), Some(5)];
    let came = qps.map(|qp| occasion.comes(qp, &mut dice));
    assert_eq!(came, [false, false, false, true, false]);
}

#[test]
fn of_several_rules_the_first_whose_time_has_come_wins_and_all_count() {
    let script = Script::new(KEY).on_poll(Ok(&[wc(1, 5), wc(2, 6), wc(3, 7)]));
    let status = [WcStatus(100), WcStatus(101), WcStatus(102)];
    let plan = faults()
        .fail(When::nth(2), status[0])
        .fail(When::nth(1), status[1])
        .fail(When::always(), status[2]);
    let mut queue = injector(&script, &plan);
    assert_eq!(poll(&mut queue), Ok(vec![(1, status[1]), (2, status[0]), (3, status[2])]));
}

#[test]
fn q02_a_queue_pair_that_was_reset_leaves_the_others_flushed() {
    let script = Script::new(KEY).on_poll(Ok(&[wc(1, 5), wc(2, 6), wc(3, 5), wc(4, 6)]));
    let mut queue =
        injector(&script, &faults().fail(When::nth(1), RETRY).fail(When::nth(2), RETRY));
    let mut room = [Wc::default(); 2];
    assert_eq!(queue.poll(&mut room), Ok(2));
    assert_eq!(room.map(|wc| wc.status()), [RETRY; 2]);
    queue.recover(6);
    assert_eq!(poll(&mut queue), Ok(vec![(3, FLUSH), (4, OK)]));
}

#[test]
fn an_injector_leads_to_its_transport() {
    let script = Script::new(KEY).on_poll(Ok(&[wc(1, 5)])).on_event(Ok(KEY));
    let mut queue = injector(&script, &faults());
    assert_eq!(numbers(queue.transport()), [1]);
    assert_eq!(queue.key(), KEY);
    assert_eq!(queue.into_transport().take_event(), Ok(Some(KEY)));
}

#[test]
fn o03_an_overrun_counts_everything_that_comes_later() {
    let script = Script::<16>::new(KEY)
        .on_poll(Ok(&[wc(1, 5), wc(2, 6)]))
        .on_poll(Ok(&[wc(3, 5)]))
        .on_arm(Ok(Armed::Armed))
        .on_poll(Ok(&[wc(4, 5), wc(5, 6), wc(6, 5)]));
    let mut queue = FaultInjector::<_, 2>::new(&script, &faults().overrun_after(1));
    let lost = |count| Err(PollError::Overrun { dropped: Some(count) });
    assert_eq!(numbers(&mut queue), [1]);
    assert_eq!(poll(&mut queue), lost(2));
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    assert_eq!(poll(&mut queue), lost(5));
    assert_eq!(queue.poll(&mut []), Ok(0), "P6");
    assert_eq!(queue.injected().to_string(), "seed 1, 5 dropped");
}

#[test]
fn o03_a_queue_that_may_hold_nothing_overruns_at_once() {
    let script = Script::new(KEY).on_arm(Ok(Armed::Armed)).on_poll(Ok(&[wc(1, 5)]));
    let mut queue = injector(&script, &faults().overrun_after(0));
    assert_eq!(numbers(&mut queue), [], "nothing has come");
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::Armed));
    for _ in 0..2 {
        assert_eq!(poll(&mut queue), Err(PollError::Overrun { dropped: Some(1) }), "for ever");
    }
}

#[test]
fn p01_without_faults_no_more_is_taken_than_was_asked_for() {
    let script = Script::<16>::new(KEY).on_poll(Ok(&[wc(1, 5), wc(2, 6), wc(3, 7), wc(4, 8)]));
    let mut queue = FaultInjector::<_, 2>::new(&script, &faults());
    assert_eq!(queue.poll(&mut [Wc::default(); 3]), Ok(3));
    assert_eq!(script.calls(), [Call::Poll(2), Call::Poll(1)]);
    assert_eq!(numbers(queue.transport()), [4]);
}

#[test]
fn c10_a_delay_of_no_polls_is_none() {
    let script = Script::new(KEY).on_poll(Ok(&[wc(1, 5), wc(2, 6)]));
    let mut queue = injector(&script, &faults().delay(When::always(), 0));
    assert_eq!(numbers(&mut queue), [1, 2]);
    assert_eq!(queue.injected().delayed, 0);
}

#[test]
fn c10_delays_go_on_where_the_injector_was_filled_to_the_brim() {
    let script = Script::<16>::new(KEY).on_poll(Ok(&[wc(1, 5), wc(2, 6), wc(3, 7)]));
    let plan = faults().delay(When::always(), 1);
    let mut queue = FaultInjector::<_, 1>::new(&script, &plan);
    let polls = [(); 5].map(|()| numbers(&mut queue));
    assert_eq!(polls, [vec![], vec![1], vec![2], vec![3], vec![]]);
}

#[test]
fn p02_behind_a_delay_that_filled_the_injector_the_rest_comes_in_one_poll() {
    let script = Script::<16>::new(KEY).on_poll(Ok(&[wc(1, 5), wc(2, 6), wc(3, 7)]));
    let plan = faults().delay(When::nth(1), 1);
    let mut queue = FaultInjector::<_, 1>::new(&script, &plan);
    assert_eq!([numbers(&mut queue), numbers(&mut queue)], [vec![], vec![1, 2, 3]]);
    assert!(!script.calls().contains(&Call::Poll(0)), "no poll for nothing");
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
        let script = Script::<16>::new(KEY).on_poll(Ok(&[wc(1, 5), wc(2, 6), wc(3, 7)]));
        let mut queue = FaultInjector::<_, 2>::new(&script, &plan);
        assert_eq!(queue.poll(&mut [Wc::default()]), Ok(1));
        assert_eq!(script.calls(), [Call::Poll(taken)], "{plan:?}");
    }
}

#[test]
fn o01_a_poll_that_finds_nothing_does_not_count_for_the_overrun() {
    let script =
        Script::<16>::new(KEY).on_poll(Ok(&[])).on_poll(Ok(&[])).on_poll(Ok(&[wc(1, 5), wc(2, 6)]));
    let mut queue = injector(&script, &faults().overrun_after(2).reorder(When::nth(1)));
    let polls = [(); 4].map(|()| numbers(&mut queue));
    assert_eq!(polls[..2], [vec![], vec![]]);
    assert_eq!(polls[2].len() + polls[3].len(), 2);
}

#[test]
fn n06_a_failure_that_is_still_to_be_told_is_not_slept_over() {
    let script = Script::<16>::new(KEY)
        .on_poll(Ok(&[wc(1, 5)]))
        .on_poll(Err(PollError::Device(5)))
        .on_arm(Ok(Armed::Armed));
    let mut queue = FaultInjector::<_, 1>::new(&script, &faults());
    assert_eq!(numbers(&mut queue), [1]);
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    assert_eq!(poll(&mut queue), Err(PollError::Device(5)));
}

#[test]
fn o03_an_overrun_ends_also_where_the_queue_fails_meanwhile() {
    let script = Script::<16>::new(KEY)
        .on_poll(Ok(&[wc(1, 5), wc(2, 6)]))
        .on_poll(Err(PollError::Device(5)));
    let mut queue = injector(&script, &faults().overrun_after(1));
    assert_eq!(numbers(&mut queue), [1]);
    for _ in 0..2 {
        assert_eq!(poll(&mut queue), Err(PollError::Overrun { dropped: Some(1) }));
    }
}

#[test]
fn what_was_injected_is_printed_kind_by_kind() {
    let mut injected = Injected::default();
    assert_eq!(injected.to_string(), "seed 0");
    injected.seed = 9;
    injected.failed = 1;
    injected.flushed = 2;
    injected.delayed = 3;
    injected.reordered = 4;
    assert_eq!(injected.to_string(), "seed 9, 1 failed, 2 flushed, 3 delayed, 4 reordered");
    injected = Injected::default();
    injected.dropped = 5;
    injected.refused = 6;
    injected.spurious = 7;
    injected.duplicated = 8;
    assert_eq!(injected.to_string(), "seed 0, 5 dropped, 6 refused, 7 spurious, 8 duplicated");
    assert_eq!(FaultInjector::<_, 0>::new((), &Faults::seeded(3)).injected().seed, 3);
}
