//! A queue that threads share: every completion goes to exactly one of them, in order (P1, P8), and none of
//! them can wedge the others.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use cq_core::shared_cq::SharedCq;

use super::send as wc;
use super::*;

#[test]
fn p08_who_does_not_wait_for_the_lock_is_told_that_it_is_taken() {
    let script = Script::<4>::new(KEY).on_poll(Ok(&[wc(1)]));
    let shared = SharedCq::new(CompletionQueue::new(&script));
    let guard = shared.lock();
    assert!(shared.try_lock().is_none());
    drop(guard);
    let mut buffer = [wc(0)];
    assert_eq!(shared.try_lock().unwrap().poll(&mut buffer), Ok(&[wc(1)][..]));
    assert_eq!(shared.into_inner().poll(&mut buffer), Ok(&[][..]));
}

#[test]
fn p08_a_panic_under_the_lock_does_not_wedge_the_others() {
    let script = Script::<4>::new(KEY).on_poll(Ok(&[wc(1)])).on_poll(Ok(&[wc(2)]));
    let shared = SharedCq::new(CompletionQueue::new(&script));
    let mut buffer = [wc(0)];
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut cq = shared.lock();
        assert_eq!(cq.poll(&mut buffer), Ok(&[][..]), "there is one");
    }));
    assert!(outcome.is_err());
    let mut cq = shared.try_lock().expect("given back by the unwinding");
    assert_eq!(
        cq.poll(&mut buffer),
        Ok(&[wc(2)][..]),
        "what was polled is gone, the rest is not (P2)"
    );
}

/// Looks at the lock whenever its sleeper does something with it.
struct Channel<'a>(&'a SharedCq<&'a Script<8>>, &'a Script<8>);

impl Events for Channel<'_> {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        assert!(self.0.try_lock().is_some(), "looks for events with the lock held");
        self.1.take_event()
    }
}

impl Block for Channel<'_> {
    type Instant = Duration;

    fn block(&mut self, deadline: Option<Duration>) -> Result<Woken, EventError> {
        assert!(self.0.try_lock().is_some(), "sleeps with the lock held");
        self.1.block(deadline)
    }
}

#[test]
fn n06_waiting_polls_and_arms_under_the_lock_and_sleeps_without() {
    let script = Script::new(KEY)
        .on_arm(Ok(Armed::Armed))
        .on_block(Ok(Duration::ZERO))
        .on_event(Ok(KEY))
        .on_poll(Ok(&[wc(1)]));
    let shared = SharedCq::new(CompletionQueue::new(&script));
    let (mut buffer, mut channel) = ([wc(0); 2], Channel(&shared, &script));
    assert_eq!(shared.wait(&mut buffer, &mut channel, None), Ok(&[wc(1)][..]));
    assert_eq!(script.done(), Ok(()));
    let calls = script.calls();
    assert_eq!(calls[..3], [Call::Poll(2), Call::Event, Call::Arm(Notify::Next)]);
    assert_eq!(calls[calls.len() - 2..], [Call::Event, Call::Poll(2)]);

    assert_eq!(shared.wait(&mut buffer, &mut channel, None), Err(ASLEEP_FOR_EVER.into()));
    assert_eq!(shared.wait(&mut buffer, &mut channel, Some(Duration::ZERO)), Ok(&[][..]));
}

#[test]
fn n06_several_sleepers_get_everything() {
    const TOTAL: u64 = if cfg!(miri) { 100 } else { 5_000 };
    let (mut storage, event_count, taken) =
        (SoftCq::<64>::new(), EventCount::default(), AtomicU64::new(0));
    let (mut producer, consumer) = storage.split_with(&event_count);
    let shared = SharedCq::new(CompletionQueue::new(consumer));
    let sleeper = || {
        let mut buffer = [Wc::default(); 1];
        loop {
            match shared.wait(&mut buffer, &mut &event_count, None) {
                Ok(batch) => _ = taken.fetch_add(batch.len() as u64, SeqCst),
                Err(WaitError::Poll(PollError::Closed)) => return (&event_count).raise(), // for the next
                Err(error) => panic!("{error}"),
            }
        }
    };
    thread::scope(|scope| {
        (0..3).for_each(|_| drop(scope.spawn(sleeper)));
        (0..TOTAL).for_each(|nth| producer.push_or_wait(&wc(nth), thread::yield_now).unwrap());
        drop(producer);
    });
    assert_eq!(taken.into_inner(), TOTAL);
}
