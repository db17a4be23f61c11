//! Many threads that push at once (C10, P2, N6).

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use cq_core::queue::mpsc::{Producer, SoftCq};
use cq_core::testing::shared_queue_at;

use super::*;

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
fn n06_a_sleeper_among_many_threads_gets_everything() {
    const PUSHES: u64 = 2000;
    let (mut storage, bell) = (SoftCq::<32>::new(), Bell::default());
    let (producer, consumer) = storage.split_with(KEY, &bell);
    let polled = Polled::default();
    let (mut cq, mut order) = (CompletionQueue::new(consumer), Order::default());
    thread::scope(|threads| {
        for which in 0..PRODUCERS {
            let (mut producer, polled) = (producer.clone(), &polled);
            threads.spawn(move || polled.push(which, &mut producer, 8, PUSHES));
        }
        let (mut room, mut channel) = ([Wc::default(); 16], &bell);
        while order.count() < PRODUCERS * PUSHES {
            order.check(cq.wait(&mut room, &mut channel, None).unwrap());
            polled.set(&order);
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
