//! Overrun, storage and positions, one thread (O1, O3, P6).

use cq_core::health::State;
use cq_core::ring::{CapacityError, Gate, Position};
use cq_core::soft::shared::{BatchError, Parts};
use cq_core::soft::{Alerts, SoftCq};
use cq_core::transport::{Arm, NoSignal, Notify, Poll, PollError};
use cq_core::wc::Wc;

use super::{Bell, KEY, Memory, drain, overrun, send, wraps};

#[test]
fn o01_capacity_unpolled_is_no_overrun_and_o03_one_more_is() {
    let mut storage = SoftCq::<4>::new();
    let (mut one, mut consumer) = storage.split_shared();
    let mut other = one.clone();
    assert_eq!(consumer.capacity(), 4);
    assert_eq!(consumer.poll(&mut [Wc::default(); 2]), Ok(0), "P3");
    assert_eq!(consumer.poll_with(&mut [Wc::default()], |_, _| panic!("nothing")), Ok(0), "P3");
    for wr_id in [0, 2] {
        one.push(&send(wr_id)).unwrap();
        other.push(&send(wr_id + 1)).unwrap();
    }
    assert_eq!(one.push(&send(4)), overrun(1));
    assert_eq!(other.push(&send(5)), overrun(2));
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
    assert_eq!(one.push(&send(6)), overrun(3), "for ever, though there is room now");
    for _ in 0..3 {
        assert_eq!(drain(&mut consumer), Err(PollError::Overrun { dropped: Some(3) }));
        assert_eq!(consumer.poll(&mut []), Ok(0), "P6");
    }
}

#[test]
fn o01_slack_never_hastens_the_overrun() {
    for promised in 1..=16_u32 {
        let (memory, alerts) = (Memory::new(16), Alerts::new());
        let parts = memory.promising(promised);
        let mut producers = [(); 2].map(|()| parts.producer::<NoSignal>(&alerts, KEY, None));
        let mut consumer = parts.consumer(&alerts, KEY, false);
        for round in 0..50_u32 {
            for nth in 0..promised {
                producers[(round + nth) as usize % 2].push(&send(nth.into())).unwrap();
            }
            let mut out = vec![Wc::default(); promised as usize];
            assert_eq!(consumer.poll(&mut out), Ok(promised as usize), "round {round}");
        }
        let stored = (0..99).take_while(|nth| producers[0].push(&send(*nth)).is_ok()).count();
        assert!((promised as usize..=16).contains(&stored), "{promised} promised, {stored} stored");
        assert_eq!(alerts.state(), State::Overrun { dropped: 1 });
    }
}

#[test]
fn o03_a_batch_is_stored_as_far_as_it_fits() {
    let mut storage = SoftCq::<8>::new();
    let (mut producer, mut consumer) = storage.split_shared();
    let batch = |from: u64| [0, 1, 2, 3, 4].map(|nth| send(from + nth));
    assert_eq!(producer.push_batch(&[]), Ok(()));
    assert_eq!(producer.push_batch(&batch(0)), Ok(()));
    let error = producer.push_batch(&batch(5)).unwrap_err();
    assert_eq!(error, BatchError { stored: 3, why: overrun::<()>(2).unwrap_err() });
    assert!(error.to_string().starts_with("only 3 completions of the batch were stored: "));
    let again = producer.push_batch(&batch(10)).unwrap_err();
    assert_eq!(again, BatchError { stored: 0, why: overrun::<()>(7).unwrap_err() });
    assert_eq!(drain(&mut consumer), Ok((0..8).collect()));
    assert_eq!(drain(&mut consumer), Err(PollError::Overrun { dropped: Some(7) }));
}

#[test]
fn o03_a_batch_longer_than_the_queue_fills_it() {
    let mut storage = SoftCq::<2>::new();
    let (mut producer, mut consumer) = storage.split_shared();
    let error = producer.push_batch(&[0, 1, 2].map(send)).unwrap_err();
    assert_eq!(error, BatchError { stored: 2, why: overrun::<()>(1).unwrap_err() });
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1]));
}

#[test]
fn splitting_again_starts_afresh() {
    let mut storage = SoftCq::<2>::new();
    let (mut producer, _) = storage.split_shared();
    assert!(producer.push_batch(&[0, 1, 2].map(send)).is_err());
    let (mut producer, mut consumer) = storage.split_shared();
    producer.push(&send(7)).unwrap();
    assert_eq!(drain(&mut consumer), Ok(vec![7]));
    let (mut producer, mut consumer) = storage.split();
    producer.push(&send(8)).unwrap();
    assert_eq!(consumer.poll(&mut [Wc::default(); 4]), Ok(1));
}

#[test]
fn splitting_again_begins_at_the_first_slot_wherever_the_last_sides_stopped() {
    for polled in 0..=3 {
        let (mut storage, bell) = (SoftCq::<2>::new(), Bell::default());
        let (mut producer, mut consumer) = storage.split_shared_with(KEY, &bell);
        for wr_id in 0..polled {
            producer.push(&send(wr_id)).unwrap();
            assert_eq!(drain(&mut consumer), Ok(vec![wr_id]));
        }
        producer.push(&send(9)).unwrap();
        let _ = consumer.arm(Notify::Next).unwrap();
        let (mut producer, mut consumer) = storage.split_shared_with(KEY, &bell);
        assert_eq!(drain(&mut consumer), Ok(vec![]), "what was not polled is gone");
        producer.push_batch(&[10, 11].map(send)).unwrap();
        assert_eq!(bell.take(), 0, "not armed");
        assert_eq!(drain(&mut consumer), Ok(vec![10, 11]));
        producer.push_batch(&[12, 13].map(send)).unwrap();
        assert_eq!(producer.push(&send(14)), overrun(1));
        let (_, mut consumer) = storage.split_shared();
        assert_eq!(drain(&mut consumer), Ok(vec![]), "nor has it overrun");
    }
}

#[test]
fn a_ring_may_begin_at_any_position_modulo_2_to_the_62() {
    for (position, same) in [(5, 5), ((1 << 62) + 5, 5), (u64::MAX, (1 << 62) - 1)] {
        let (memory, alerts) = (Memory::at(position, 4), Alerts::new());
        let mut producer = memory.parts().producer::<NoSignal>(&alerts, KEY, None);
        producer.push_batch(&[0, 1, 2, 3].map(send)).unwrap();
        assert_eq!(producer.push(&send(4)), overrun(1));
        let mut consumer = memory.parts().consumer(&alerts, KEY, false);
        assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
        assert!(drain(&mut consumer).is_err());
        let gates = [position, same].map(|position| format!("{:?}", Gate::at(position)));
        assert_eq!(gates[0], gates[1]);
    }
}

#[test]
fn positions_and_generations_wrap_unnoticed() {
    for storage in [1, 2, 4, 64] {
        for wrap in wraps(storage) {
            for before in [1, storage as Position + 1] {
                let (memory, alerts) = (Memory::at(wrap - before, storage), Alerts::new());
                let mut producer = memory.parts().producer::<NoSignal>(&alerts, KEY, None);
                let mut consumer = memory.parts().consumer(&alerts, KEY, false);
                let mut out = vec![Wc::default(); storage + 1];
                for round in 0..8 {
                    let wcs: Vec<_> =
                        (0..storage as u64).map(|nth| send(100 * round + nth)).collect();
                    producer.push_batch(&wcs).unwrap();
                    assert_eq!(consumer.poll(&mut out), Ok(storage), "{storage} slots, {wrap}");
                    assert_eq!(out[..storage], wcs);
                    assert_eq!(consumer.poll(&mut out), Ok(0), "a false entry");
                }
                let many = vec![send(0); storage + 1];
                let error = producer.push_batch(&many).unwrap_err();
                assert_eq!(error.stored, storage);
                assert_eq!(consumer.poll(&mut out), Ok(storage));
                assert!(consumer.poll(&mut out).is_err());
            }
        }
    }
}

#[test]
fn foreign_bytes_do_no_harm() {
    for position in [0, 5, 1 << 61, (1 << 62) - 1] {
        let memory = Memory::at(position, 4);
        // Garbage in place of a ring that was left at the same position.
        let other = Memory { gate: Gate::at(!position), ..Memory::new(4) };
        let alerts = Alerts::new();
        let mut producer = memory.parts().producer::<NoSignal>(&alerts, KEY, None);
        let mut consumer = other.parts().consumer(&alerts, KEY, false);
        for number in 0..20 {
            let _ = producer.push_batch(&[send(number), send(number)]);
            let _ = consumer.poll(&mut [Wc::default(); 3]);
        }
    }
}

#[test]
fn impossible_storage_is_refused() {
    let memory = Memory::new(4);
    let refused = |tags: usize, promised| {
        Parts::new(&memory.gate, &memory.slots, &memory.tags[..tags], promised).unwrap_err()
    };
    assert_eq!(refused(4, 0), CapacityError::Zero);
    assert_eq!(refused(4, 5), CapacityError::MoreThanStorage { promised: 5, storage: 4 });
    assert_eq!(refused(3, 4), CapacityError::TagsDiffer { tags: 3, slots: 4 });
}

#[test]
fn debug_output_does_not_grow_with_the_queue() {
    let mut storage = SoftCq::<1024>::new();
    let sides = storage.split_shared();
    assert!(format!("{sides:?}").len() < 2000);
}
