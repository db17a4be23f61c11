//! Queues that are had again from their sides (O3, S2).

use cq_core::channel::flag::Flag;
use static_cell::ConstStaticCell;

use super::*;

#[test]
fn o03_a_static_queue_that_overran_is_used_again() {
    static QUEUE: ConstStaticCell<SoftCq<2>> = ConstStaticCell::new(SoftCq::new());
    static FLAG: ConstStaticCell<Flag> = ConstStaticCell::new(Flag::new());

    let (raiser, events) = FLAG.take().split();
    let mut channel = events.sleeping(|_| panic!("asleep"));
    let (mut queue, mut raiser) = (QUEUE.take(), raiser);
    for round in 0..3 {
        let (producer, consumer) = queue.split_with(raiser);
        let device = thread::spawn(move || {
            let mut producer = producer;
            let dropped = producer.push_batch_or_overrun(&[0, 1, 2].map(send)).unwrap_err();
            assert!(dropped.is_first(), "{round}");
            producer
        });
        let (mut cq, producer) = (CompletionQueue::new(consumer), device.join().unwrap());
        let mut buffer = [Wc::default(); 4];
        assert_eq!(cq.wait(&mut buffer, &mut channel, None), Ok(&[0, 1].map(send)[..]));
        let overrun = WaitError::Poll(PollError::Overrun { dropped: Some(1) });
        assert_eq!(cq.wait(&mut buffer, &mut channel, None), Err(overrun));
        (queue, raiser) = SoftCq::reunite(producer, cq.into_inner()).unwrap();
    }
    let flag = raiser.reunite(channel.events).unwrap();
    let (mut producer, mut consumer) = queue.split_with(flag.split().0);
    producer.push(&send(7)).unwrap();
    assert_eq!(drain(&mut consumer), Ok(vec![7]));
}

#[test]
fn s02_a_queue_that_is_had_again_was_neither_closed_nor_abandoned() {
    let (mut storage, event_count) = (SoftCq::<4>::new(), EventCount::default());
    let (producer, mut consumer) = storage.split_with(&event_count);
    assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
    let (queue, mut signal) = SoftCq::<4>::reunite(producer, consumer).unwrap();
    assert_eq!(event_count.take(), 0);
    signal.raise();
    assert_eq!(signal.take_event(), Ok(Some(KEY)));
    let (producer, consumer) = queue.split();
    assert_eq!((producer.end(), consumer.end()), (None, None));
}

/// Neither is lost, nor are their queues changed, if they are not the two sides of one `SoftCq<4>`.
fn refused(
    (first, its): (Producer<'_>, Consumer<'_>),
    (second, other): (Producer<'_>, Consumer<'_>),
) {
    let ReuniteError(mut first, mut other) = SoftCq::<4>::reunite(first, other).unwrap_err();
    let ReuniteError(mut second, mut its) = SoftCq::<4>::reunite(second, its).unwrap_err();
    for (wr_id, (producer, consumer)) in
        [(7, (&mut first, &mut its)), (8, (&mut second, &mut other))]
    {
        producer.push(&send(wr_id)).unwrap();
        assert_eq!(drain(consumer), Ok(vec![wr_id]));
    }
}

#[test]
fn s02_sides_that_are_not_the_two_of_one_queue_are_given_back() {
    let [mut one, mut other] = [(); 2].map(|()| SoftCq::<4>::new());
    refused(one.split(), other.split());
    let heap = || HeapCq::new(4).unwrap().split();
    refused(one.split(), heap());
    refused(heap(), heap());

    let (producer, consumer) = one.split();
    let ReuniteError(producer, consumer) = SoftCq::<8>::reunite(producer, consumer).unwrap_err();
    SoftCq::<4>::reunite(producer, consumer).unwrap();
    let (producer, consumer) = heap();
    SoftCq::<4>::reunite(producer, consumer).unwrap_err();
}
