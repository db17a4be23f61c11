//! Names of events, and notification through the control (N1, N8, N11, N12).

use super::device::with_each;
use super::*;

#[test]
fn n08_events_carry_the_name_that_the_queue_was_given() {
    with_each(|sides| assert_eq!(sides.app.key(), KEY, "{}", sides.kind));
    let (parts, other) = (Parts::new(4), CqKey { index: 0, generation: 7 });
    assert_eq!(parts.queue().into_consumer(0, OnChannel::named(other)).key(), other);
}

/// What a producer without a channel raises through the control: `urgent`, and whether it holds that back.
fn notify(parts: &Parts, urgent: bool, holds: impl FnOnce(Notify) -> bool) -> u32 {
    let raised = Cell::new(0);
    parts.control.notify_unless(urgent, holds, || raised.set(raised.get() + 1));
    raised.get()
}

#[test]
fn n12_a_producer_without_a_channel_notifies_through_the_control() {
    let not_asked = |_| panic!("there is no event to hold back");
    for on in [Notify::Next, Notify::Solicited] {
        let parts = Parts::new(4);
        let mut consumer = parts.queue().into_consumer(0, OnChannel::named(KEY));
        assert_eq!(notify(&parts, true, not_asked), 0, "not armed");
        assert_eq!(consumer.arm(on), Ok(Armed::Armed));
        parts.producer(Tail::at(0)).push(&send(0)).unwrap();
        if on == Notify::Solicited {
            assert_eq!(notify(&parts, false, not_asked), 0, "not what the consumer waits for");
        }
        for _ in 0..2 {
            let asked = Cell::new(None);
            let holds = |armed| asked.replace(Some(armed)).is_none();
            assert_eq!(notify(&parts, true, holds), 0, "the arm stays in force");
            assert_eq!(asked.get(), Some(on), "holding back depends on what was armed for");
        }
        let fired = [false, true, true].map(|urgent| notify(&parts, urgent, |_| false));
        assert_eq!(fired, [u32::from(on == Notify::Next), u32::from(on == Notify::Solicited), 0]);
    }
}

#[test]
fn n01_a_signal_that_panics_loses_no_completion() {
    #[derive(Clone)]
    struct Panics;
    impl cq_core::transport::Signal for Panics {
        fn key(&self) -> CqKey {
            KEY
        }

        fn raise(&self) {
            panic!("as it should");
        }
    }
    let mut storage = SoftCq::<4>::new();
    let (mut producer, mut consumer) = storage.split_with(Panics);
    for number in 0..2 {
        let _ = consumer.arm(Notify::Next).unwrap();
        let push = std::panic::AssertUnwindSafe(|| producer.push(&send(number)));
        assert!(std::panic::catch_unwind(push).is_err());
        assert_eq!(super::drain(&mut consumer), Ok(vec![number]), "each once");
    }
}

#[test]
fn n01_a_closure_is_raised_for_who_is_armed_and_not_for_who_was_before_the_queue_was_split_again() {
    let raised = Cell::new(false);
    let raise = (KEY, || assert!(!raised.replace(true), "once"));
    let mut storage = SoftCq::<4>::new();
    let (mut producer, mut consumer) = storage.split_with(raise);
    assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
    producer.push(&send(1)).unwrap();
    assert!(raised.take());
    assert_eq!(super::drain(&mut consumer), Ok(vec![1]));
    assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
    // Dropping one of them would end the queue, which raises an event as well.
    std::mem::forget((producer, consumer));
    let (mut producer, _consumer) = storage.split_with(raise);
    producer.push(&send(2)).unwrap();
    assert!(!raised.take());
}

/// A signal that panics every other time.
pub(super) fn panicking() -> (impl Signal + Clone, std::sync::Arc<AtomicU32>) {
    let raised = std::sync::Arc::new(AtomicU32::new(0));
    let counts = raised.clone();
    let raise = move || assert!(counts.fetch_add(1, SeqCst) % 2 == 1, "as it should");
    ((KEY, raise), raised)
}

#[test]
fn n06_a_signal_that_panics_is_raised_again_by_the_next_completion() {
    let (signal, raised) = panicking();
    let (mut producer, mut consumer) = HeapCq::new(4).unwrap().split_with(signal);
    assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
    assert!(catch_unwind(AssertUnwindSafe(|| producer.push(&send(1)))).is_err());
    (2..4).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
    assert_eq!((raised.load(SeqCst), drain(&mut consumer)), (2, Ok(vec![1, 2, 3])));
}

/// What is dropped is counted before the event is raised.
#[test]
fn o03_a_signal_that_panics_hides_no_overrun() {
    macro_rules! overruns {
        ($queue:path) => {
            let (signal, raised) = panicking();
            let (mut producer, mut consumer) = <$queue>::new(2).unwrap().split_with(signal);
            assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
            let batch = [1, 2, 3, 4, 5].map(send);
            let push = || producer.push_batch_or_overrun(&batch);
            assert!(catch_unwind(AssertUnwindSafe(push)).is_err());
            assert_eq!(raised.load(SeqCst), 1, "for all of them");
            assert_eq!(consumer.end(), Some(End::Overrun { dropped: 3 }));
            assert_eq!(drain(&mut consumer), Ok(vec![1, 2]));
            assert_eq!(drain(&mut consumer), Err(PollError::Overrun { dropped: Some(3) }));
        };
    }
    overruns!(HeapCq);
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    {
        overruns!(cq_core::queue::mpsc::HeapCq);
    }
}
