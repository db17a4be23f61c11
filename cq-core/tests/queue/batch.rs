//! Several completions pushed at once, on each kind of queue: which of them raise the event (N1, N3), what is stored
//! and what is counted (O3).

use std::thread;
use std::time::Instant;

use cq_core::queue::{Dropped, Entry, State, TryPushError};
use cq_core::transport::{Notify, PollCq, PollError};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

use super::device::{Device, with_each};
use super::{DEADLINE, drain, each_lone, entry, recv, send, solicited};

fn failed(number: u32) -> Entry {
    Entry { wc: Wc::new(number.into(), WcStatus::REM_OP_ERR, 1), ..entry(number) }
}

/// A successful send, which nobody waits for who armed for solicited completions, whatever its flag says.
fn sent(number: u32) -> Entry {
    let wc = Wc::new(number.into(), WcStatus::SUCCESS, 1).with_opcode(WcOpcode::SEND);
    Entry { wc, ..solicited(number) }
}

/// Batches of three, and whether they raise an event for solicited completions.
fn batches() -> impl Iterator<Item = ([Entry; 3], u32)> {
    let urgent = [solicited, failed];
    let quiet = [[entry(0), entry(1), entry(2)], [sent(0), sent(1), sent(2)]];
    let one = urgent.into_iter().flat_map(|urgent| {
        (0..3).map(move |nth| {
            let mut batch = [entry(0), sent(1), entry(2)];
            batch[nth as usize] = urgent(nth);
            (batch, 1)
        })
    });
    let all = [([solicited(0), failed(1), solicited(2)], 1)];
    quiet.into_iter().map(|batch| (batch, 0)).chain(one).chain(all)
}

/// The ways to store a batch that there is room for.
const WAYS: [fn(&mut dyn Device, &[Entry]); 3] = [
    |device, batch| device.push_batch(batch).unwrap(),
    |device, batch| assert_eq!(device.try_push_batch(batch), Ok(batch.len())),
    |device, batch| batch.iter().for_each(|entry| device.try_push(entry).unwrap()),
];

#[test]
fn n03_of_a_batch_any_entry_may_be_the_one_that_is_waited_for() {
    for store in WAYS {
        for (batch, events) in batches() {
            with_each(|mut sides| {
                sides.arm(Notify::Solicited);
                store(&mut *sides.device, &batch);
                assert_eq!(sides.bell.take(), events, "{}, {batch:?}", sides.kind);
                assert_eq!(sides.drain().len(), 3);
            });
        }
    }
}

#[test]
fn n01_a_batch_raises_one_event_for_each_arm_and_none_without() {
    for store in WAYS {
        with_each(|mut sides| {
            store(&mut *sides.device, &[solicited(0)]);
            assert_eq!(sides.bell.take(), 0, "{}: not armed", sides.kind);
            sides.arm(Notify::Next);
            store(&mut *sides.device, &[sent(1), sent(2)]);
            assert_eq!(sides.bell.take(), 1, "any completion");
            store(&mut *sides.device, &[failed(3)]);
            assert_eq!(sides.bell.take(), 0, "disarmed");
        });
    }
}

#[test]
fn n01_a_batch_of_none_raises_nothing_and_keeps_the_arm() {
    for on in [Notify::Next, Notify::Solicited] {
        with_each(|mut sides| {
            sides.arm(on);
            assert_eq!(sides.device.push_batch(&[]), Ok(()));
            assert_eq!(sides.device.try_push_batch(&[]), Ok(0));
            assert_eq!(sides.bell.take(), 0, "{}: nothing was added", sides.kind);
            sides.device.push_batch(&[failed(1)]).unwrap();
            assert_eq!(sides.bell.take(), 1, "still armed");
        });
    }
}

#[test]
fn o03_a_batch_of_none_is_stored_and_dropped_by_no_queue() {
    with_each(|mut sides| {
        sides.device.push_batch(&[0, 1, 2, 3].map(entry)).unwrap();
        assert_eq!(sides.device.push_batch(&[]), Ok(()), "{}: full", sides.kind);
        assert_eq!(sides.device.push(&entry(4)), Err(Dropped { lost: 1, total: 1 }));
        sides.arm(Notify::Next);
        assert_eq!(sides.device.push_batch(&[]), Ok(()), "ended");
        assert_eq!(sides.bell.take(), 0);
        assert_eq!(sides.device.push(&entry(5)), Err(Dropped { lost: 1, total: 2 }));
    });
}

#[test]
fn n03_what_raises_no_event_leaves_the_arm_in_force() {
    for store in WAYS {
        with_each(|mut sides| {
            sides.arm(Notify::Solicited);
            store(&mut *sides.device, &[entry(0), sent(1)]);
            assert_eq!(sides.bell.take(), 0, "{}", sides.kind);
            store(&mut *sides.device, &[entry(2), failed(3)]);
            assert_eq!(sides.bell.take(), 1);
        });
    }
}

#[test]
fn n03_an_entry_that_does_not_fit_raises_nothing() {
    for urgent in [solicited, failed] {
        with_each(|mut sides| {
            sides.arm(Notify::Solicited);
            let batch = [entry(0), entry(1), entry(2), entry(3), urgent(4)];
            assert_eq!(sides.device.try_push_batch(&batch), Ok(4), "{}", sides.kind);
            assert_eq!(sides.bell.take(), 0);
            assert_eq!(sides.drain().len(), 4);
            assert_eq!(sides.device.try_push_batch(&batch[4..]), Ok(1), "there is room again");
            assert_eq!(sides.bell.take(), 1, "still armed");
        });
    }
}

#[test]
fn o03_a_batch_stores_what_fits_and_counts_the_rest() {
    for (before, on) in
        [(0, Notify::Next), (1, Notify::Solicited), (3, Notify::Next), (4, Notify::Next)]
    {
        with_each(|mut sides| {
            (0..before).for_each(|number| sides.device.push(&entry(number)).unwrap());
            sides.arm(on);
            let batch: Vec<_> = (before..7).map(sent).collect();
            assert_eq!(sides.device.push_batch(&batch), Err(Dropped { lost: 3, total: 3 }));
            assert_eq!(sides.bell.take(), 1, "{}: O5, and one event at the most", sides.kind);
            let again = sides.device.push_batch(&[7, 8].map(entry));
            assert_eq!(again, Err(Dropped { lost: 2, total: 5 }));
            assert_eq!(sides.device.push(&entry(9)), Err(Dropped { lost: 1, total: 6 }));
            assert_eq!(sides.drain(), [0, 1, 2, 3], "the first ones");
            let overrun = Err(PollError::Overrun { dropped: Some(6) });
            assert_eq!(drain(&mut *sides.app), overrun);
        });
    }
}

#[test]
fn o03_a_batch_that_fits_exactly_is_no_overrun() {
    for before in 0..=4 {
        with_each(|mut sides| {
            // Not at the ring's beginning, and with a look at the head that is old.
            sides.device.push_batch(&[0, 1, 2].map(entry)).unwrap();
            assert_eq!(sides.drain().len(), 3);
            let batch: Vec<_> = (0..4).map(entry).collect();
            sides.device.push_batch(&batch[..before]).unwrap();
            sides.device.push_batch(&batch[before..]).unwrap();
            assert_eq!(sides.drain(), [0, 1, 2, 3], "{}", sides.kind);
            assert_eq!(sides.drain(), [], "P3");
        });
    }
}

#[test]
fn o03_a_batch_longer_than_the_queue_fills_it() {
    for first in 0..4_u32 {
        with_each(|mut sides| {
            (0..first).for_each(|number| sides.device.push(&entry(number)).unwrap());
            assert_eq!(sides.drain().len() as u32, first);
            let batch: Vec<_> = (0..100).map(entry).collect();
            assert_eq!(sides.device.try_push_batch(&batch), Ok(4), "{}", sides.kind);
            assert_eq!(sides.device.try_push_batch(&batch), Err(TryPushError::Full));
            assert_eq!(sides.drain(), [0, 1, 2, 3]);
            let dropped = Dropped { lost: 96, total: 96 };
            assert_eq!(sides.device.push_batch(&batch), Err(dropped));
            assert_eq!(sides.drain(), [0, 1, 2, 3]);
            assert!(drain(&mut *sides.app).is_err());
        });
    }
}

#[test]
fn p01_batches_of_any_length_lie_anywhere_in_the_ring() {
    for first in 0..4_u32 {
        for length in 0..=4_u32 {
            with_each(|mut sides| {
                for round in 0..6 {
                    (0..first).for_each(|number| sides.device.push(&entry(number)).unwrap());
                    assert_eq!(sides.drain().len() as u32, first);
                    let batch: Vec<_> = (0..length).map(|nth| entry(10 * round + nth)).collect();
                    sides.device.push_batch(&batch).unwrap();
                    let numbers = (0..length).map(|nth| u64::from(10 * round + nth));
                    assert!(sides.drain().into_iter().eq(numbers), "{}", sides.kind);
                }
            });
        }
    }
}

#[test]
fn n03_a_plain_completion_is_not_solicited_and_a_batch_of_them_neither() {
    each_lone!(|producer, consumer, bell| {
        let _ = cq_core::transport::Arm::arm(&mut consumer, Notify::Solicited).unwrap();
        producer.push(&recv(0)).unwrap();
        producer.push_batch(&[recv(1), send(2)]).unwrap();
        producer.try_push(&recv(3)).unwrap();
        assert_eq!(bell.take(), 0);
        assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
        producer.push_batch(&[recv(4), super::failed(5)]).unwrap();
        assert_eq!(bell.take(), 1, "a failure is urgent without a flag");
        assert_eq!(consumer.state(), State::Running);
    });
}

/// Not in raw memory, where a batch is published from the first to the last.
#[test]
fn p02_a_batch_is_seen_whole_or_not_at_all() {
    const PUSHES: u64 = 20_000;
    macro_rules! whole {
        ($queue:path) => {{
            let (mut producer, mut consumer) = <$queue>::new(16).unwrap().split();
            let start = Instant::now();
            thread::scope(|threads| {
                threads.spawn(move || {
                    for number in (0..PUSHES).map(|nth| 5 * nth) {
                        while producer.free_slots() < 5 {
                            assert!(start.elapsed() < DEADLINE, "jammed");
                            thread::yield_now();
                        }
                        producer
                            .push_batch(&[0, 1, 2, 3, 4].map(|nth| send(number + nth)))
                            .unwrap();
                    }
                });
                let (mut next, mut out) = (0, [Wc::default(); 16]);
                while next < 5 * PUSHES {
                    let count = consumer.poll(&mut out).unwrap() as u64;
                    assert_eq!(count % 5, 0, "a part of a batch");
                    assert!(out.iter().map(Wc::wr_id).take(count as usize).eq(next..next + count));
                    next += count;
                    assert!(start.elapsed() < DEADLINE, "jammed");
                }
            });
        }};
    }
    whole!(cq_core::queue::HeapCq);
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    whole!(cq_core::queue::mpsc::HeapCq);
}
