//! What sides find that come after the end of a queue, or of another side (S5, O3).

use super::*;

#[test]
fn o03_nothing_is_polled_after_the_end_was_reported_despite_a_concurrent_push() {
    for fails in [true, false] {
        let parts = Parts::new(4);
        let (mut producer, mut consumer) = parts.sides(0);
        if fails {
            consumer.fail();
        } else {
            // Overrun, and polled to the end.
            producer.push_batch_or_overrun(&[0, 1, 2, 3, 4].map(send)).unwrap_err();
            assert_eq!(drain(&mut consumer).unwrap().len(), 4);
        }
        let error = drain(&mut consumer).unwrap_err();
        // A producer that had looked for room before: one with a control of its own, in which nothing has ended.
        let (at, other) = (consumer.position(), Control::new());
        let late = raw_queue(&other, &parts.slots, &[], 4).unwrap();
        late.into_producer(Tail::from_words([at, at + 4]), NoChannel).push(&send(9)).unwrap();
        assert_eq!((consumer.is_empty(), consumer.len()), (true, 0));
        assert_eq!(drain(&mut consumer), Err(error));
        let mut next = parts.consumer(at);
        assert!(next.is_empty());
        for _ in 0..2 {
            assert_eq!(drain(&mut next), Err(error), "nor by a consumer that is made anew");
        }
    }
}
