//! Several producers on one ring: nothing is lost, doubled or torn, each one's order is kept (P1, P2),
//! everything reserved is handed out before the overrun is reported (O3), which is counted once for each
//! completion, and comes only where the ring is full (O1, O7).

use std::sync::Arc;

use cq_core::queue::mpsc::{HeapCq, OverrunError, SharedConsumer, SharedProducer};
use cq_core::queue::{DroppedError, End, Position};
use cq_core::sync::Site;
use cq_core::transport::{PollCq, PollError};
use cq_core::wc::Wc;
use cq_testing::entries::{Bytes4, Bytes16, Spare2};
use loom::sync::atomic::{
    AtomicBool as Credit,
    Ordering::{Acquire, Release},
};
use loom::thread;
use verify_loom::harness::{UNORDERED, model};
use verify_loom::queue::Modelled;
use verify_loom::shared::{Taken, entry_of, of};
use verify_loom::threads::spawn;

const PRODUCERS: usize = 2;
const TOO_EARLY: &str = "the error came before a stored completion";
const TOO_LATE: &str = "stored after the overrun";
const WITHIN: &str = "overrun within the credits";
const MISCOUNTED: &str = "lost, or counted wrongly";
const NEVER_WAS: &str = "more than were ever unpolled";

#[derive(Clone, Copy)]
struct Shape {
    capacity: usize,
    /// The position of the first entry.
    start: Position,
    /// What each producer pushes, one batch after the other.
    batches: [&'static [usize]; 2],
    /// How often the consumer polls while they do. More polls than that would differ by nothing.
    polls: usize,
}

impl Shape {
    fn pushes(&self) -> u64 {
        self.batches.concat().iter().sum::<usize>() as u64
    }
}

/// Both push all they have, whether there is room or not.
fn overrun<E: Modelled>(shape: Shape) {
    let queue = HeapCq::<E>::starting_at(shape.capacity, shape.start).unwrap();
    let (last, mut consumer) = queue.split();
    let producers = [0, 1].map(|which| {
        spawn(&last, move |mut producer| (produce(which, &mut producer, shape), producer))
    });

    let (mut taken, mut failed) = (Taken::default(), false);
    for _ in 0..shape.polls {
        failed |= take(&mut consumer, &mut taken, failed).is_err();
    }
    let (refused, _producers): (Vec<_>, Vec<_>) =
        producers.map(|producer| producer.join().unwrap()).into_iter().unzip();
    let dropped: u64 = refused.iter().map(|refused: &Vec<u32>| refused.len() as u64).sum();
    while take(&mut consumer, &mut taken, failed).is_ok_and(|count| count > 0) {}
    assert_eq!(taken.count() + dropped, shape.pushes(), "{MISCOUNTED}");
    let counts: Vec<_> = refused.into_iter().flatten().collect();
    let end = match counts.iter().max() {
        None => Ok(0),
        Some(&most) => {
            assert_eq!(u64::from(most), dropped, "{MISCOUNTED}");
            assert_eq!(counts.iter().filter(|&&count| count == 1).count(), 1, "{MISCOUNTED}");
            Err(PollError::Overrun { dropped: Some(most) })
        }
    };
    assert_eq!(consumer.poll_into(&mut [E::numbered(0)]), end);
}

/// Polls once. After an error there must be nothing more.
fn take<E: Modelled>(
    consumer: &mut SharedConsumer<'_, E>,
    taken: &mut Taken,
    failed: bool,
) -> Result<usize, PollError> {
    let mut buffer = [E::numbered(0); 2];
    let count = consumer.poll_into(&mut buffer)?;
    assert!(!failed || count == 0, "{TOO_EARLY}");
    taken.add(&buffer[..count]);
    Ok(count)
}

/// Says how many the queue had dropped, as told for each completion that was refused.
fn produce<E: Modelled>(
    which: u64,
    producer: &mut SharedProducer<'_, E>,
    shape: Shape,
) -> Vec<u32> {
    let (mut refused, mut nth) = (Vec::new(), 0);
    for &batch in shape.batches[which as usize] {
        let of = |more| entry_of::<E>(which, nth + more);
        let entries: Vec<_> = (1..=batch as u64).map(of).collect();
        nth += batch as u64;
        match producer.push_batch_or_overrun(&entries) {
            Ok(()) => assert!(refused.is_empty(), "{TOO_LATE}"),
            Err(OverrunError::Dropped(DroppedError {
                lost,
                end: End::Overrun { dropped: total },
            })) => {
                assert!(lost as usize == batch || refused.is_empty(), "{TOO_LATE}");
                refused.extend(total + 1 - lost..=total);
            }
            Err(other) => panic!("{MISCOUNTED}: {other}"),
        }
    }
    refused
}

#[test]
fn o03_everything_reserved_is_handed_out_before_the_error() {
    let shape = Shape { capacity: 2, start: 0, batches: [&[1, 1], &[1, 1]], polls: 3 };
    model("two producers, overrun of 2", move || overrun::<Wc>(shape))
        .must_fail_without(
            [Site::Publish, Site::Observe, Site::AcquireHead, Site::ReleaseHead],
            UNORDERED,
        )
        .must_fail_without(
            [Site::Latch, Site::ReadLatch, Site::Refuse, Site::SeeRefusal],
            MISCOUNTED,
        );
    // A batch is stored as far as it fits.
    let shape = Shape { batches: [&[2], &[2]], polls: 2, ..shape };
    model("two producers, batches overrun 2", move || overrun::<Wc>(shape))
        .must_fail_without([Site::Publish], UNORDERED);
    let shape = Shape { capacity: 4, batches: [&[3], &[3]], ..shape };
    model("two producers, batches overrun 4", move || overrun::<Wc>(shape));
}

/// With other entries than completions, in a ring of one: each that is stored is of another round.
#[test]
fn o03_every_entry_reserved_is_handed_out_before_the_error() {
    type Body = fn(Shape);
    let bodies: [(&str, Body); 3] = [
        ("16 bytes", overrun::<Bytes16>),
        ("4 bytes", overrun::<Bytes4>),
        ("2 spare bits", overrun::<Spare2>),
    ];
    let shape = Shape { capacity: 1, start: 0, batches: [&[1, 1], &[1, 1]], polls: 3 };
    for (entry, body) in bodies {
        model(format!("two producers, overrun of 1, {entry}"), move || body(shape))
            .must_fail_without(
                [Site::Publish, Site::Observe, Site::AcquireHead, Site::ReleaseHead],
                UNORDERED,
            );
    }
}

/// The ring is full of one completion of each producer. Whoever's has been polled has a credit for another
/// one, and pushes it at once.
fn reserved(start: Position) {
    let credits = Arc::new([0, 1].map(|_| Credit::new(false)));
    let (last, mut consumer) = HeapCq::starting_at(PRODUCERS, start).unwrap().split();
    let mut taken = Taken::default();
    (0..).take(PRODUCERS).for_each(|which| last.clone().push(&of(which, 1)).unwrap());
    let producers = [0, 1].map(|which| {
        spawn((&last, &credits), move |(mut producer, credits)| {
            let has_credit = credits[which as usize].load(Acquire);
            if has_credit {
                producer.push(&of(which, 2)).expect(WITHIN);
            }
            (has_credit, producer)
        })
    });

    for credit in &*credits {
        let mut buffer = [Wc::default()];
        assert_eq!(consumer.poll_into(&mut buffer), Ok(1));
        taken.add(&buffer);
        credit.store(true, Release);
    }
    // By this the head may be past a tail that a producer has looked at before.
    let early = take(&mut consumer, &mut taken, false).unwrap();
    let pushed = producers.map(|producer| producer.join().unwrap());
    let count = pushed.iter().filter(|(pushed, _)| *pushed).count();
    assert_eq!(take(&mut consumer, &mut taken, false), Ok(count - early));
}

#[test]
fn o07_what_was_reserved_never_overruns() {
    for (wraps, start) in [("", 0), (", position wraps", (1 << 62) - 3)] {
        model(format!("credits of two producers{wraps}"), move || reserved(start))
            .must_fail_without([Site::Reserve, Site::AcquireTail], WITHIN);
    }
}

/// Both have credits for two. The first producer has got them back and reserves by its old copy of the head;
/// the second one, who never met the consumer, then finds a tail that fits the new head only.
fn reserved_by_an_old_copy() {
    let credit = Arc::new(Credit::new(false));
    let (mut producer, mut consumer) = HeapCq::new(2 * PRODUCERS).unwrap().split();
    let mut second = producer.clone();
    producer.push_batch(&[1, 2].map(|nth| of(0, nth))).unwrap();
    let first = spawn((&credit, &producer), |(credit, mut producer)| {
        if credit.load(Acquire) {
            producer.push_batch(&[3, 4].map(|nth| of(0, nth))).expect(WITHIN);
        }
        producer
    });
    let second = thread::spawn(move || {
        second.push_batch(&[1, 2].map(|nth| of(1, nth))).expect(WITHIN);
        second
    });
    assert_eq!(consumer.poll_into(&mut [Wc::default(); 2]), Ok(2));
    credit.store(true, Release);
    let _producers = [first, second].map(|producer| producer.join().unwrap());
}

#[test]
fn o07_a_reservation_hands_on_the_head_that_gave_the_credit() {
    model("credits against an old copy of the head", reserved_by_an_old_copy)
        .must_fail_without([Site::Reserve, Site::AcquireTail], WITHIN);
}

/// Two producers push once each, after four completions that were polled one by one: no more than two were ever unpolled.
fn high_water() {
    let (mut last, mut consumer) = HeapCq::new(4).unwrap().split();
    // They have cached the head of an empty ring, so each has to load it again.
    let producers = [0, 1].map(|which| (which, last.clone()));
    let mut out = [Wc::default()];
    for nth in 0..4 {
        last.push(&of(0, nth)).unwrap();
        assert_eq!(consumer.poll_into(&mut out), Ok(1));
    }
    let producers = producers.map(|(which, mut producer)| {
        thread::spawn(move || {
            producer.push(&of(which, 1)).unwrap();
            assert!(producer.len() <= 2, "{NEVER_WAS}");
            producer
        })
    });
    consumer.poll_into(&mut [Wc::default(); 2]).unwrap();
    for producer in producers {
        let mut producer = producer.join().unwrap();
        assert!(producer.measure_high_water() <= 2, "{NEVER_WAS}");
    }
}

#[test]
fn the_high_water_is_one_that_was() {
    model("high-water mark, two producers", high_water);
}
