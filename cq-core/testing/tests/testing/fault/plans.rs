//! When faults come, how often, and what an injector tells of them.

use cq_testing::fault::{Dice, FaultInjector, Faults, Occasion, When};

use super::*;

/// How often of a thousand times it comes.
fn comes(when: When, seed: u64) -> usize {
    let (mut occasion, mut dice) = (Occasion::new(when), Dice::new(seed));
    (0..1000).filter(|_| occasion.comes(None, &mut dice)).count()
}

#[test]
fn a_chance_is_what_it_says() {
    for seed in 0..20 {
        let exact = [When::always(), When::chance(1.0), When::chance(0.0), When::nth(1001)];
        assert_eq!(exact.map(|when| comes(when, seed)), [1000, 1000, 0, 0]);
        assert_eq!([1, 2, 1000].map(|n| comes(When::nth(n), seed)), [1; 3]);
        assert!((400..600).contains(&comes(When::chance(0.5), seed)));
        assert!((50..200).contains(&comes(When::chance(0.1), seed)));
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
    assert_eq!(
        throw(Dice::new(0), 1 << 32)[..3],
        [0xe220_a839, 0x6e78_9e6a, 0x06c4_5d18],
        "SplitMix64"
    );
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
fn an_injector_leads_to_its_transport() {
    let script = Script::new(KEY).on_poll(Ok(&[wc(1, 5)])).on_event(Ok(KEY));
    let mut queue = injector(&script, &faults());
    assert_eq!(poll(queue.get_mut()), "1");
    assert_eq!(queue.key(), KEY);
    assert_eq!(queue.into_inner().take_event(), Ok(Some(KEY)));
    assert_eq!(FaultInjector::<_, 0>::new((), &Faults::seeded(3)).injected().seed, 3);
}

#[test]
fn a_plan_that_can_not_be_is_refused_in_words() {
    let refused: [(fn(), &str); 4] = [
        (|| _ = When::nth(0), "there is no 0th"),
        (|| _ = When::chance(f64::NAN), "from 0 to 1"),
        (|| drop(faults().fail(When::nth(1), WcStatus::SUCCESS)), "no failure"),
        (
            || drop((0..17).fold(faults(), |faults, _| faults.fail(When::nth(1), RETRY))),
            "holds 16 faults",
        ),
    ];
    for (plan, text) in refused {
        let panic = std::panic::catch_unwind(plan).unwrap_err();
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap();
        assert!(said.contains(text), "{said}");
    }
}
