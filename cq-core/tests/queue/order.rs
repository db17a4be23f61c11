//! Order, wrap-around, and harmlessness of foreign words and bytes (P1, P2, O1).

use cq_core::queue::{HeapCq, Position, SoftCq, State, Tail, TryPushError};
use cq_core::transport::PollCq;
use cq_core::wc::{Wc, WcStatus};

use super::{Parts, drain, send};

const ROUNDS: Position = 1 << 15;

fn wc(number: u64) -> Wc {
    Wc::new(number, WcStatus(number as u32), !number as u32).with_path(1, 2, 3, number as u8)
}

/// Pushes and polls a good number of entries in uneven batches, and checks each.
macro_rules! runs {
    ($sides:expr, $storage:expr, $promised:expr) => {
        match ($sides, $storage as u64) {
            ((mut producer, mut consumer), storage) => {
                let (mut pushed, mut polled, mut length) = (0, 0, 0);
                let mut out = [Wc::default(); 7];
                while polled < 40 * storage + 100 {
                    loop {
                        length = (length + 1) % 6;
                        let batch: Vec<_> = (pushed..pushed + length).map(wc).collect();
                        let stored = match &batch[..] {
                            [wc] => producer.try_push(wc).map(|()| 1),
                            batch => producer.try_push_batch(batch),
                        };
                        match stored {
                            Ok(stored) => pushed += stored as u64,
                            Err(error) => break assert_eq!(error, TryPushError::Full),
                        }
                    }
                    assert!((u64::from($promised)..=storage).contains(&(pushed - polled)));
                    let count = consumer.poll(&mut out[..1 + pushed as usize % 7]).unwrap();
                    assert!(count > 0);
                    for got in &out[..count] {
                        assert_eq!(*got, wc(polled));
                        polled += 1;
                    }
                }
            }
        }
    };
}

/// In raw memory, from `start` on.
fn runs_from(start: Position, storage: usize, promised: u32) {
    runs!(Parts::promising(promised, storage).sides(start), storage, promised);
}

#[test]
fn p01_entries_come_in_order_at_every_capacity() {
    for storage in [1, 2, 4, 64, 1024] {
        for promised in [storage as u32, (storage - storage / 4) as u32] {
            runs_from(0, storage, promised);
            runs!(HeapCq::with_slots(promised, storage).unwrap().split(), storage, promised);
        }
    }
    runs!(SoftCq::<1>::new().split(), 1, 1_u32);
    runs!(SoftCq::<2>::new().split(), 2, 2_u32);
    runs!(SoftCq::<64>::new().split(), 64, 64_u32);
}

#[test]
fn positions_and_generations_wrap_unnoticed() {
    for storage in [1, 2, 4, 1024] {
        let rounds = ROUNDS * storage as Position;
        for wrap in [0, rounds, 2 * rounds, 1 << 31, (u32::MAX as Position).wrapping_add(1)] {
            for before in [1, 2, storage as Position, 3 * storage as Position] {
                runs_from(wrap.wrapping_sub(before), storage, storage as u32);
            }
        }
    }
}

#[test]
fn every_generation_is_passed_without_a_false_entry() {
    macro_rules! passes {
        ($sides:expr) => {
            match ($sides, [Wc::default(); 2]) {
                ((mut producer, mut consumer), mut out) => {
                    for number in 0..3 << 16 {
                        assert_eq!(consumer.poll(&mut out), Ok(0), "a false entry before {number}");
                        producer.push(&wc(number)).unwrap();
                        assert_eq!(consumer.poll(&mut out), Ok(1));
                        assert_eq!(out[0], wc(number));
                    }
                }
            }
        };
    }
    passes!(SoftCq::<1>::new().split());
    passes!(Parts::new(1).sides(0));
}

#[test]
fn p02_a_batch_stores_what_fits_across_every_wrap() {
    macro_rules! stores {
        ($sides:expr, $lag:expr) => {
            match $sides {
                (mut producer, mut consumer) => {
                    let (mut pushed, mut polled, mut out) = (0, 0, [Wc::default(); 8]);
                    for len in [0, 3, 1, 8, 9, 20, 5, 8, 7, 7, 2, 9] {
                        let batch: Vec<_> = (pushed..pushed + len).map(wc).collect();
                        let stored = match producer.try_push_batch(&batch) {
                            Ok(stored) => stored as u64,
                            Err(error) => u64::from(error != TryPushError::Full),
                        };
                        let given_back = polled - $lag.min(polled);
                        assert!(stored == len || pushed + stored - given_back >= 8);
                        pushed += stored;
                        let count = consumer.poll(&mut out[..1 + len as usize % 8]).unwrap() as u64;
                        assert!(
                            out[..count as usize]
                                .iter()
                                .copied()
                                .eq((polled..).map(wc).take(count as usize))
                        );
                        polled += count;
                        assert!(pushed - polled <= 8);
                    }
                    assert_eq!(drain(&mut consumer), Ok((polled..pushed).collect()));
                }
            }
        };
    }
    stores!(SoftCq::<8>::new().split(), 0_u64);
    for (start, promised) in [(0, 8), (Position::MAX - 5, 6), (ROUNDS * 8 - 3, 7)] {
        stores!(Parts::promising(promised, 8).sides(start), 8 - u64::from(promised));
    }
}

#[test]
fn p02_new_memory_is_empty_wherever_the_positions_are() {
    for storage in [1, 2, 8] {
        for rounds in [0, 1, ROUNDS - 1, ROUNDS, ROUNDS + 1, 2 * ROUNDS - 1, 2 * ROUNDS, 3 * ROUNDS]
        {
            let start = rounds * storage as Position;
            for start in [start, start.wrapping_sub(1), start.wrapping_add(1)] {
                let parts = Parts::new(storage);
                let (mut producer, mut consumer) = parts.sides(start);
                assert!(consumer.is_empty(), "a false entry at {start}");
                assert_eq!(drain(&mut consumer), Ok(vec![]));
                let tail = parts.queue().recover(Tail::at(start), |_, _| panic!("a false entry"));
                assert_eq!(tail.position(), start);
                for number in 0..3 * storage as u64 {
                    producer.push(&send(number)).unwrap();
                    assert!(!consumer.is_empty());
                    assert_eq!(drain(&mut consumer), Ok(vec![number]));
                }
            }
        }
    }
}

#[test]
fn p01_other_sides_go_on_where_the_last_ones_stopped() {
    let parts = Parts::new(4);
    let (mut words, mut position) = (Tail::at(0).to_words(), 0);
    for round in 0..1000 {
        let mut producer = parts.producer(Tail::from_words(words));
        (0..3).for_each(|nth| producer.push(&send(3 * round + nth)).unwrap());
        words = producer.tail().to_words();
        for nth in 0..3 {
            let mut consumer = parts.consumer(position);
            assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(1), "{nth} of round {round}");
            position = consumer.position();
        }
        assert_eq!(producer.tail().position(), position);
    }
    assert_eq!(parts.control.state(), State::Running);
}

#[test]
fn a_tail_is_kept_in_two_words() {
    let parts = Parts::new(4);
    let (mut producer, mut consumer) = parts.sides(7);
    assert_eq!(producer.tail(), Tail::at(7));
    (0..4).for_each(|number| producer.push(&send(number)).unwrap());
    assert_eq!(producer.tail().to_words(), [11, 11], "position, and up to where there is room");
    consumer.poll(&mut [Wc::default(); 2]).unwrap();
    producer.push(&send(4)).unwrap();
    assert_eq!(producer.tail().to_words(), [12, 13], "the room was looked at once, for both");
    assert_eq!(Tail::from_words([3, 5]).to_words(), [3, 5]);
    assert_eq!(Tail::at(3).to_words(), [3, 3]);
}

#[test]
fn x04_foreign_tails_do_no_harm() {
    let parts = Parts::new(8);
    for words in [[0; 2], [Position::MAX; 2], [5, 1 << 31], [1 << 20, 3], [7, 14], [7, 15], [7, 16]]
    {
        let mut producer = parts.producer(Tail::from_words(words));
        let stored = (0..20).take_while(|number| producer.try_push(&wc(*number)).is_ok()).count();
        assert!(stored <= 16, "what the words claim, and what is looked at then");
        assert_eq!(producer.tail().position(), words[0].wrapping_add(stored as Position));
    }
}

#[test]
fn x04_a_foreign_head_makes_the_ring_look_full_and_overwrites_nothing() {
    for distance in [5, 1 << 20, 1 << 31] {
        let parts = Parts::new(4);
        let mut producer = parts.producer(Tail::at(0));
        (0..4).for_each(|number| producer.push(&send(number)).unwrap());
        // Stores a head that nobody would write.
        let _foreign = parts.consumer((4 as Position).wrapping_sub(distance));
        assert_eq!(producer.try_push(&send(4)), Err(TryPushError::Full));
        assert_eq!((producer.len(), producer.free_slots(), producer.high_water()), (4, 0, 4));
        assert_eq!(drain(&mut parts.consumer(0)), Ok(vec![0, 1, 2, 3]));
    }
}
