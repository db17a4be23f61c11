use crate::queue::mpsc::SoftCq;
use crate::sync;
use crate::transport::PollCq;
use crate::wc::{Wc, WcStatus};

#[test]
fn s02_a_queue_with_more_producers_than_can_be_counted_is_not_closed() {
    let mut storage = SoftCq::<4>::new();
    let (mut producer, mut consumer) = storage.split();
    // As if all but one of those that can be counted were leaked.
    sync::store_u32(&producer.shared.producers, u32::MAX - 1);
    drop([(); 4].map(|()| producer.clone()));
    assert_eq!(sync::load_u32(&producer.shared.producers), u32::MAX, "unknown from then on");
    assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(0), "one is alive");
    producer.push(&Wc::new(7, WcStatus::SUCCESS, 1)).unwrap();
    assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(1));
    drop(producer);
    assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(0));
}
