//! A queue that threads share: every completion goes to exactly one of them, in order (P1, P8), and none of
//! them can wedge the others.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::queue::{Channel as MayRaise, Consumer, OnChannel, Producer, SoftCq};
use cq_core::shared_cq::SharedCq;
use cq_core::testing::fake::{ASLEEP_FOR_EVER, Call, Script};
use cq_core::transport::{
    Armed, Block, CqKey, EventError, Events, Notify, PollError, Signal, Woken,
};
use cq_core::wc::{Wc, WcStatus};

const CAPACITY: usize = 64;
const KEY: CqKey = CqKey { index: 1, generation: 1 };

fn wc(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, 1)
}

/// Pushes `total` numbered completions, never more than fit.
fn produce(mut producer: Producer<'_, impl MayRaise>, total: u64, taken: &AtomicU64) {
    for number in 0..total {
        while number - taken.load(SeqCst) == CAPACITY as u64 {
            thread::yield_now();
        }
        producer.push(&wc(number)).unwrap();
    }
}

#[test]
fn p08_who_does_not_wait_for_the_lock_is_told_that_it_is_taken() {
    let script = Script::<4>::new(KEY).on_poll(Ok(&[wc(1)]));
    let shared = SharedCq::new(CompletionQueue::new(&script));
    let guard = shared.lock();
    assert!(shared.try_lock().is_none());
    drop(guard);
    let mut room = [wc(0)];
    assert_eq!(shared.try_lock().unwrap().poll(&mut room), Ok(&[wc(1)][..]));
    assert_eq!(shared.into_inner().poll(&mut room), Ok(&[][..]));
}

#[test]
fn p08_a_panic_under_the_lock_does_not_wedge_the_others() {
    let script = Script::<4>::new(KEY).on_poll(Ok(&[wc(1)])).on_poll(Ok(&[wc(2)]));
    let shared = SharedCq::new(CompletionQueue::new(&script));
    let mut room = [wc(0)];
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut cq = shared.lock();
        assert_eq!(cq.poll(&mut room), Ok(&[][..]), "there is one");
    }));
    assert!(outcome.is_err());
    let mut cq = shared.try_lock().expect("given back by the unwinding");
    assert_eq!(
        cq.poll(&mut room),
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
    let (mut room, mut channel) = ([wc(0); 2], Channel(&shared, &script));
    assert_eq!(shared.wait(&mut room, &mut channel, None), Ok(&[wc(1)][..]));
    assert_eq!(script.done(), Ok(()));
    let calls = script.calls();
    assert_eq!(calls[..3], [Call::Poll(2), Call::Event, Call::Arm(Notify::Next)]);
    assert_eq!(calls[calls.len() - 2..], [Call::Event, Call::Poll(2)]);

    assert_eq!(shared.wait(&mut room, &mut channel, None), Err(ASLEEP_FOR_EVER.into()));
    assert_eq!(shared.wait(&mut room, &mut channel, Some(Duration::ZERO)), Ok(&[][..]));
}

/// A channel that several look at again and again, until everything has come.
#[derive(Default)]
struct Bell {
    events: AtomicU64,
    over: AtomicBool,
}

impl Signal for &Bell {
    fn raise(&self, _: CqKey) {
        self.events.fetch_add(1, SeqCst);
    }
}

impl Events for &Bell {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let taken = self.events.fetch_update(SeqCst, SeqCst, |count| count.checked_sub(1));
        Ok(taken.ok().map(|_| KEY))
    }
}

impl Block for &Bell {
    type Instant = Instant;

    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        while self.events.load(SeqCst) == 0 {
            if self.over.load(SeqCst) {
                return Ok(Woken::Interrupted);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Woken::DeadlinePassed);
            }
            thread::yield_now();
        }
        Ok(Woken::Event)
    }
}

/// Sleeps for completions until all have come, to whomever.
fn sleep_and_take(
    shared: &SharedCq<Consumer<'_, OnChannel>>,
    mut bell: &Bell,
    total: u64,
    taken: &AtomicU64,
) {
    let mut room = [Wc::default(); 1];
    loop {
        let deadline = Instant::now() + Duration::from_secs(20);
        match shared.wait(&mut room, &mut bell, Some(deadline)) {
            Ok([]) => assert!(bell.over.load(SeqCst), "lost wake-up"),
            Ok(_) if taken.fetch_add(1, SeqCst) + 1 == total => bell.over.store(true, SeqCst),
            Ok(_) => {}
            // The producer is gone, or another sleeper has found that it is over.
            Err(WaitError::Interrupted | WaitError::Poll(PollError::Closed)) => break,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn n06_several_sleepers_get_everything() {
    const TOTAL: u64 = 5_000;
    let (mut storage, bell, taken) =
        (SoftCq::<CAPACITY>::new(), Bell::default(), AtomicU64::new(0));
    let (producer, consumer) = storage.split_with(KEY, &bell);
    let shared = SharedCq::new(CompletionQueue::new(consumer));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| sleep_and_take(&shared, &bell, TOTAL, &taken));
        }
        produce(producer, TOTAL, &taken);
    });
    assert_eq!(taken.into_inner(), TOTAL);
}
