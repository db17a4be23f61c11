use std::collections::BTreeSet;

use cq_verbs::fault::When;

use super::*;

#[test]
fn a_time_is_drawn_from_nothing_to_all_of_it() {
    let mut dice = Dice::new(1);
    for all in [0, 1, 5] {
        let drawn = (0..200).map(|_| some_of(Duration::from_nanos(all), &mut dice));
        assert!(drawn.collect::<BTreeSet<_>>().into_iter().eq(0..=all));
    }
    let hour = Duration::from_secs(3600);
    let longest = (0..200).map(|_| some_of(hour, &mut dice)).max().unwrap();
    assert!((nanos(hour) / 2..=nanos(hour)).contains(&longest));
}

/// Of the queue pair in place 0, whose number is 1, to that with number 2.
fn candidate(position: u64, now: u64) -> Candidate {
    Candidate {
        index: QpIndex::new(0),
        number: QpNumber::new(1),
        peer: Some(QpNumber::new(2)),
        position: Position::new(position),
        takes_receive: true,
        now,
    }
}

#[test]
fn q07_a_delayed_request_runs_at_its_time_and_no_queue_pair_stays_stopped() {
    let length = Duration::from_nanos(100);
    let nth = When::nth;
    let engine = Injector::new(Faults::seeded(1).starve(nth(1), length).stop(nth(2), length));
    (0..2).for_each(|index| engine.join(QpIndex::new(index)));
    let fate = |position, now| engine.fate(&candidate(position, now));
    let waits = Fate::Starved(100);
    assert_eq!([0, 99].map(|now| fate(0, now)), [waits; 2]);
    assert_eq!(fate(0, 100), Fate::Runs(Noise::default()));
    let waits = Fate::Unanswered(300);
    assert_eq!([200, 299].map(|now| fate(1, now)), [waits; 2]);
    let peers = Candidate {
        index: QpIndex::new(1),
        number: QpNumber::new(2),
        peer: Some(QpNumber::new(3)),
        ..candidate(0, 299)
    };
    assert_eq!(engine.fate(&Candidate { takes_receive: false, ..peers }), Fate::Later(300));
    assert!(sync::lock(&engine.state).stopped.contains_key(&QpNumber::new(2)));
    assert_eq!(fate(1, 300), Fate::Runs(Noise::default()));
    assert!(sync::lock(&engine.state).stopped.is_empty());
}

#[test]
fn noise_is_counted_and_made_once() {
    let engine = Injector::new(Faults::seeded(1).overrun(When::nth(2)).spurious(When::always()));
    engine.join(QpIndex::new(0));
    let noise = |overruns, spurious| Fate::Runs(Noise { overruns, spurious });
    let fates = [0, 1, 1].map(|position| engine.fate(&candidate(position, 0)));
    assert_eq!(fates, [noise(false, true), noise(true, true), noise(false, false)]);
    let counted = Injected { seed: 1, overrun: 1, spurious: 2, ..Injected::default() };
    assert_eq!(engine.injected(), counted);
}
