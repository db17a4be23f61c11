//! The ring at its edges: closed with space left, slots that lag, positions far on in memory that is new, runs
//! that are published at once, the most slots (P2, O1, O3).
#![cfg(not(loom))]

use std::cell::RefCell;
use std::ptr::NonNull;

use cq_core::ring::{CapacityError, Full, Head, MAX_STORAGE, Position, Ring, Slot, Tail};
use cq_core::wc::{Wc, WcStatus};

fn wc(number: u64) -> Wc {
    Wc::new(number, WcStatus::SUCCESS, 1)
}

/// A new ring with this many slots, for `test`.
fn with_ring<R>(storage: usize, test: impl FnOnce(Ring<'_>) -> R) -> R {
    let slots: Vec<_> = (0..storage).map(|_| Slot::new()).collect();
    let head = Head::new();
    test(Ring::new(&slots, &head).unwrap())
}

#[test]
fn o03_a_ring_that_is_closed_takes_nothing_more_even_if_it_has_space() {
    for pushed in 0..4 {
        with_ring(4, |ring| {
            let (mut producer, mut consumer) =
                (ring.producer(Tail::default()), ring.consumer(0, 0));
            (0..pushed).for_each(|number| producer.push(&wc(number)).unwrap());
            producer.close();
            let mut next = ring.producer(Tail::from_words(producer.tail().to_words()));
            for producer in [&mut producer, &mut next] {
                assert_eq!(producer.push(&wc(9)), Err(Full), "after {pushed}");
                assert_eq!(producer.push_run([(&wc(9), 0)].into_iter(), |_, _| ()), 0);
                assert_eq!(producer.tail().position(), pushed as Position);
            }
            assert_eq!(consumer.pop(&mut [Wc::default(); 4]), pushed as usize);
            for producer in [&mut producer, &mut next] {
                assert_eq!(producer.push(&wc(9)), Err(Full), "for ever");
            }
        });
    }
}

#[test]
fn a_tail_is_kept_in_three_words() {
    with_ring(4, |ring| {
        let (mut producer, mut consumer) = (ring.producer(Tail::at(7)), ring.consumer(7, 0));
        assert_eq!(producer.tail(), Tail::at(7));
        (0..4).for_each(|number| producer.push(&wc(number)).unwrap());
        consumer.pop(&mut [Wc::default(); 2]);
        producer.push(&wc(4)).unwrap();
        assert_eq!(producer.tail().to_words(), [12, 9, 0], "position, head as last seen, open");
        producer.close();
        let [position, _, closed] = producer.tail().to_words();
        assert_eq!((position, closed), (12, 1));
        for words in [[1, 2, 0], [3, 5, 1]] {
            assert_eq!(Tail::from_words(words).to_words(), words);
        }
        assert_eq!(Tail::from_words([0, 0, 6]).to_words()[2], 1, "any number but 0 is closed");
        assert_eq!(Tail::default(), Tail::at(0));
    });
}

#[test]
fn p02_new_memory_is_empty_wherever_the_positions_are() {
    const ROUNDS: Position = 1 << 15;
    for storage in [1, 2, 8] {
        for rounds in [0, 1, ROUNDS - 1, ROUNDS, ROUNDS + 1, 2 * ROUNDS - 1, 2 * ROUNDS, 3 * ROUNDS]
        {
            let start = rounds * storage as Position;
            for start in [start, start.wrapping_sub(1), start.wrapping_add(1)] {
                with_ring(storage, |ring| {
                    let mut consumer = ring.consumer(start, 0);
                    assert!(!consumer.is_ready(), "a false entry at {start}");
                    let mut out = [Wc::default(); 16];
                    assert_eq!(consumer.pop(&mut out), 0);
                    let tail = ring.recover(Tail::at(start), |_, _| panic!("a false entry"));
                    assert_eq!(tail.position(), start);
                    let mut producer = ring.producer(Tail::at(start));
                    for number in 0..3 * storage as u64 {
                        producer.push(&wc(number)).unwrap();
                        assert!(consumer.is_ready());
                        assert_eq!(consumer.pop(&mut out), 1);
                        assert_eq!(out[0], wc(number));
                    }
                });
            }
        }
    }
}

#[test]
fn o01_slots_come_back_together_once_more_than_the_lag_were_taken() {
    for (lag, given_back_after) in [(0, 1), (1, 2), (3, 4), (4, 4), (u32::MAX, 4)] {
        with_ring(4, |ring| {
            let (mut producer, mut consumer) =
                (ring.producer(Tail::default()), ring.consumer(0, lag));
            (0..4).for_each(|number| producer.push(&wc(number)).unwrap());
            for round in 0..3 {
                for taken in 1..given_back_after {
                    consumer.pop(&mut [Wc::default()]);
                    assert_eq!(producer.push(&wc(4)), Err(Full), "lag {lag}, {taken} in {round}");
                }
                consumer.pop(&mut [Wc::default()]);
                let stored =
                    (0..9).take_while(|number| producer.push(&wc(*number)).is_ok()).count();
                assert_eq!(stored, given_back_after, "lag {lag}, round {round}");
            }
        });
    }
}

#[test]
fn o01_a_consumer_that_goes_on_gives_back_everything_before_it() {
    with_ring(4, |ring| {
        let (mut producer, mut consumer) = (ring.producer(Tail::default()), ring.consumer(0, 3));
        (0..4).for_each(|number| producer.push(&wc(number)).unwrap());
        consumer.pop(&mut [Wc::default(); 3]);
        assert_eq!(producer.push(&wc(4)), Err(Full));
        assert_eq!(consumer.position(), 3);
        let mut next = ring.consumer(consumer.position(), 3);
        (4..7).for_each(|number| producer.push(&wc(number)).unwrap());
        assert_eq!(producer.push(&wc(7)), Err(Full));
        let mut out = [Wc::default(); 8];
        assert_eq!(next.pop(&mut out), 4);
        assert!(out[..4].iter().map(Wc::wr_id).eq(3..7));
    });
}

#[test]
fn p02_no_entry_of_a_run_is_published_before_all_are_written() {
    with_ring(8, |ring| {
        let (mut producer, consumer) = (ring.producer(Tail::default()), ring.consumer(0, 0));
        let consumer = RefCell::new(consumer);
        let mut out = [Wc::default(); 16];
        for first in [0, 5, 10] {
            let run = [0, 1, 2, 3, 4].map(|nth| wc(first + nth));
            let mut written = Vec::new();
            let stored = producer.push_run(run.iter().zip(20..), |slot, number| {
                assert!(!consumer.borrow().is_ready(), "published while more are to be written");
                written.push((slot, number));
            });
            let slots = (first as usize..).map(|position| position % 8);
            assert!(
                written.into_iter().eq(slots.zip(20..25)),
                "each slot's index, with its number"
            );
            assert_eq!(stored, 5);
            assert_eq!(consumer.borrow_mut().pop(&mut out), 5);
            assert_eq!(out[..5], run);
        }
    });
}

#[test]
fn p02_what_stands_beside_an_entry_is_written_before_it_is_published() {
    with_ring(2, |ring| {
        let (mut producer, consumer) = (ring.producer(Tail::default()), ring.consumer(0, 0));
        let consumer = RefCell::new(consumer);
        for number in 0..6 {
            let mut slots = Vec::new();
            let pushed = producer.push_after(&wc(number), |slot| {
                assert!(!consumer.borrow().is_ready());
                slots.push(slot);
            });
            assert_eq!((pushed, slots), (Ok(()), vec![number as usize % 2]));
            assert!(consumer.borrow().is_ready());
            assert_eq!(consumer.borrow_mut().pop(&mut [Wc::default(); 2]), 1);
        }
        (0..2).for_each(|number| producer.push(&wc(number)).unwrap());
        let full = producer.push_after(&wc(2), |_| panic!("nothing is written beside no entry"));
        assert_eq!(full, Err(Full));
    });
}

#[test]
fn o03_a_recovered_producer_overwrites_nothing_that_was_not_taken() {
    for taken in 0..=4 {
        with_ring(4, |ring| {
            let mut consumer = ring.consumer(0, 0);
            let mut killed = ring.producer(Tail::default());
            (0..4).for_each(|number| killed.push(&wc(number)).unwrap());
            let mut out = [Wc::default(); 8];
            assert_eq!(consumer.pop(&mut out[..taken]), taken);
            let mut found = Vec::new();
            let tail = ring.recover(Tail::default(), |wc, slot| found.push((wc.wr_id(), slot)));
            assert_eq!(found, [(0, 0), (1, 1), (2, 2), (3, 3)]);
            let mut next = ring.producer(tail);
            let stored = (4..20).take_while(|number| next.push(&wc(*number)).is_ok()).count();
            assert_eq!(stored, taken);
            assert_eq!(consumer.pop(&mut out), 4);
            assert!(out[..4].iter().map(Wc::wr_id).eq(taken as u64..taken as u64 + 4));
        });
    }
}

#[test]
fn o01_a_ring_has_at_most_2_to_the_24_slots() {
    assert_eq!(MAX_STORAGE, 1 << 24);
    // Zeroed memory that is never touched costs nothing.
    let mut memory = vec![0_u64; 6 * MAX_STORAGE];
    let base = NonNull::from(&mut memory[..]).cast();
    // SAFETY: the vector outlives the slots, is aligned to 8, and is reached through them alone.
    let slots = unsafe { Slot::slice_from_raw(base, MAX_STORAGE) }.unwrap();
    assert_eq!(slots.len(), MAX_STORAGE);
    let head = Head::new();
    let ring = Ring::new(slots, &head).unwrap();
    assert_eq!(ring.storage(), MAX_STORAGE);
    // The last slot of the first round, and the first one of the second.
    let start = MAX_STORAGE as Position - 1;
    let (mut producer, mut consumer) = (ring.producer(Tail::at(start)), ring.consumer(start, 0));
    assert_eq!(producer.storage(), MAX_STORAGE);
    let mut slots = Vec::new();
    (0..2).for_each(|number| producer.push_after(&wc(number), |slot| slots.push(slot)).unwrap());
    assert_eq!(slots, [MAX_STORAGE - 1, 0]);
    assert_eq!(consumer.pop(&mut [Wc::default(); 4]), 2);
    for more in [MAX_STORAGE + 1, 2 * MAX_STORAGE] {
        // SAFETY: refused before anything is read.
        let refused = unsafe { Slot::slice_from_raw(base, more) };
        assert_eq!(refused.unwrap_err(), CapacityError::TooLarge(more));
    }
}

#[test]
fn o01_a_ring_has_a_power_of_two_of_slots() {
    let head = Head::new();
    for count in 0..70_usize {
        let slots: Vec<_> = (0..count).map(|_| Slot::new()).collect();
        let refused = Ring::new(&slots, &head).map(|ring| ring.storage());
        assert_eq!(
            refused,
            match count {
                0 => Err(CapacityError::Zero),
                1 | 2 | 4 | 8 | 16 | 32 | 64 => Ok(count),
                _ => Err(CapacityError::NotPowerOfTwo(count)),
            }
        );
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn what_one_side_writes_all_the_time_has_cache_lines_of_its_own() {
    assert_eq!((size_of::<Slot>(), align_of::<Slot>()), (48, 8));
    assert_eq!((size_of::<Head>(), align_of::<Head>()), (128, 128));
    use cq_core::soft::{Alerts, Control};
    assert_eq!((size_of::<Alerts>(), align_of::<Alerts>()), (128, 128));
    assert_eq!((size_of::<Control>(), align_of::<Control>()), (256, 128));
    #[cfg(not(cq_core_word32))]
    assert_eq!(size_of::<cq_core::ring::Gate>(), 256);
}
