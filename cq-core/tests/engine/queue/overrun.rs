//! Overrun, and what a new pair of sides finds (O2, O3).

use super::device::with_each;
use super::*;

fn overrun<T>(dropped: u32) -> Result<T, PollError> {
    Err(PollError::Overrun { dropped: Some(dropped) })
}

fn dropped(lost: u32, total: u32) -> Result<(), DroppedError> {
    Err(DroppedError { lost, end: End::Overrun { dropped: total } })
}

#[test]
fn o02_the_first_that_are_dropped_are_known_as_such() {
    let first = |lost, total| dropped(lost, total).unwrap_err().is_first();
    assert_eq!([first(1, 1), first(3, 3), first(1, 2)], [true, true, false]);
    with_each(|mut sides| {
        let batch: Vec<_> = (0..7).map(entry).collect();
        let is_first = |dropped: Result<(), DroppedError>| dropped.unwrap_err().is_first();
        assert!(is_first(sides.device.push_batch_or_overrun(&batch)), "{}", sides.kind);
        assert!(!is_first(sides.device.push_batch_or_overrun(&batch)));
        assert!(!is_first(sides.device.push_or_overrun(&entry(0))));
    });
    let mut storage = SoftCq::<4>::new();
    let (mut producer, _consumer) = storage.split();
    assert!(producer.mark_overrun(u32::MAX).is_first(), "also of more than are counted");
    for _ in 0..2 {
        assert!(!producer.mark_overrun(u32::MAX - 1).is_first(), "the count saturates");
    }
}

#[test]
fn splitting_again_starts_afresh_wherever_the_last_sides_stopped() {
    macro_rules! starts_afresh {
        ($queue:path, $pushed:ident) => {
            let (mut storage, event_count) = (<$queue>::new(), EventCount::default());
            let (mut producer, mut consumer) = storage.split_with(&event_count);
            for number in 0..$pushed {
                producer.push_or_overrun(&send(number)).unwrap();
                assert_eq!(drain(&mut consumer), Ok(vec![number]));
            }
            producer.push_or_overrun(&send(7)).unwrap();
            let _ = Arm::arm(&mut consumer, Notify::Next).unwrap();
            drop(consumer);
            producer.push_batch_or_overrun(&[8, 9].map(send)).unwrap_err();
            // One is never dropped.
            std::mem::forget(producer);
            assert_eq!(event_count.take(), 1);
            let (mut producer, mut consumer) = storage.split_with(&event_count);
            assert_eq!(drain(&mut consumer), Ok(vec![]), "what was not polled is gone");
            assert_eq!(producer.end(), None);
            assert_eq!((producer.available(), producer.measure_high_water()), (2, 0));
            producer.push_batch_or_overrun(&[10, 11].map(send)).unwrap();
            assert_eq!(event_count.take(), 0, "not armed");
            assert_eq!(drain(&mut consumer), Ok(vec![10, 11]));
            producer.push_batch_or_overrun(&[7, 8, 9].map(send)).unwrap_err();
            consumer.fail();
            drop((producer, consumer));
            let (mut producer, mut consumer) = storage.split();
            producer.push_or_overrun(&send(12)).unwrap();
            assert_eq!(drain(&mut consumer), Ok(vec![12]), "nor has it overrun, or failed");
            drop(producer);
            assert_eq!(drain(&mut consumer), Err(PollError::Closed));
        };
    }
    for pushed in 0..8 {
        starts_afresh!(SoftCq::<2>, pushed);
        #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
        {
            starts_afresh!(cq_core::queue::mpsc::SoftCq::<2>, pushed);
        }
    }
    assert_eq!(SoftCq::<2>::new().capacity(), 2);
}

#[test]
fn a_default_queue_is_a_new_one() {
    let text = |queue: &dyn std::fmt::Debug| format!("{queue:?}");
    assert_eq!(text(&SoftCq::<2>::new()), text(&SoftCq::<2>::default()));
    assert_eq!(text(&Control::new()), text(&Control::default()));
    assert_eq!(Tagged::default().wc, Wc::default());
    fn can_be_sent<T: Send + Sync>(_: &T) {}
    let mut queue = SoftCq::<2>::default();
    let (producer, consumer): (Producer<'_>, _) = queue.split();
    can_be_sent(&producer);
    can_be_sent(&consumer);
}

#[test]
fn o03_a_device_may_know_by_itself_that_its_queue_has_overrun() {
    let mut storage = SoftCq::<4>::new();
    let (mut producer, mut consumer) = storage.split();
    producer.push_or_overrun(&send(1)).unwrap();
    assert_eq!(
        producer.mark_overrun(2),
        DroppedError { lost: 2, end: End::Overrun { dropped: 2 } }
    );
    assert_eq!(producer.push_or_overrun(&send(2)), dropped(1, 3), "though there is room");
    let ended = PushError::Ended(End::Overrun { dropped: 3 });
    assert_eq!(producer.push(&send(2)), Err(ended));
    assert_eq!(drain(&mut consumer), Ok(vec![1]));
    assert_eq!(consumer.poll_into(&mut [Wc::default()]), overrun(3));
    let mut storage = SoftCq::<4>::new();
    let (mut producer, mut consumer) = storage.split();
    assert_eq!(
        producer.mark_overrun(0),
        DroppedError { lost: 1, end: End::Overrun { dropped: 1 } },
        "one at the least"
    );
    assert_eq!(consumer.poll_into(&mut [Wc::default()]), overrun(1));
}

#[test]
fn o01_an_exact_queue_overruns_with_one_more_than_it_promises() {
    for (promised, storage) in [(1, 1), (1, 8), (3, 4), (5, 16), (13, 64)] {
        let parts = Parts { is_exact: true, ..Parts::promising(promised, storage) };
        let (mut producer, mut consumer) = parts.sides(0);
        assert_eq!((producer.storage(), consumer.capacity()), (storage, promised as usize));
        let mut number = 0;
        let mut push = |producer: &mut raw::RawProducer<'_>| {
            number += 1;
            producer.push_or_overrun(&send(number))
        };
        (0..promised).for_each(|_| push(&mut producer).unwrap());
        // Polled one by one, it has place for exactly one more each time, in all rounds of the ring.
        for _ in 0..3 * storage {
            assert_eq!((producer.available(), producer.is_full()), (0, true));
            assert_eq!(consumer.poll_into(&mut [Wc::default()]), Ok(1));
            assert_eq!(producer.available(), 1);
            push(&mut producer).unwrap();
        }
        assert_eq!(push(&mut producer), dropped(1, 1), "{promised} of {storage}");
        let mut out = [Wc::default(); 64];
        assert_eq!(consumer.poll_into(&mut out), Ok(promised as usize));
        assert_eq!(consumer.poll_into(&mut out), overrun(1));
    }
}

#[test]
fn x4_an_exact_queue_is_full_where_a_foreign_tail_says_more_than_it_holds() {
    let parts = Parts { is_exact: true, ..Parts::promising(3, 8) };
    let _consumer = parts.consumer(0);
    let mut producer = parts.producer(Tail::at(7));
    assert_eq!((producer.len(), producer.available()), (7, 0));
    assert_eq!(producer.push_or_overrun(&send(0)), dropped(1, 1));
}
