//! The ring: order, wrap-around, capacities, and harmlessness of foreign bytes (P1, P2, O1).
#![cfg(not(loom))]

use std::ptr::NonNull;

use cq_core::ring::{CapacityError, Full, Head, MAX_STORAGE, Position, Ring, Slot, Tail};
use cq_core::wc::{Wc, WcStatus};

fn wc(number: u64) -> Wc {
    Wc::new(number, WcStatus(number as u32), !number as u32).with_path(1, 2, 3, number as u8)
}

fn slots(count: usize) -> Vec<Slot> {
    (0..count).map(|_| Slot::new()).collect()
}

/// Pushes and pops a good number of entries in uneven batches, from `start` on, and checks each.
fn runs_from(start: Position, storage: usize, lag: u32) {
    let (slots, head) = (slots(storage), Head::new());
    let ring = Ring::new(&slots, &head).unwrap();
    let (mut producer, mut consumer) = (ring.producer(Tail::at(start)), ring.consumer(start, lag));
    let (mut pushed, mut popped) = (0, 0);
    let mut out = [Wc::default(); 7];
    while popped < 40 * storage as u64 + 100 {
        while producer.push(&wc(pushed)).is_ok() {
            pushed += 1;
        }
        assert!(
            pushed - popped >= storage as u64 - u64::from(lag) && pushed - popped <= storage as u64
        );
        let count = consumer.pop(&mut out[..1 + pushed as usize % 7]);
        assert!(count > 0);
        for got in &out[..count] {
            assert_eq!(*got, wc(popped));
            popped += 1;
        }
    }
}

#[test]
fn p02_of_a_run_all_are_published_that_there_is_room_for() {
    for (start, lag) in [(0, 0), (Position::MAX - 5, 2)] {
        let (slots, head) = (slots(8), Head::new());
        let ring = Ring::new(&slots, &head).unwrap();
        let mut producer = ring.producer(Tail::at(start));
        let mut consumer = ring.consumer(start, lag);
        let (mut pushed, mut popped, mut out) = (0, 0, [Wc::default(); 8]);
        for len in [0, 3, 1, 8, 9, 20, 5, 8] {
            let run: Vec<_> = (pushed..pushed + len).map(wc).collect();
            let mut numbers = Vec::new();
            let entries = run.iter().zip(0..);
            let stored = producer.push_run(entries, |_, number| numbers.push(number)) as u64;
            let given_back = popped - u64::from(lag).min(popped);
            assert!(stored == len || pushed + stored - given_back >= 8);
            assert!(numbers.into_iter().eq(0..stored as u32));
            pushed += stored;
            let count = consumer.pop(&mut out[..1 + len as usize % 8]) as u64;
            assert!(
                out.iter()
                    .take(count as usize)
                    .eq((popped..popped + count).map(wc).collect::<Vec<_>>().iter())
            );
            popped += count;
            assert!(pushed - popped <= 8);
        }
        while consumer.pop(&mut out[..1]) > 0 {
            assert_eq!(out[0], wc(popped));
            popped += 1;
        }
        assert_eq!(popped, pushed);
        producer.close();
        assert_eq!(producer.push_run([(&wc(0), 0)].into_iter(), |_, _| ()), 0);
    }
}

#[test]
fn p01_entries_come_in_order_at_every_capacity() {
    for storage in [1, 2, 4, 64, 1024] {
        for lag in [0, storage as u32 / 4] {
            runs_from(0, storage, lag);
        }
    }
}

#[test]
fn positions_and_generations_wrap_unnoticed() {
    const ROUNDS: Position = 1 << 15;
    for storage in [1, 2, 4, 1024] {
        let rounds = ROUNDS * storage as Position;
        for wrap in [0, rounds, 2 * rounds, 1 << 31, (u32::MAX as Position).wrapping_add(1)] {
            for before in [1, 2, storage as Position, 3 * storage as Position] {
                runs_from(wrap.wrapping_sub(before), storage, 0);
            }
        }
    }
}

#[test]
fn every_generation_is_passed_without_a_false_entry() {
    let (slots, head) = (slots(1), Head::new());
    let ring = Ring::new(&slots, &head).unwrap();
    let (mut producer, mut consumer) = (ring.producer(Tail::default()), ring.consumer(0, 0));
    let mut out = [Wc::default(); 2];
    for number in 0..3 << 16 {
        assert_eq!(consumer.pop(&mut out), 0, "a false entry before {number}");
        producer.push(&wc(number)).unwrap();
        assert_eq!(consumer.pop(&mut out), 1);
        assert_eq!(out[0], wc(number));
    }
}

#[test]
fn a_closed_ring_stays_closed() {
    let (slots, head) = (slots(2), Head::new());
    let ring = Ring::new(&slots, &head).unwrap();
    let (mut producer, mut consumer) = (ring.producer(Tail::default()), ring.consumer(0, 0));
    producer.push(&wc(0)).unwrap();
    producer.push(&wc(1)).unwrap();
    assert_eq!(producer.push(&wc(2)), Err(Full));
    producer.close();
    assert_eq!(consumer.pop(&mut [Wc::default(); 4]), 2);
    assert_eq!(producer.push(&wc(3)), Err(Full));
    let mut next = ring.producer(Tail::from_words(producer.tail().to_words()));
    assert_eq!(next.push(&wc(3)), Err(Full));
}

#[test]
fn another_producer_goes_on_where_the_last_one_stopped() {
    let (slots, head) = (slots(4), Head::new());
    let ring = Ring::new(&slots, &head).unwrap();
    let mut consumer = ring.consumer(0, 0);
    let mut parked = Tail::default().to_words();
    let mut out = [Wc::default(); 4];
    for number in 0..1000 {
        let mut producer = ring.producer(Tail::from_words(parked));
        producer.push(&wc(number)).unwrap();
        parked = producer.tail().to_words();
        assert_eq!(consumer.pop(&mut out), 1);
        assert_eq!(out[0], wc(number));
    }
}

#[test]
fn foreign_words_and_bytes_do_no_harm() {
    let mut memory = vec![0xA5A5_A5A5_A5A5_A5A5_u64; 6 * 8];
    // SAFETY: the vector outlives the slots, is aligned to 8, and is reached through them alone.
    let slots = unsafe { Slot::slice_from_raw(NonNull::from(&mut memory[..]).cast(), 8).unwrap() };
    let head = Head::new();
    let ring = Ring::new(slots, &head).unwrap();
    // In round 0x25A5 the garbage looks published.
    let mut consumer = ring.consumer(0x25A5 * 8 + 3, 0);
    let mut out = [Wc::default(); 64];
    assert_eq!(consumer.pop(&mut out), 5, "forged entries end with the round");
    for words in [[0; 3], [Position::MAX; 3], [5, 1 << 31, 7], [1 << 20, 3, 0x1_0000]] {
        let mut producer = ring.producer(Tail::from_words(words));
        for number in 0..20 {
            let _ = producer.push(&wc(number));
        }
    }
}

#[test]
fn impossible_capacities_are_refused_with_a_sentence() {
    let head = Head::new();
    let refused = |count| Ring::new(&slots(count), &head).map(|_| ()).unwrap_err();
    assert_eq!(refused(0), CapacityError::Zero);
    assert_eq!(refused(3), CapacityError::NotPowerOfTwo(3));
    assert_eq!(refused(3).to_string(), "3 slots are not a power of two");
    // SAFETY: refused before anything is read.
    let huge = unsafe { Slot::slice_from_raw(NonNull::<u64>::dangling().cast(), usize::MAX) };
    assert_eq!(huge.unwrap_err(), CapacityError::TooLarge(usize::MAX));
    let odd = NonNull::new(core::ptr::without_provenance_mut(17)).unwrap();
    // SAFETY: refused before anything is read.
    let misaligned = unsafe { Slot::slice_from_raw(odd, 4) };
    assert_eq!(misaligned.unwrap_err(), CapacityError::Misaligned);
    assert!(CapacityError::TooLarge(MAX_STORAGE + 1).to_string().contains("16777216"));
}

#[test]
fn a_foreign_head_makes_the_ring_look_full_and_overwrites_nothing() {
    // The consumer's side of another ring, over the same slots, with a head that nobody would write.
    for distance in [5, 1 << 20, 1 << 31] {
        let (slots, head) = (slots(4), Head::new());
        let ring = Ring::new(&slots, &head).unwrap();
        let mut producer = ring.producer(Tail::default());
        (0..4).for_each(|number| producer.push(&wc(number)).unwrap());
        let _foreign = ring.consumer((4 as Position).wrapping_sub(distance), 0);
        assert_eq!(producer.push(&wc(4)), Err(Full));
        let mut consumer = ring.consumer(0, 0);
        let mut out = [Wc::default(); 8];
        assert_eq!(consumer.pop(&mut out), 4);
        assert_eq!(out[3], wc(3));
    }
}

#[test]
fn a_lag_as_long_as_the_ring_does_not_jam_it() {
    let (slots, head) = (slots(4), Head::new());
    let ring = Ring::new(&slots, &head).unwrap();
    for lag in [4, u32::MAX] {
        let mut producer = ring.producer(Tail::default());
        let mut consumer = ring.consumer(0, lag);
        let _ = (0..4).map(|number| producer.push(&wc(number))).filter(Result::is_err).count();
        consumer.pop(&mut [Wc::default(); 4]);
        assert_eq!(producer.push(&wc(4)), Ok(()), "lag {lag}");
        consumer.pop(&mut [Wc::default(); 4]);
    }
}
