//! The end of a queue that its consumer leaves, by failing it or by going: a producer that finds out sees everything that
//! the consumer did before, and so may use again what the consumer had read (S3, S4).

use std::sync::Arc;

use cq_core::queue::{self, HeapCq, NoChannel, Tail, mpsc};
use cq_core::sync::Site;
use verify_loom::harness::{Model, UNORDERED, model};
use verify_loom::queue::{Queue, numbered};
use verify_loom::threads::{Watched, spawn};

type Lone = queue::Producer<'static>;
type Shared = mpsc::SharedProducer<'static>;

/// A way in which a producer finds out, and its name.
type Way<P> = (&'static str, fn(&mut P) -> bool);

/// All of them. The queues here have free slots, so that none is refused for another reason.
macro_rules! ways {
    ($producer:ty) => {{
        let ways: [Way<$producer>; 5] = [
            ("push", |producer| producer.push(&numbered(1)).is_err()),
            ("push_batch", |producer| producer.push_batch(&[1, 2].map(numbered)).is_err()),
            ("push_or_overrun", |producer| producer.push_or_overrun(&numbered(1)).is_err()),
            ("push_batch_or_overrun", |producer| {
                producer.push_batch_or_overrun(&[1, 2].map(numbered)).is_err()
            }),
            ("end", |producer| producer.end().is_some()),
        ];
        ways
    }};
}

/// The consumer reads a buffer and leaves; a producer that finds out writes to the buffer.
fn reuse<P: 'static>(mut producer: P, leave: impl FnOnce(), finds_out: fn(&mut P) -> bool) {
    let buffer = Arc::new(Watched::default());
    let producer = spawn(&buffer, move |buffer| {
        if finds_out(&mut producer) {
            buffer.write();
        }
        producer
    });
    buffer.read();
    leave();
    drop(producer.join().unwrap());
}

fn must_be_ordered(model: &Model) {
    model.must_fail_without([Site::Refuse, Site::SeeRefusal], UNORDERED);
}

#[test]
fn s03_who_finds_that_the_consumer_is_gone_sees_what_it_did() {
    for (way, finds_out) in ways!(Lone) {
        must_be_ordered(&model(format!("the consumer goes, found by {way}"), move || {
            let (producer, consumer) = HeapCq::new(4).unwrap().split();
            reuse(producer, move || drop(consumer), finds_out);
        }));
    }
    for (way, finds_out) in ways!(Shared) {
        must_be_ordered(&model(
            format!("the consumer of several goes, found by {way}"),
            move || {
                let (producer, consumer) = mpsc::HeapCq::new(4).unwrap().split();
                reuse(producer, move || drop(consumer), finds_out);
            },
        ));
    }
}

#[test]
fn s04_who_finds_that_the_queue_has_failed_sees_what_the_consumer_did() {
    for (way, finds_out) in ways!(Lone) {
        must_be_ordered(&model(format!("the consumer fails, found by {way}"), move || {
            let (producer, mut consumer) = HeapCq::new(4).unwrap().split();
            reuse(producer, || consumer.fail(), finds_out);
        }));
    }
    for (way, finds_out) in ways!(Shared) {
        must_be_ordered(&model(
            format!("the consumer of several fails, found by {way}"),
            move || {
                let (producer, mut consumer) = mpsc::HeapCq::new(4).unwrap().split();
                reuse(producer, || consumer.fail(), finds_out);
            },
        ));
    }
}

/// A raw queue, whose producers take turns: the next one, and who only looks at its state.
#[test]
fn s04_who_finds_that_a_raw_queue_has_failed_sees_what_the_consumer_did() {
    let ways: [Way<Arc<Queue>>; 2] = [
        ("push", |queue| queue.producer(Tail::at(0)).push(&numbered(1)).is_err()),
        ("end", |queue| queue.open().control().end() == Some(queue::End::Failed)),
    ];
    for (way, finds_out) in ways {
        must_be_ordered(&model(
            format!("the consumer of a raw queue fails, found by {way}"),
            move || {
                let queue = Queue::new(4);
                let mut consumer = queue.open().into_consumer(0, NoChannel);
                reuse(Arc::clone(&queue), || consumer.fail(), finds_out);
            },
        ));
    }
}
