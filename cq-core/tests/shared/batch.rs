//! Several completions pushed at once: which of them raise the event (N1, N3), their tags, what is dropped and
//! counted (O3).

use cq_core::health::State;
use cq_core::soft::Alerts;
use cq_core::soft::shared::{BatchError, Consumer, Producer};
use cq_core::transport::{Arm, NoSignal, Notify, Poll, PollError};
use cq_core::wc::Wc;

use super::{Bell, KEY, Memory, failed, overrun, recv, send};

/// A queue of four with tags and events and two producers, for `test`.
fn with_tags(test: impl FnOnce([Producer<'_, &Bell>; 2], Consumer<'_>, &Bell)) {
    let (memory, alerts, bell) = (Memory::new(4), Alerts::new(), Bell::default());
    let producer = memory.parts().producer(&alerts, KEY, Some(&bell));
    let consumer = memory.parts().consumer(&alerts, KEY, true);
    test([producer.clone(), producer], consumer, &bell);
}

/// Polls everything: numbers and tags.
fn drain(consumer: &mut Consumer<'_>) -> Vec<(u64, u32)> {
    let mut got = Vec::new();
    consumer.poll_with(&mut [Wc::default(); 16], |wc, tag| got.push((wc.wr_id(), tag))).unwrap();
    got
}

#[test]
fn n03_of_a_batch_any_failure_may_be_the_one_that_is_waited_for() {
    for nth in 0..4 {
        with_tags(|[mut one, _], mut consumer, bell| {
            let _ = consumer.arm(Notify::Solicited).unwrap();
            let mut batch = [recv(0), send(1), recv(2), send(3)];
            batch[nth] = failed(nth as u64);
            one.push_batch(&batch).unwrap();
            assert_eq!(bell.take(), 1, "the failure is entry {nth}");
        });
    }
}

#[test]
fn n01_a_batch_raises_one_event_for_each_arm_and_none_without() {
    with_tags(|[mut one, mut other], mut consumer, bell| {
        one.push_batch(&[failed(0)]).unwrap();
        assert_eq!(bell.take(), 0, "not armed");
        let _ = consumer.arm(Notify::Next).unwrap();
        one.push_batch(&[]).unwrap();
        assert_eq!(bell.take(), 0, "nothing was added");
        other.push_batch(&[send(1), send(2)]).unwrap();
        assert_eq!(bell.take(), 1);
        one.push_batch(&[failed(3)]).unwrap();
        assert_eq!(bell.take(), 0, "disarmed");
    });
}

#[test]
fn the_tags_of_a_batch_are_zero_also_where_others_were() {
    with_tags(|[mut one, mut other], mut consumer, _| {
        for round in 0..3 {
            for number in 0..4 {
                other.push_with(&recv(number), number as u32 + 10, false).unwrap();
            }
            assert_eq!(drain(&mut consumer), [(0, 10), (1, 11), (2, 12), (3, 13)]);
            one.push_batch(&[recv(4), recv(5), recv(6)]).unwrap();
            other.push(&recv(7)).unwrap();
            assert_eq!(drain(&mut consumer), [(4, 0), (5, 0), (6, 0), (7, 0)], "round {round}");
        }
    });
}

#[test]
fn n03_a_completion_that_is_pushed_plainly_is_not_solicited() {
    with_tags(|[mut one, mut other], mut consumer, bell| {
        let _ = consumer.arm(Notify::Solicited).unwrap();
        one.push(&recv(0)).unwrap();
        other.push_batch(&[recv(1)]).unwrap();
        assert_eq!(bell.take(), 0);
    });
}

#[test]
fn o03_what_a_batch_drops_is_counted_by_whichever_producer_pushes() {
    with_tags(|[mut one, mut other], mut consumer, bell| {
        one.push_batch(&[0, 1, 2].map(send)).unwrap();
        let error = other.push_batch(&[3, 4, 5].map(send)).unwrap_err();
        assert_eq!(error, BatchError { stored: 1, why: overrun::<()>(2).unwrap_err() });
        let error = one.push_batch(&[6, 7, 8].map(send)).unwrap_err();
        assert_eq!(error, BatchError { stored: 0, why: overrun::<()>(5).unwrap_err() });
        assert_eq!(other.push_with(&send(9), 1, true), overrun(6));
        assert_eq!(bell.take(), 0, "not armed");
        let _ = consumer.arm(Notify::Solicited).unwrap();
        one.push_batch(&[send(10)]).unwrap_err();
        assert_eq!(bell.take(), 1, "O5");
        assert_eq!(drain(&mut consumer), [(0, 0), (1, 0), (2, 0), (3, 0)]);
        let error = Err(PollError::Overrun { dropped: Some(7) });
        assert_eq!(consumer.poll(&mut [Wc::default(); 4]), error);
    });
}

#[test]
fn o03_a_batch_that_fits_exactly_is_no_overrun() {
    for before in 0..=4_usize {
        let (memory, alerts) = (Memory::new(4), Alerts::new());
        let mut producer = memory.parts().producer::<NoSignal>(&alerts, KEY, None);
        let mut consumer = memory.parts().consumer(&alerts, KEY, false);
        // Not at the ring's beginning, and with a look at the head that is old.
        producer.push_batch(&[0, 1, 2].map(send)).unwrap();
        assert_eq!(drain(&mut consumer).len(), 3);
        let wcs: Vec<_> = (0..4).map(send).collect();
        producer.push_batch(&wcs[..before]).unwrap();
        producer.push_batch(&wcs[before..]).unwrap();
        assert_eq!(alerts.state(), State::Running);
        assert_eq!(drain(&mut consumer), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    }
}
