//! What a producer finds unpolled, and how it waits for a free slot (S1).

use super::*;

#[test]
fn the_high_water_is_the_most_that_was_found_unpolled() {
    each_lone!(|producer, consumer, _event_count| {
        assert_eq!(producer.measure_high_water(), 0);
        producer.push(&entry(0)).unwrap();
        assert_eq!(producer.measure_high_water(), 1, "now");
        consumer.poll_into(&mut [Wc::default()]).unwrap();
        (1..4).for_each(|number| producer.push(&entry(number)).unwrap());
        consumer.poll_into(&mut [Wc::default()]).unwrap();
        // What was seen to be free is filled: the producer looks, and finds two.
        producer.push(&entry(4)).unwrap();
        assert_eq!(producer.measure_high_water(), 3);
        consumer.poll_into(&mut [Wc::default(); 4]).unwrap();
        assert_eq!(producer.len(), 0);
        assert_eq!(producer.measure_high_water(), 3, "a mark does not fall");
        (0..4).for_each(|number| producer.push(&entry(number)).unwrap());
        assert_eq!(producer.measure_high_water(), 4);
        consumer.poll_into(&mut [Wc::default(); 4]).unwrap();
        producer.push(&entry(4)).unwrap();
        assert_eq!(producer.measure_high_water(), 4);
    });
}

#[test]
fn the_high_water_is_also_what_was_found_when_nobody_asked() {
    each_lone!(|producer, consumer, _event_count| {
        (0..4).for_each(|number| producer.push(&entry(number)).unwrap());
        consumer.poll_into(&mut [Wc::default()]).unwrap();
        // Here the producer looks, and finds three.
        producer.push(&entry(4)).unwrap();
        consumer.poll_into(&mut [Wc::default(); 4]).unwrap();
        assert_eq!(producer.measure_high_water(), 3);
    });
}

#[test]
fn s01_a_push_that_waits_waits_as_long_as_the_queue_is_full() {
    macro_rules! waits {
        ($queue:path, $ended:expr) => {
            let (mut producer, consumer) = <$queue>::new(2).unwrap().split();
            let (consumer, mut waits) = (RefCell::new(Some(consumer)), 0);
            for number in 0..4 {
                let wait = || {
                    waits += 1;
                    if waits % 3 == 0 {
                        let mut consumer = consumer.borrow_mut();
                        consumer.as_mut().unwrap().poll_into(&mut [Wc::default()]).unwrap();
                    }
                };
                assert_eq!(producer.push_or_wait(&entry(number), wait), Ok(()));
            }
            assert_eq!(waits, 6);
            let gone = producer.push_or_wait(&entry(4), || drop(consumer.take()));
            assert_eq!(gone, Err($ended(End::Abandoned)), "it does not wait for ever");
        };
    }
    waits!(HeapCq, std::convert::identity);
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    {
        waits!(cq_core::queue::mpsc::HeapCq, cq_core::queue::mpsc::PushError::Ended);
    }
}

#[test]
fn s01_a_batch_that_waits_is_stored_in_order_as_slots_are_free() {
    each_lone!(|producer, consumer, _event_count| {
        let batch: Vec<_> = (0..11).map(entry).collect();
        let mut polled = Vec::new();
        let wait = || polled.extend(drain(&mut consumer).unwrap());
        assert_eq!(producer.push_batch_or_wait(&batch, wait), Ok(()));
        polled.extend(drain(&mut consumer).unwrap());
        assert!(polled.into_iter().eq(0..11));
        let wait = || unreachable!("there is nothing to wait for");
        assert_eq!(producer.push_batch_or_wait(&batch[..0], wait), Ok(()));
        let gone = producer.push_batch_or_wait(&batch, || consumer.fail());
        assert_eq!(
            gone,
            Err(BatchError { stored: 4, why: End::Failed }),
            "it does not wait for ever"
        );
    });
}
