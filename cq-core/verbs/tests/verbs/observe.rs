//! Queues with an observer: what is for the queue reaches it; and what a queue tells of how much it holds.

use cq_core::observe::{Observed, Observer};
use cq_testing::fault::{FaultInjector, Faults};
use cq_testing::rules::{self, EventFixture, Fixture, Kind, Ran};
use cq_verbs::budget::Budgeted;
use cq_verbs::counters::Counters;
use cq_verbs::device::{self, Destroy};
use cq_verbs::polling::{ArmWc, PollWc};
use cq_verbs::setup::{InUseError, ModerateError, ResizeError};

use super::counters::{Counted, counted, events, script};
use super::send as wc;
use super::*;

#[test]
fn wrappers_hand_on_what_is_for_the_queue_below() {
    let script = script().on_poll(Ok(&[])).on_poll(Ok(&[]));
    let (queue, inner) = counted(&script);
    let (mut queue, outer) = counted(FaultInjector::<_, 4>::new(queue, &Faults::seeded(1)));
    fn look(mut queue: impl ArmWc) {
        queue.took_events(2);
        queue.poll_into(&mut [wc(0)]).unwrap();
    }
    look(&mut queue);
    assert_eq!(events(&inner), (0, 2, 2));
    assert_eq!(events(&outer), (0, 2, 2));
    assert_eq!((queue.key(), queue.get_mut().injected().seed), (KEY, 1));
    assert_eq!(queue.get_mut().get_mut().arm(Notify::Next), Ok(Armed::Armed));
    let (_, recorder) = queue.into_parts();
    assert_eq!(recorder.counters().snapshot(), outer.snapshot());
    assert_eq!(events(&inner).0, 1);
}

/// A device's queue: its calls are recorded.
#[derive(Debug, Default)]
struct Native(std::sync::Mutex<Vec<String>>);

impl Native {
    fn record(&self, call: impl Into<String>) {
        self.0.lock().unwrap().push(call.into());
    }
}

impl PollCq for Native {
    type Entry = Wc;

    fn poll_into(&mut self, _: &mut [Wc]) -> Result<usize, PollError> {
        Ok(0)
    }
}

impl Arm for Native {
    fn arm(&mut self, _: Notify) -> Result<Armed, ArmError> {
        Err(ArmError::NoChannel)
    }

    fn key(&self) -> CqKey {
        KEY
    }
}

impl Destroy for Native {
    fn destroy(self) -> Result<(), InUseError<Self>> {
        Err(InUseError::new(self, "queue", "its users"))
    }
}

impl Capacity for Native {
    fn capacity(&self) -> usize {
        7
    }
}

impl device::DeviceCq for Native {
    type Handle = &'static str;

    fn handle(&self) -> &'static str {
        "its handle"
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, ResizeError> {
        self.record(format!("resize {capacity}"));
        Ok(capacity + 1)
    }

    fn moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError> {
        self.record(format!("moderate {count} {period}"));
        Err(ModerateError::Unsupported)
    }
}

#[test]
fn the_queue_of_a_device_keeps_its_methods() {
    let (mut queue, counters) = counted(Native::default());
    assert_eq!((device::DeviceCq::handle(&queue), queue.capacity()), ("its handle", 7));
    assert_eq!(device::DeviceCq::resize(&mut queue, 9), Ok(10));
    assert_eq!(device::DeviceCq::moderate(&mut queue, 2, 3), Err(ModerateError::Unsupported));
    let refused = queue.destroy().unwrap_err();
    assert_eq!(refused.to_string(), "the queue is still in use: destroy its users first");
    let mut queue = refused.handle;
    assert_eq!(*queue.get_mut().0.lock().unwrap(), ["resize 9", "moderate 2 3"]);
    assert_eq!(queue.poll_into(&mut [wc(0)]), Ok(0));
    assert_eq!(counters.snapshot().polls, 1, "it counts on");
}

fn hold(queue: impl PollWc, count: usize) -> bool {
    queue.holds_more_than(count)
}

#[test]
fn how_much_a_queue_holds_is_known_up_to_its_storage() {
    let (mut producer, mut consumer) = HeapCq::new(4).unwrap().split();
    let holds = |consumer: &Consumer<'_>, count: usize| {
        assert_eq!(consumer.len(), count);
        for fewer in 0..9 {
            assert_eq!(consumer.holds_more_than(fewer), fewer < count, "{fewer} of {count}");
        }
    };
    for count in 0..4 {
        holds(&consumer, count);
        producer.push(&wc(1)).unwrap();
    }
    holds(&consumer, 4);
    consumer.poll_into(&mut [wc(0); 3]).unwrap();
    holds(&consumer, 1);
    // Across the end of the ring.
    producer.push_batch(&[wc(1); 3]).unwrap();
    holds(&consumer, 4);
    let lent = |queue: &mut Consumer<'_>, count| hold(queue, count);
    assert!(lent(&mut consumer, 3) && !lent(&mut consumer, 4));
    assert!(!hold(&script(), 0), "not known");
    let (queue, _) = counted(Budgeted::with_capacity(consumer, 4));
    assert!(queue.holds_more_than(3) && !queue.holds_more_than(4));
}

#[test]
fn x04_a_slot_of_a_later_round_is_not_one_more() {
    let control = Control::new();
    let slots: [raw::Slot; 4] = Default::default();
    let queue = || raw_queue(&control, &slots, &[], 4).unwrap();
    // As another process could write it: the first slot, a round later.
    queue().into_producer(Tail::from_words([4, 8]), NoChannel).push(&wc(1)).unwrap();
    let consumer = queue().into_consumer(0, NoChannel);
    (0..9).for_each(|count| assert!(!consumer.holds_more_than(count), "{count}"));
}

#[cfg(not(cq_core_word32))]
#[test]
fn how_much_a_queue_with_several_producers_holds_is_known() {
    let (mut producer, mut consumer) = mpsc::HeapCq::new(4).unwrap().split();
    assert!(!consumer.holds_more_than(0));
    producer.push_batch(&[wc(1); 3]).unwrap();
    assert!(consumer.holds_more_than(2) && !consumer.holds_more_than(3));
    consumer.poll_into(&mut [wc(0)]).unwrap();
    assert!(consumer.holds_more_than(1) && !consumer.holds_more_than(2));
}

/// A queue that counts, as the transport under test.
struct Rules {
    device: Producer<'static, Wc, &'static EventCount>,
    queue: Counted<Consumer<'static, Wc, OnChannel<&'static EventCount>>>,
    channel: &'static EventCount,
}

impl Fixture for Rules {
    type Queue = Counted<Consumer<'static, Wc, OnChannel<&'static EventCount>>>;
    const CAPACITY: usize = 8;

    fn new() -> Self {
        let channel: &EventCount = Box::leak(Box::default());
        let (device, consumer) = HeapCq::new(8).unwrap().split_with(channel);
        Self { device, queue: counted(consumer).0, channel }
    }

    fn queue(&mut self) -> &mut Self::Queue {
        &mut self.queue
    }

    fn complete(&mut self, kind: Kind, wr_id: u64) {
        self.device.push(&kind.entry(wr_id)).unwrap();
    }

    fn expected(&self, kind: Kind, wr_id: u64) -> Wc {
        kind.wc(wr_id)
    }
}

impl EventFixture for Rules {
    type Channel = &'static EventCount;

    fn channel(&mut self) -> &mut Self::Channel {
        &mut self.channel
    }
}

#[test]
fn an_observed_queue_keeps_the_rules() {
    assert_eq!(rules::run(rules::all::<Rules>()), Ok(Ran { passed: 16, not_applicable: 0 }));
}

/// Sees the events only.
#[derive(Default)]
struct Taken(Vec<u32>);

impl Observer for Taken {
    fn polled(&mut self, _: &dyn PollCq<Entry = Wc>, _: usize, _: &[Wc]) {}

    fn took_events(&mut self, count: u32) {
        self.0.push(count);
    }
}

#[test]
fn n09_an_observer_is_told_of_events_and_not_that_there_are_none() {
    let end = Some(Duration::from_secs(1));
    let script = script().on_arm(Err(ArmError::NoChannel)).on_poll(Err(PollError::Failed));
    let mut cq = CompletionQueue::new(Observed::new(&script, Taken::default()));
    assert!(cq.wait(&mut [wc(0)], &mut &script, end).is_err());
    assert!(cq.poll(&mut [wc(0)]).is_err());
    assert_eq!(cq.wait(&mut [wc(0)], &mut &script, end), Ok(&[][..]));
    assert_eq!(cq.get_ref().observer().0, [0; 0]);

    let script = self::script().on_poll(Ok(&[])).on_event(Ok(KEY)).on_event(Ok(KEY));
    let mut cq = CompletionQueue::new(Observed::new(&script, Taken::default()));
    assert_eq!(cq.wait(&mut [wc(0)], &mut &script, end), Ok(&[][..]));
    assert_eq!(cq.get_ref().observer().0, [2]);
}

#[test]
fn p05_a_boxed_observer_counts_what_it_would_count_itself() {
    let counts = [true, false].map(|is_boxed| {
        let (recorder, counters) = Counters::shared();
        let mut storage = SoftCq::<4>::new();
        let (mut device, consumer) = storage.split();
        (0..4).for_each(|id| device.push(&wc(id)).unwrap());
        let poll = |queue: &mut dyn PollCq<Entry = Wc>| queue.poll_into(&mut [wc(9)]);
        if is_boxed {
            let boxed: Box<dyn Observer> = Box::new(recorder);
            assert_eq!(poll(&mut Observed::new(consumer, boxed)), Ok(1));
        } else {
            assert_eq!(poll(&mut Observed::new(consumer, recorder)), Ok(1));
        }
        counters.snapshot()
    });
    assert_eq!((counts[0], counts[0].high_water), (counts[1], 3));
}
