//! Many threads that push at once (C10, P2, O3).

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Instant;

use cq_core::queue::mpsc::{HeapCq, Producer, SoftCq};
use cq_core::queue::{Channel, TryPushError};
use cq_core::testing::shared_queue_at;
use cq_core::transport::{PollCq, PollError};
use cq_core::wc::Wc;

use super::super::{DEADLINE, recv};
use super::wraps;

pub const PRODUCERS: u64 = 3;

/// Checks that each producer's completions come in order, `wr_id` being the producer's number and the
/// number of the completion.
#[derive(Default)]
pub struct Order([u64; PRODUCERS as usize]);

impl Order {
    pub fn check(&mut self, wcs: &[Wc]) {
        for wc in wcs {
            let last = &mut self.0[(wc.wr_id() >> 32) as usize];
            *last += 1;
            assert_eq!(wc.wr_id() & u64::from(u32::MAX), *last, "lost, doubled or out of order");
        }
    }

    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }
}

pub fn of(producer: u64, nth: u64) -> Wc {
    recv(producer << 32 | nth)
}

/// How many of each producer's completions were polled, which is what lets it go on.
#[derive(Default)]
pub struct Polled([AtomicU64; PRODUCERS as usize]);

impl Polled {
    pub fn set(&self, order: &Order) {
        for (polled, count) in self.0.iter().zip(order.0) {
            polled.store(count, SeqCst);
        }
    }

    /// Waits until a producer has no more than `unpolled` of its first `nth` completions in the queue.
    pub fn wait(&self, which: u64, nth: u64, unpolled: u64) {
        let start = Instant::now();
        while nth > self.0[which as usize].load(SeqCst) + unpolled {
            assert!(start.elapsed() < DEADLINE, "jammed");
            thread::yield_now();
        }
    }

    /// Pushes alone and in batches, never more than a share of the queue.
    pub fn push<C: Channel>(
        &self,
        which: u64,
        producer: &mut Producer<'_, C>,
        share: u64,
        pushes: u64,
    ) {
        let mut nth = 0;
        while nth < pushes {
            let batch = (1 + nth % 5).min(share).min(pushes - nth);
            self.wait(which, nth + batch, share);
            let wcs: Vec<_> = (1..=batch).map(|more| of(which, nth + more)).collect();
            match &wcs[..] {
                [wc] => producer.push(wc).unwrap(),
                wcs => producer.push_batch(wcs).unwrap(),
            }
            nth += batch;
        }
    }
}

fn lose_nothing_across_wraps<const N: usize>() {
    const PUSHES: u64 = 1000;
    for wrap in wraps(N) {
        let mut storage = shared_queue_at::<N>(wrap - 100);
        let (producer, mut consumer) = storage.split();
        let polled = Polled::default();
        let (start, mut order) = (Instant::now(), Order::default());
        thread::scope(|threads| {
            for which in 0..PRODUCERS {
                let (mut producer, polled) = (producer.clone(), &polled);
                let share = N as u64 / PRODUCERS;
                threads.spawn(move || polled.push(which, &mut producer, share, PUSHES));
            }
            let mut out = [Wc::default(); 7];
            while order.count() < PRODUCERS * PUSHES {
                let count = consumer.poll(&mut out).unwrap();
                order.check(&out[..count]);
                if count == 0 {
                    thread::yield_now();
                }
                polled.set(&order);
                assert!(start.elapsed() < DEADLINE, "jammed");
            }
        });
        assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(0));
    }
}

#[test]
fn c10_p02_many_threads_lose_nothing_across_every_wrap() {
    lose_nothing_across_wraps::<4>();
    lose_nothing_across_wraps::<64>();
}

#[test]
fn s01_many_threads_that_wait_for_slots_never_overrun() {
    const PUSHES: u64 = 1000;
    let (producer, mut consumer) = HeapCq::new(3).unwrap().split();
    let (start, mut order) = (Instant::now(), Order::default());
    thread::scope(|threads| {
        for which in 0..PRODUCERS {
            let mut producer = producer.clone();
            threads.spawn(move || {
                let mut nth = 0;
                while nth < PUSHES {
                    let batch: Vec<_> =
                        (nth + 1..=PUSHES.min(nth + 1 + which)).map(|nth| of(which, nth)).collect();
                    match producer.try_push_batch(&batch) {
                        Ok(stored) => nth += stored as u64,
                        Err(error) => assert_eq!(error, TryPushError::Full),
                    }
                    assert!(producer.len() <= 4 && producer.free_slots() <= 4);
                    assert!(start.elapsed() < DEADLINE, "jammed");
                    thread::yield_now();
                }
            });
        }
        drop(producer);
        let mut out = [Wc::default(); 3];
        loop {
            match consumer.poll(&mut out) {
                Ok(count) => order.check(&out[..count]),
                Err(error) => break assert_eq!(error, PollError::Closed),
            }
            thread::yield_now();
        }
    });
    assert_eq!(order.count(), PRODUCERS * PUSHES);
}

#[test]
fn o01_a_queue_that_is_never_full_never_looks_full() {
    // One producer pushes into a queue of many, and the consumer polls at once; another only looks.
    const PUSHES: u64 = 100_000;
    let (mut producer, mut consumer) = HeapCq::new(1024).unwrap().split();
    let (looks, polled) = (producer.clone(), AtomicU64::new(0));
    let start = Instant::now();
    thread::scope(|threads| {
        threads.spawn(|| {
            for number in 0..PUSHES {
                while number > polled.load(SeqCst) + 100 {
                    assert!(start.elapsed() < DEADLINE, "jammed");
                    thread::yield_now();
                }
                producer.push(&recv(number)).unwrap();
            }
        });
        threads.spawn(|| {
            while polled.load(SeqCst) < PUSHES {
                assert!(!looks.is_full(), "{} of 1024", looks.len());
                assert!(start.elapsed() < DEADLINE, "jammed");
            }
        });
        let mut out = [Wc::default(); 16];
        while polled.load(SeqCst) < PUSHES {
            let count = consumer.poll(&mut out).unwrap();
            polled.fetch_add(count as u64, SeqCst);
        }
    });
}

#[test]
fn o03_many_threads_overrun_and_everything_stored_comes() {
    for round in 0..200 {
        let mut storage = SoftCq::<8>::new();
        let (producer, mut consumer) = storage.split();
        let (start, mut order) = (Instant::now(), Order::default());
        let mut out = [Wc::default(); 3];
        let stored: u64 = thread::scope(|threads| {
            let threads: Vec<_> = (0..PRODUCERS)
                .map(|which| {
                    let mut producer = producer.clone();
                    threads.spawn(move || {
                        (1..).take_while(|&nth| producer.push(&of(which, nth)).is_ok()).count()
                            as u64
                    })
                })
                .collect();
            loop {
                match consumer.poll(&mut out) {
                    Ok(count) => order.check(&out[..count]),
                    Err(PollError::Overrun { dropped: Some(dropped) }) => {
                        assert!((1..=PRODUCERS as u32).contains(&dropped), "a lower bound");
                        break;
                    }
                    Err(other) => panic!("{other}"),
                }
                // A consumer that always keeps up would never see the overrun.
                thread::yield_now();
                assert!(start.elapsed() < DEADLINE, "jammed");
            }
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(order.count(), stored, "round {round}");
        let all = PollError::Overrun { dropped: Some(PRODUCERS as u32) };
        assert_eq!(consumer.poll(&mut out), Err(all));
    }
}
