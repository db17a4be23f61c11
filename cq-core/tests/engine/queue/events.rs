//! Names of events, and notification through the control (N1, N8, N11, N12).

use std::cell::Cell;

use cq_core::queue::{NoChannel, OnChannel, SoftCq};
use cq_core::transport::{Arm, Armed, CqKey, Notify, PollCq};
use cq_core::wc::Wc;

use super::device::with_each;
use super::{KEY, Parts, failed, send};

#[test]
fn n08_events_carry_the_name_that_the_queue_was_given() {
    with_each(|sides| assert_eq!(sides.app.key(), KEY, "{}", sides.kind));
    let other = CqKey { index: 0, generation: 7 };
    assert_eq!(OnChannel::named(other).key, other);
}

#[test]
fn n11_a_queue_without_a_channel_raises_nothing() {
    // That it can't be armed is a doctest of `Consumer`: it does not compile.
    let mut storage = SoftCq::<2>::new();
    let (mut producer, mut consumer) = storage.split();
    producer.push(&failed(0)).unwrap();
    assert_eq!(consumer.poll(&mut [Wc::default(); 4]), Ok(1));
}

/// What a producer without a channel raises through the control: `urgent`, and whether it holds that back.
fn notify(parts: &Parts, urgent: bool, holds: impl FnOnce(Notify) -> bool) -> u32 {
    let raised = Cell::new(0);
    parts.control.notify_unless(urgent, holds, || raised.set(raised.get() + 1));
    raised.get()
}

#[test]
fn n12_a_producer_without_a_channel_notifies_through_the_control() {
    let parts = Parts::new(4);
    let mut consumer = parts.queue().into_consumer(0, OnChannel::named(KEY));
    let mut producer = parts.queue().into_producer(cq_core::queue::Tail::at(0), NoChannel);
    assert_eq!(notify(&parts, true, |_| false), 0, "not armed");
    assert_eq!(consumer.arm(Notify::Solicited), Ok(Armed::Armed));
    producer.push(&send(0)).unwrap();
    assert_eq!(notify(&parts, false, |_| false), 0, "not what the consumer waits for");
    assert_eq!(notify(&parts, true, |_| true), 0, "held back");
    assert_eq!(notify(&parts, true, |_| false), 1);
    assert_eq!(notify(&parts, true, |_| false), 0, "disarmed");
}

#[test]
fn n12_an_event_that_is_held_back_leaves_the_arm_in_force() {
    for on in [Notify::Next, Notify::Solicited] {
        let parts = Parts::new(4);
        let mut consumer = parts.queue().into_consumer(0, OnChannel::named(KEY));
        assert_eq!(consumer.arm(on), Ok(Armed::Armed));
        for _ in 0..2 {
            let asked = Cell::new(None);
            let holds = |armed| {
                asked.set(Some(armed));
                true
            };
            assert_eq!(notify(&parts, true, holds), 0);
            assert_eq!(asked.get(), Some(on), "holding back depends on what was armed for");
        }
        let fired = [false, true, true].map(|urgent| notify(&parts, urgent, |_| false));
        assert_eq!(fired, [u32::from(on == Notify::Next), u32::from(on == Notify::Solicited), 0]);
    }
}

#[test]
fn n12_nothing_is_held_back_that_the_consumer_did_not_ask_for() {
    let not_asked = |_| panic!("there is no event to hold back");
    let parts = Parts::new(4);
    assert_eq!(notify(&parts, true, not_asked), 0, "not armed");
    let mut consumer = parts.queue().into_consumer(0, OnChannel::named(KEY));
    let _ = consumer.arm(Notify::Solicited).unwrap();
    assert_eq!(notify(&parts, false, not_asked), 0, "not urgent");
}

#[test]
fn n01_a_signal_that_panics_loses_no_completion() {
    struct Panics;
    impl cq_core::transport::Signal for Panics {
        fn raise(&self, _: CqKey) {
            panic!("as it should");
        }
    }
    let mut storage = SoftCq::<4>::new();
    let (mut producer, mut consumer) = storage.split_with(KEY, Panics);
    for number in 0..2 {
        let _ = consumer.arm(Notify::Next).unwrap();
        let push = std::panic::AssertUnwindSafe(|| producer.push(&send(number)));
        assert!(std::panic::catch_unwind(push).is_err());
        assert_eq!(super::drain(&mut consumer), Ok(vec![number]), "each once");
    }
}
