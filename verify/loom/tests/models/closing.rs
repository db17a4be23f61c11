//! The end of a queue whose producers go: everything that they stored is handed out, then the end is reported, once and
//! for ever; who sleeps is woken.

use cq_core::queue::{HeapCq, mpsc};
use cq_core::sync::Site;
use cq_core::transport::{Notify, PollCq, PollError};
use cq_core::wc::Wc;
use cq_testing::entries::{Bytes4, Bytes16, Spare2};
use loom::thread;
use verify_loom::channel::{Channel, LOST, take_all};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::queue::{Modelled, numbered};
use verify_loom::shared::{Taken, entry_of, of};
use verify_loom::threads::spawn;

const TOO_EARLY: &str = "the end came before a stored completion";

/// Polls until the end; says how many came.
fn drain<C: PollCq<Entry: Modelled>>(consumer: &mut C, taken: &mut Taken) {
    let mut buffer = [C::Entry::numbered(0); 2];
    loop {
        match consumer.poll_into(&mut buffer) {
            Ok(0) => thread::yield_now(),
            Ok(count) => taken.add(&buffer[..count]),
            Err(error) => return assert_eq!(error, PollError::Closed),
        }
    }
}

fn one_goes<E: Modelled>(name: &str) {
    model(name, || {
        let (mut producer, mut consumer) = HeapCq::<E>::of_entries(2).unwrap().split();
        let producer = thread::spawn(move || {
            (1..=2).for_each(|nth| producer.push(&entry_of::<E>(0, nth)).unwrap());
        });
        let mut taken = Taken::default();
        drain(&mut consumer, &mut taken);
        assert_eq!(taken.count(), 2, "{TOO_EARLY}");
        producer.join().unwrap();
    })
    .must_fail_without([Site::Latch, Site::ReadLatch], TOO_EARLY)
    .must_fail_without([Site::Publish], UNORDERED);
}

#[test]
fn one_producer_s_last_completion_comes_before_the_end() {
    one_goes::<Wc>("one producer goes");
    one_goes::<Bytes16>("one producer goes, 16 bytes");
    one_goes::<Bytes4>("one producer goes, 4 bytes");
    one_goes::<Spare2>("one producer goes, 2 spare bits");
}

/// One producer is here, so that the consumer knows of nobody else that it is the last one.
#[test]
fn the_last_of_several_producers_ends_the_queue() {
    model("two producers go", || {
        let (mut here, mut consumer) = mpsc::HeapCq::new(2).unwrap().split();
        let mut there = here.clone();
        let there = thread::spawn(move || there.push(&of(1, 1)).unwrap());
        here.push(&of(0, 1)).unwrap();
        drop(here);
        let mut taken = Taken::default();
        drain(&mut consumer, &mut taken);
        assert_eq!(taken.count(), 2, "{TOO_EARLY}");
        there.join().unwrap();
    })
    .must_fail_without([Site::Leave, Site::Latch, Site::ReadLatch], TOO_EARLY);
}

#[test]
fn n06_who_sleeps_is_woken_by_the_end() {
    model("asleep as the producer goes", || {
        let mut channel = Channel::new(1);
        let (mut producer, consumer) = HeapCq::new(2).unwrap().split_with(channel.clone());
        let producer = spawn(&channel, |channel| {
            producer.push(&numbered(1)).unwrap();
            drop(producer);
            channel.hang_up();
        });
        let taken = take_all(consumer, &mut channel, Notify::Next, &mut [Wc::default()], 2);
        assert_eq!(taken, 1, "{TOO_EARLY}");
        producer.join().unwrap();
    })
    .must_fail_without([Site::PushFence, Site::ArmFence], LOST);
}
