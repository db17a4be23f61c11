//! Many threads that push at once (C10, P2, O3).

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Instant;

use cq_core::soft::shared::Producer;
use cq_core::soft::{Alerts, SoftCq};
use cq_core::transport::{NoSignal, Poll, PollError, Signal};
use cq_core::wc::Wc;

use super::{DEADLINE, KEY, Memory, recv, wraps};

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
    pub fn push<S: Signal>(
        &self,
        which: u64,
        producer: &mut Producer<'_, S>,
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

#[test]
fn c10_p02_many_threads_lose_nothing_across_every_wrap() {
    const PUSHES: u64 = 1000;
    for storage in [4, 64] {
        for wrap in wraps(storage) {
            let (memory, alerts) = (Memory::at(wrap - 100, storage), Alerts::new());
            let mut consumer = memory.parts().consumer(&alerts, KEY, false);
            let producer = memory.parts().producer::<NoSignal>(&alerts, KEY, None);
            let polled = Polled::default();
            let (start, mut order) = (Instant::now(), Order::default());
            thread::scope(|threads| {
                for which in 0..PRODUCERS {
                    let (mut producer, polled) = (producer.clone(), &polled);
                    let share = storage as u64 / PRODUCERS;
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
}

#[test]
fn o03_many_threads_overrun_and_everything_stored_comes() {
    for round in 0..200 {
        let mut storage = SoftCq::<8>::new();
        let (producer, mut consumer) = storage.split_shared();
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
