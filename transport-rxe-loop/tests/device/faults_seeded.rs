//! Seeds say what happens, and texts say faults.

use std::time::Duration;

use crate::common::*;
use transport_rxe_loop::{Faults, FaultsError, When};

const FAILURE: S = S::REM_ABORT_ERR;

/// What eight writes each of six queue pairs complete, and the numbers of these.
fn completions(context: &Context) -> (Vec<Wc>, [u32; 6]) {
    let mut target = End::on(context, QpType::RC, CAPS);
    let init = target.pd.qp(&target.cq).caps(CAPS);
    let mut qps = [(); 6].map(|()| init.create().unwrap());
    qps.iter_mut().for_each(|qp| qp.connect_to(qp.number()).unwrap());
    let to = target.region.remote(0).unwrap();
    for wr_id in 0..8 {
        for qp in &mut qps {
            qp.post_send(&[SendWr::write_inline(wr_id, b"x", to)]).unwrap();
        }
    }
    (settle(&mut target.cq, 8 * qps.len()), qps.map(|qp| qp.number()))
}

/// The same by queue pair, and what was injected.
fn outcomes(context: &Context) -> (Vec<Vec<(u64, S)>>, String) {
    let (seen, numbers) = completions(context);
    let of = |number: &u32| {
        let its = seen.iter().filter(|wc| wc.qp_num() == *number);
        its.map(|wc| (wc.wr_id(), wc.status())).collect()
    };
    (numbers.iter().map(of).collect(), context.injected().unwrap().to_string())
}

#[test]
fn c10_deferred_requests_stay_in_order_within_a_queue_pair_only() {
    let mut seeds = 0..;
    wait_for(|| {
        let faults = Faults::seeded(seeds.next().unwrap()).defer(Duration::from_millis(2));
        let (seen, numbers) = completions(&faulty(faults));
        for number in numbers {
            let its = seen.iter().filter(|wc| wc.qp_num() == number);
            assert!(its.map(Wc::wr_id).eq(0..8));
        }
        !seen.is_sorted_by_key(Wc::wr_id)
    });
}

#[test]
fn the_same_seed_gives_the_same_outcomes_and_another_does_not() {
    let run = |seed| {
        let faults = Faults::seeded(seed)
            .defer(Duration::from_micros(20))
            .delay(When::chance(0.1), Duration::from_micros(100))
            .stop(When::chance(0.02), Duration::from_micros(300))
            .fail(When::chance(0.1), FAILURE);
        outcomes(&faulty(faults))
    };
    let all: Vec<_> = (0..8).map(run).collect();
    assert!(all.iter().cloned().eq((0..8).map(run)));
    assert!(all.iter().any(|one| one.0 != all[0].0));
    for (seen, injected) in all {
        let failed = seen.iter().flatten().filter(|(_, status)| *status == FAILURE).count();
        assert!(failed > 0 && injected.contains(&format!(", {failed} failed")), "{injected}");
        for of_qp in seen {
            assert!(of_qp.iter().map(|(wr_id, _)| *wr_id).eq(0..8));
        }
    }
}

#[test]
fn a_text_says_what_the_builder_does() {
    let text = "seed=7, defer=50us,fail=#3:RETRY_EXC_ERR,fail=0.5:99,delay=1:2ms,rnr=0.01,\
                rnr=#1:5ms,stop=0,stop=#9:1s,overrun=#100,spurious=0.25,";
    let (milli, micro) = (Duration::from_millis, Duration::from_micros);
    let built = Faults::seeded(7)
        .defer(micro(50))
        .fail(When::nth(3), S::RETRY_EXC_ERR)
        .fail(When::chance(0.5), S(99))
        .delay(When::chance(1.0), milli(2))
        .starve(When::chance(0.01), milli(1))
        .starve(When::nth(1), milli(5))
        .stop(When::chance(0.0), milli(10))
        .stop(When::nth(9), milli(1000))
        .overrun(When::nth(100))
        .spurious(When::chance(0.25));
    assert_eq!(text.parse(), Ok(built));
    assert_eq!("".parse(), Ok(Faults::default()));
}

#[test]
fn a_text_that_says_nothing_known_is_refused() {
    let value = |value: &str| value.to_owned();
    let incomplete = |name: &str| format!("`{name}` also needs a colon");
    for (text, wanted) in [
        ("defer", FaultsError::NoValue { part: value("defer") }),
        ("luck=1", FaultsError::Unknown { name: value("luck") }),
        ("seed=-1", FaultsError::BadSeed { value: value("-1") }),
        ("defer=50", FaultsError::BadTime { value: value("50") }),
        ("stop=0.1:soon", FaultsError::BadTime { value: value("soon") }),
        ("overrun=#0", FaultsError::BadWhen { value: value("#0") }),
        ("overrun=#1:2", FaultsError::BadWhen { value: value("#1:2") }),
        ("spurious=1.5", FaultsError::BadWhen { value: value("1.5") }),
        ("spurious=NaN", FaultsError::BadWhen { value: value("NaN") }),
        ("rnr=", FaultsError::BadWhen { value: value("") }),
        ("fail=#1:SUCCESS", FaultsError::BadStatus { value: value("SUCCESS") }),
        ("fail=#1:0", FaultsError::BadStatus { value: value("0") }),
        ("fail=#1:oops", FaultsError::BadStatus { value: value("oops") }),
    ] {
        assert_eq!(text.parse::<Faults>(), Err(wanted), "{text}");
    }
    for (text, name) in [("fail=#1", "fail"), ("delay=0.5", "delay")] {
        let error = text.parse::<Faults>().unwrap_err();
        assert!(error.to_string().starts_with(&incomplete(name)), "{error}");
    }
}

#[test]
#[should_panic(expected = "no failure")]
fn a_failure_that_is_none_is_refused() {
    let _ = Faults::default().fail(When::nth(1), S::SUCCESS);
}
