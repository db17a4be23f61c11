//! A queue that its consumer fails while a thread waits for it: that one is woken and finds the end, whatever the producer
//! does meanwhile, or wherever it was killed (N6, S4).

use std::sync::Arc;

use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::queue::{self, HeapCq, OnChannel, mpsc};
use cq_core::shared_cq::SharedCq;
use cq_core::sync::{Site, death};
use cq_core::transport::{Arm, Armed, CqKey, Notify, PollCq, PollError, Signal};
use cq_core::wc::Wc;
use cq_verbs::polling::ArmWc;
use loom::thread;
use verify_loom::channel::{Channel, LOST, take_some};
use verify_loom::harness::model;
use verify_loom::queue::{KEY, numbered};
use verify_loom::threads::spawn;

const FAILED: WaitError = WaitError::Poll(PollError::Failed);

/// Raises events of a thread that may be killed before it does.
#[derive(Clone)]
struct Raiser(Channel);

impl Signal for Raiser {
    fn key(&self) -> CqKey {
        KEY
    }

    fn raise(&self) {
        if death::step() {
            self.0.raise();
        }
    }
}

type Waits = OnChannel<Raiser>;

/// One thread sleeps in `SharedCq::wait`, another fails the queue. The producer hangs.
fn fail_asleep<P: 'static, C: ArmWc + 'static>(
    (producer, consumer): (P, C),
    mut channel: Channel,
    fail: fn(&mut C),
) {
    let shared = Arc::new(SharedCq::new(CompletionQueue::new(consumer)));
    let fails = spawn((&channel, &shared), move |(channel, shared)| {
        fail(shared.lock().get_mut());
        channel.hang_up();
    });
    assert_eq!(shared.wait(&mut [Wc::default()], &mut channel, None), Err(FAILED));
    fails.join().unwrap();
    drop(producer);
}

#[test]
fn n06_who_sleeps_is_woken_as_another_thread_fails_the_queue() {
    model("failed as the producer hangs", || {
        let channel = Channel::new(1);
        let sides = HeapCq::new(2).unwrap().split_with(Raiser(channel.clone()));
        fail_asleep(sides, channel, queue::Consumer::<Wc, Waits>::fail);
    });
    model("failed as several producers hang", || {
        let channel = Channel::new(1);
        let sides = mpsc::HeapCq::new(2).unwrap().split_with(Raiser(channel.clone()));
        fail_asleep(sides, channel, mpsc::SharedConsumer::<Wc, Waits>::fail);
    });
}

const CHANGED: &str = "an end that was reported has changed";

/// The producer overruns the queue as the consumer fails it. What the first poll reports stays, for both sides.
#[test]
fn o03_an_end_that_was_reported_stays() {
    model("failed as the producer overruns", || {
        let (mut producer, mut consumer) = HeapCq::new(1).unwrap().split();
        producer.push(&numbered(1)).unwrap();
        let overruns = thread::spawn(move || {
            let _dropped = producer.push_or_overrun(&numbered(2));
            producer
        });
        consumer.fail();
        let mut poll = || consumer.poll_into(&mut [Wc::default()]);
        // The second one is stored if the first has been polled, and the failure not been seen.
        let reported = (0..3).find_map(|_| poll().err()).unwrap();
        let producer = overruns.join().unwrap();
        assert_eq!(poll(), Err(reported), "{CHANGED}");
        let is_failed = producer.end() == Some(queue::End::Failed);
        assert_eq!(is_failed, reported == PollError::Failed, "{CHANGED}");
    });
}

/// At each step of a push: the last one is the event, after the queue was disarmed.
#[test]
fn n06_who_sleeps_is_woken_by_the_failure_of_a_queue_whose_producer_was_killed() {
    model("failed, and the producer was killed", || {
        for step in 0.. {
            let mut channel = Channel::new(1);
            let queue = HeapCq::new(2).unwrap();
            let (mut producer, mut consumer) = queue.split_with(Raiser(channel.clone()));
            assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
            let lived = death::killed_at(step, || producer.push(&numbered(1)));
            consumer.fail();
            channel.hang_up();
            channel.sleep();
            if lived.is_some() {
                break;
            }
        }
    });
}

/// A consumer that has failed the queue may find it empty, because a slot before the end is not published yet.
#[test]
fn n06_who_waits_for_the_last_one_before_a_failure_is_woken() {
    for on in [Notify::Next, Notify::Solicited] {
        model(format!("failed as a producer pushes, armed for {on:?}"), move || {
            let mut channel = Channel::new(1);
            let queue = mpsc::HeapCq::new(2).unwrap();
            let (mut producer, mut consumer) = queue.split_with(Raiser(channel.clone()));
            let device = spawn(&channel, move |channel| {
                let _ = producer.push(&numbered(1));
                channel.hang_up();
                producer
            });
            consumer.fail();
            let (mut cq, mut buffer) = (CompletionQueue::new(consumer), [Wc::default()]);
            let end = loop {
                match take_some(&mut cq, &mut channel, on, &mut buffer) {
                    Ok(_) => {}
                    Err(end) => break end,
                }
            };
            assert_eq!(end, FAILED);
            drop(device.join().unwrap());
        })
        .must_fail_without([Site::PushFence, Site::ArmFence], LOST);
    }
}
