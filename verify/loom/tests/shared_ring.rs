//! Several producers on one ring: nothing is lost, doubled or torn, each one's order is kept (P1, P2),
//! everything reserved is handed out before the overrun is reported (O3), which is counted once for each
//! completion, and comes only where the ring is full (O1, O7).
#![cfg(loom)]

use std::sync::Arc;

use cq_core::ring::Position;
use cq_core::soft::Overrun;
use cq_core::soft::shared::{Consumer, Producer, PushError};
use cq_core::sync::Site;
use cq_core::transport::{Poll, PollError};
use cq_core::wc::Wc;
use loom::sync::atomic::{
    AtomicU64 as Credits,
    Ordering::{Acquire, Release},
};
use loom::thread;
use verify_loom::harness::{Model, UNORDERED, model};
use verify_loom::shared::{SharedQueue, Taken, of};

const PRODUCERS: u64 = 2;
const TOO_EARLY: &str = "the error came before a stored completion";
const MISCOUNTED: &str = "counted wrongly";

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
fn overrun(shape: Shape) {
    let queue = SharedQueue::new(&[shape.capacity], shape.start);
    let mut consumer = queue.consumer(false);
    let producers = [0, 1].map(|which| {
        let queue = Arc::clone(&queue);
        thread::spawn(move || produce(which, &mut queue.producer(), shape))
    });

    let (mut taken, mut failed) = (Taken::default(), false);
    for _ in 0..shape.polls {
        failed |= take(&mut consumer, &mut taken, failed).is_err();
    }
    let refused = producers.map(|producer| producer.join().unwrap());
    let dropped: u64 = refused.iter().map(|refused| refused.len() as u64).sum();
    while take(&mut consumer, &mut taken, failed).is_ok_and(|count| count > 0) {}
    assert_eq!(taken.count() + dropped, shape.pushes(), "lost, or never counted");
    let counts: Vec<_> = refused.into_iter().flatten().collect();
    let end = match counts.iter().max() {
        None => Ok(0),
        Some(&most) => {
            assert_eq!(u64::from(most), dropped, "{MISCOUNTED}");
            assert_eq!(counts.iter().filter(|&&count| count == 1).count(), 1, "{MISCOUNTED}");
            Err(PollError::Overrun { dropped: Some(most) })
        }
    };
    assert_eq!(consumer.poll(&mut [Wc::default()]), end);
}

/// Polls once. After an error there must be nothing more.
fn take(consumer: &mut Consumer<'_>, taken: &mut Taken, failed: bool) -> Result<usize, PollError> {
    let mut room = [Wc::default(); 2];
    let count = consumer.poll(&mut room)?;
    assert!(!failed || count == 0, "{TOO_EARLY}");
    taken.add(&room[..count]);
    Ok(count)
}

/// Says how many the queue had dropped, as told for each completion that was refused.
fn produce(which: u64, producer: &mut Producer<'_>, shape: Shape) -> Vec<u32> {
    let (mut refused, mut nth) = (Vec::new(), 0);
    for &batch in shape.batches[which as usize] {
        let wcs: Vec<_> = (1..=batch as u64).map(|more| of(which, nth + more)).collect();
        nth += batch as u64;
        let (stored, why) = match &wcs[..] {
            [wc] => (0, producer.push(wc)),
            _ => {
                producer.push_batch(&wcs).map_or_else(|e| (e.stored, Err(e.why)), |()| (0, Ok(())))
            }
        };
        match why {
            Ok(()) => assert!(refused.is_empty(), "stored after the overrun"),
            Err(PushError::Overrun(Overrun { dropped })) => {
                assert!(stored == 0 || refused.is_empty(), "stored after the overrun");
                let lost = (batch - stored) as u32;
                refused.extend(dropped + 1 - lost..=dropped);
            }
            Err(other) => panic!("{other}"),
        }
    }
    refused
}

fn overruns(name: &str, shape: Shape) -> Model {
    model(name, move || overrun(shape))
}

#[test]
fn o03_everything_reserved_is_handed_out_before_the_error() {
    let shape = Shape { capacity: 2, start: 0, batches: [&[1, 1], &[1]], polls: 2 };
    overruns("two producers, overrun of 2", shape)
        .must_fail_without(Site::Publish, UNORDERED)
        .must_fail_without(Site::Observe, UNORDERED)
        .must_fail_without(Site::AcquireHead, UNORDERED)
        .must_fail_without(Site::ReleaseHead, UNORDERED)
        .must_fail_without(Site::ReserveSeen, UNORDERED)
        .must_fail_without(Site::CloseInWord, TOO_EARLY)
        .must_fail_without(Site::DrainToTail, TOO_EARLY)
        .must_fail_without(Site::Latch, TOO_EARLY)
        .must_fail_without(Site::ReadLatch, TOO_EARLY)
        .must_fail_without(Site::CountEach, MISCOUNTED);
}

#[test]
fn o03_a_batch_is_stored_as_far_as_it_fits() {
    let shape = Shape { capacity: 2, start: 0, batches: [&[2], &[2]], polls: 2 };
    overruns("two producers, batches overrun 2", shape)
        .must_fail_without(Site::Publish, UNORDERED)
        .must_fail_without(Site::ReserveSeen, UNORDERED)
        .must_fail_without(Site::DrainToTail, TOO_EARLY);
    let shape = Shape { capacity: 4, batches: [&[3], &[3]], ..shape };
    overruns("two producers, batches overrun 4", shape)
        .must_fail_without(Site::ReserveSeen, UNORDERED)
        .must_fail_without(Site::DrainToTail, TOO_EARLY);
}

/// Each producer has a credit for every push; a completion that comes gives one to its producer.
fn reserved(start: Position, credits_each: u64, pushes_each: u64) {
    let queue = SharedQueue::new(&[(PRODUCERS * credits_each) as usize], start);
    let credits = Arc::new([0, 1].map(|_| Credits::new(credits_each)));
    let mut consumer = queue.consumer(false);
    let producers = [0, 1].map(|which| {
        let (queue, credits) = (Arc::clone(&queue), Arc::clone(&credits));
        thread::spawn(move || {
            let mut producer = queue.producer();
            for nth in 1..=pushes_each {
                while nth > credits[which as usize].load(Acquire) {
                    thread::yield_now();
                }
                producer.push(&of(which, nth)).expect("overrun within the credits");
            }
        })
    });

    let (mut taken, mut room) = (Taken::default(), [Wc::default()]);
    let mut given = [credits_each; 2];
    while taken.count() < PRODUCERS * pushes_each {
        if consumer.poll(&mut room).unwrap() == 0 {
            thread::yield_now();
            continue;
        }
        taken.add(&room);
        let which = usize::from(room[0].wr_id() >= 64);
        given[which] += 1;
        credits[which].store(given[which], Release);
    }
    producers.map(|producer| producer.join().unwrap());
}

#[test]
fn o07_what_was_reserved_never_overruns() {
    for (wraps, start) in
        [("", 0), (", position wraps", (1 << 62) - 2), (", generation wraps", (2 << 15) - 2)]
    {
        model(format!("credits of two producers{wraps}"), move || reserved(start, 1, 2))
            .must_fail_without(Site::Reserve, "overrun within the credits")
            .must_fail_without(Site::AcquireTail, "overrun within the credits")
            .must_fail_without(Site::ReserveSeen, "overrun within the credits");
    }
}
