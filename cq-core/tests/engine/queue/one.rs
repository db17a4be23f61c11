//! Polls of one beside polls of several: each has checks of its own, and all take from the same queue (P1, P2, O3, S7).

#[cfg(any(not(target_has_atomic = "64"), cq_core_word32))]
use std::sync::atomic::AtomicU32 as AtomicWord;
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
use std::sync::atomic::AtomicU64 as AtomicWord;
use std::sync::atomic::Ordering::Relaxed;
use std::{hint, mem};

use cq_core::entry::Entry;
use cq_testing::entries::Bytes16;
use cq_testing::rules::{Kind, Numbered};

use super::*;

/// Ways to take entries.
#[derive(Clone, Copy, Debug)]
enum Way {
    Pop,
    PollOne,
    PollTwo,
    InPlaceOne,
    InPlaceThree,
    /// A batch of three, of which one is kept.
    Truncated,
    /// A batch of one that is leaked, and so polled again.
    Leaked,
}
const WAYS: [Way; 7] = [
    Way::Pop,
    Way::PollOne,
    Way::PollTwo,
    Way::InPlaceOne,
    Way::InPlaceThree,
    Way::Truncated,
    Way::Leaked,
];

impl Way {
    /// How many entries it takes at most.
    fn most(self) -> usize {
        match self {
            Self::Pop | Self::PollOne | Self::InPlaceOne | Self::Truncated => 1,
            Self::PollTwo => 2,
            Self::InPlaceThree => 3,
            Self::Leaked => 0,
        }
    }

    /// Takes entries, and returns their numbers.
    fn take<E: Numbered>(self, consumer: &mut Consumer<'_, E>) -> Result<Vec<u64>, PollError> {
        let numbers = |entries: &[E]| entries.iter().map(E::number).collect();
        let mut out = [E::zeroed(); 2];
        match self {
            Self::Pop => consumer.pop().map(|popped| numbers(popped.as_slice())),
            Self::PollOne => consumer.poll(&mut out[..1]).map(numbers),
            Self::PollTwo => consumer.poll(&mut out).map(numbers),
            Self::InPlaceOne => {
                consumer.poll_in_place(1).map(|batch| batch.iter().map(E::number).collect())
            }
            Self::InPlaceThree => {
                consumer.poll_in_place(3).map(|batch| batch.iter().map(E::number).collect())
            }
            Self::Truncated => consumer.poll_in_place(3).map(|mut batch| {
                batch.truncate(1);
                batch.iter().map(E::number).collect()
            }),
            Self::Leaked => consumer.poll_in_place(1).map(|batch| {
                mem::forget(batch);
                Vec::new()
            }),
        }
    }
}

/// How a queue ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Close,
    Overrun,
    Fail,
}

/// Takes in these ways what a queue of four holds that has passed so many entries before, and looks at the slots that are given
/// back; then what is left once it has ended, and twice the end.
fn takes<E: Numbered>(passed: u64, held: u64, ways: [Way; 3], ending: Ending) {
    let (mut producer, mut consumer) = HeapCq::<E>::of_entries(4).unwrap().split();
    let entry = |number| E::pushed(Kind::Send, number);
    for number in 0..passed {
        producer.push(&entry(number)).unwrap();
        assert_eq!(consumer.pop().unwrap().as_ref().map(E::number), Some(number));
    }
    let (mut next, end) = (passed, passed + held);
    (passed..end).for_each(|number| producer.push(&entry(number)).unwrap());
    let take = |way: Way, consumer: &mut Consumer<'_, E>, next: &mut u64| {
        let expected: Vec<_> = (*next..end).take(way.most()).collect();
        *next += expected.len() as u64;
        assert_eq!(way.take(consumer), Ok(expected), "{passed} {held} {ways:?} {ending:?}");
    };
    for way in ways {
        take(way, &mut consumer, &mut next);
        assert_eq!(
            (producer.len(), consumer.len()),
            ((end - next) as usize, (end - next) as usize)
        );
    }
    let error = match ending {
        Ending::Close => {
            drop(producer);
            PollError::Closed
        }
        Ending::Overrun => {
            producer.mark_overrun(3);
            PollError::Overrun { dropped: Some(3) }
        }
        Ending::Fail => {
            consumer.fail();
            PollError::Failed
        }
    };
    for way in ways.into_iter().chain([Way::PollTwo, Way::Pop, Way::InPlaceOne]) {
        if next < end {
            take(way, &mut consumer, &mut next);
        }
    }
    for way in ways.into_iter().chain(WAYS).filter(|_| next == end) {
        assert_eq!(way.take(&mut consumer), Err(error), "{passed} {held} {ways:?} {ending:?}");
    }
    assert_eq!(consumer.poll_into(&mut []), Ok(0), "P6");
}

/// Each way after each other one, at each place of the ring, with each number of entries, before and after each end.
#[test]
fn p01_all_ways_to_poll_take_from_one_queue() {
    for (first, second, third) in WAYS.into_iter().flat_map(|first| {
        WAYS.into_iter().flat_map(move |second| WAYS.map(|third| (first, second, third)))
    }) {
        for nth in 0..if cfg!(miri) { 1 } else { 5 * 5 * 3 } {
            let nth =
                if cfg!(miri) { first as u64 + 5 * second as u64 + 11 * third as u64 } else { nth };
            let ending = [Ending::Close, Ending::Overrun, Ending::Fail][(nth / 25 % 3) as usize];
            takes::<Wc>(nth % 5, nth / 5 % 5, [first, second, third], ending);
            takes::<Bytes16>(nth % 5, nth / 5 % 5, [first, second, third], ending);
        }
    }
}

/// For Miri and ThreadSanitizer: what is taken by one is published before and not written meanwhile, also the last before the end.
#[test]
fn s02_each_entry_is_popped_whole_while_a_thread_pushes() {
    fn popped_whole<E: Entry + PartialEq>(make: fn(u64) -> E) {
        const MANY: u64 = if cfg!(miri) { 30 } else { 3000 };
        let (mut producer, mut consumer) = HeapCq::<E>::of_entries(4).unwrap().split();
        let pushes = thread::spawn(move || {
            for number in 0..MANY {
                producer.push_or_wait(&make(number), thread::yield_now).unwrap();
            }
        });
        let mut next = 0;
        let end = loop {
            let popped = match next % 2 {
                0 => consumer.pop(),
                _ => consumer.poll_in_place(1).map(|batch| batch.iter().next().copied()),
            };
            match popped {
                Ok(Some(entry)) => {
                    assert!(entry == make(next), "{next}");
                    next += 1;
                }
                Ok(None) => thread::yield_now(),
                Err(end) => break end,
            }
        };
        assert_eq!((next, end), (MANY, PollError::Closed));
        pushes.join().unwrap();
    }
    popped_whole(send);
    popped_whole(|number| [number as u8; 3]);
    popped_whole(|number| [number; 16]);
}

/// What polls of one and of two return.
fn polls_of_each_size(consumer: &mut raw::RawConsumer<'_>) -> [Result<usize, PollError>; 5] {
    let mut out = [Wc::default(); 2];
    [
        consumer.poll_with(&mut out[..1], |_, _| {}),
        consumer.poll_with(&mut out, |_, _| {}),
        consumer.pop().map(|popped| popped.is_some().into()),
        consumer.poll_into(&mut out[..1]),
        consumer.poll_into(&mut out),
    ]
}

#[test]
fn o03_no_poll_of_any_size_returns_what_is_written_after_the_end() {
    for passed in 0..5 {
        let parts = Parts::tagged(4);
        let (mut producer, mut consumer) = parts.sides(0);
        for number in 0..passed {
            producer.push(&entry(number)).unwrap();
            assert_eq!(consumer.poll_with(&mut [Wc::default()], |_, _| {}), Ok(1));
        }
        consumer.fail();
        assert_eq!(consumer.pop().unwrap_err(), PollError::Failed);
        let (at, other) = (consumer.position(), Control::new());
        let late = raw_queue(&other, &parts.slots, &parts.tags, 4).unwrap();
        let mut late = late.into_producer(Tail::from_words([at, at + 4]), NoChannel);
        late.push_batch(&[entry(7), entry(8), entry(9)]).unwrap();
        for _ in 0..2 {
            assert_eq!(polls_of_each_size(&mut consumer), [Err(PollError::Failed); 5]);
        }
        assert_eq!(consumer.position(), at);
        // Nor does a consumer that is made anew.
        consumer = parts.consumer(at);
        assert_eq!(polls_of_each_size(&mut consumer), [Err(PollError::Failed); 5]);
    }
}

/// A tag is that of the completion by which it lies, also for one at a time.
#[test]
fn p01_completions_polled_one_by_one_have_their_tags() {
    let parts = Parts::tagged(4);
    let (mut producer, mut consumer) = parts.sides(0);
    for number in 0..11 {
        producer.push(&entry(number)).unwrap();
        producer.push(&entry(100 + number)).unwrap();
        let mut seen = Vec::new();
        for most in [1, 2] {
            let mut each = |wc: &Wc, tag| seen.push((wc.wr_id(), tag));
            consumer.poll_with(&mut [Wc::default(); 2][..most], &mut each).unwrap();
        }
        let number = u64::from(number);
        assert_eq!(seen, [(number, number as u32 + 100), (100 + number, number as u32 + 200)]);
    }
}

#[test]
fn p01_completions_are_popped_from_memory_that_others_share() {
    let parts = Parts::new(4);
    let (mut producer, mut consumer) = parts.sides(Position::MAX - 2);
    for number in 0..9 {
        producer.push(&recv(number)).unwrap();
        assert_eq!(consumer.pop(), Ok(Some(recv(number))));
        assert_eq!(consumer.pop(), Ok(None));
    }
}

/// The producer pushes and leaves between the consumer's two looks now and then.
#[test]
fn s02_what_is_pushed_right_before_the_end_comes_before_it() {
    for number in 0..if cfg!(miri) { 20 } else { 2000 } {
        let mut storage = SoftCq::<2, u32>::of_entries();
        let (mut producer, mut consumer) = storage.split();
        let polled = thread::scope(|threads| {
            threads.spawn(move || producer.push(&number).unwrap());
            let mut buffer = [0; 2];
            loop {
                match consumer.poll(&mut buffer) {
                    Ok([]) => hint::spin_loop(),
                    polled => break polled.map(<[u32]>::to_vec),
                }
            }
        });
        assert_eq!(polled, Ok(vec![number]));
    }
}

/// The generation that no entry has, which others can write all the same.
#[test]
fn o03_a_poll_returns_nothing_after_the_end_whatever_generation_a_peer_writes() {
    for (at, bits) in
        (0..5).flat_map(|at| (0..=u16::MAX).step_by(257).chain([1]).map(move |bits| (at, bits)))
    {
        let parts = Parts::new(4);
        let (_producer, mut consumer) = parts.sides(0);
        consumer.fail();
        assert_eq!(consumer.pop(), Err(PollError::Failed));
        // SAFETY: the last word of the slot, which is atomic, in the sides' own width.
        let last = unsafe {
            let words = std::ptr::from_ref(&parts.slots[0]).cast::<AtomicWord>();
            &*words.add(size_of::<raw::Slot>() / size_of::<AtomicWord>() - 1)
        };
        let mut bytes = last.load(Relaxed).to_ne_bytes();
        let [.., first, second] = &mut bytes;
        [*first, *second] = bits.to_ne_bytes();
        last.store(Position::from_ne_bytes(bytes), Relaxed);
        assert_eq!(polls_of_each_size(&mut consumer)[at], Err(PollError::Failed), "{at} {bits:#x}");
    }
}
