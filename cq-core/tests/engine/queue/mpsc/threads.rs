//! Many threads that push at once (C10, P2, N6).

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use cq_core::queue::mpsc::{SharedProducer, SoftCq};

use super::*;

const PRODUCERS: u64 = 3;

/// Checks that each producer's completions come in order, `wr_id` being the producer's number and the
/// number of the completion.
#[derive(Default)]
struct Order([u64; PRODUCERS as usize]);

impl Order {
    fn check(&mut self, wcs: &[Wc]) {
        for wc in wcs {
            let last = &mut self.0[(wc.wr_id() >> 32) as usize];
            *last += 1;
            assert_eq!(wc.wr_id() & u64::from(u32::MAX), *last, "lost, doubled or out of order");
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().sum()
    }
}

fn of(producer: u64, nth: u64) -> Wc {
    recv(producer << 32 | nth)
}

/// How many of each producer's completions were polled, which is what lets it go on.
#[derive(Default)]
struct Polled([AtomicU64; PRODUCERS as usize]);

impl Polled {
    fn set(&self, order: &Order) {
        for (polled, count) in self.0.iter().zip(order.0) {
            polled.store(count, SeqCst);
        }
    }

    /// Waits until a producer has no more than `unpolled` of its first `nth` completions in the queue.
    fn wait(&self, which: u64, nth: u64, unpolled: u64) {
        let start = Instant::now();
        while nth > self.0[which as usize].load(SeqCst) + unpolled {
            assert!(start.elapsed() < DEADLINE, "jammed");
            thread::yield_now();
        }
    }

    /// Pushes alone and in batches, never more than a share of the queue.
    fn push<C: QueueChannel>(
        &self,
        which: u64,
        producer: &mut SharedProducer<'_, Wc, C>,
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

/// What threads push, one polls or sleeps for.
fn lose_nothing<const N: usize>(mut storage: SoftCq<N>, pushes: u64, sleeps: bool) {
    let (event_count, polled) = (EventCount::default(), Polled::default());
    let (producer, consumer) = storage.split_with(&event_count);
    let (mut cq, mut order) = (CompletionQueue::new(consumer), Order::default());
    thread::scope(|threads| {
        for which in 0..PRODUCERS {
            let (mut producer, polled) = (producer.clone(), &polled);
            threads.spawn(move || polled.push(which, &mut producer, N as u64 / PRODUCERS, pushes));
        }
        let (mut buffer, mut channel, mut last) =
            ([Wc::default(); 7], &event_count, Instant::now());
        while order.count() < PRODUCERS * pushes {
            let batch = match sleeps {
                true => cq.wait(&mut buffer, &mut channel, None).unwrap(),
                false => cq.poll(&mut buffer).unwrap(),
            };
            order.check(batch);
            match batch {
                [] => thread::yield_now(),
                _ => last = Instant::now(),
            }
            polled.set(&order);
            assert!(last.elapsed() < DEADLINE, "jammed");
        }
    });
    assert_eq!(cq.poll(&mut [Wc::default()]), Ok(&[][..]));
}

#[test]
fn c10_p02_n06_many_threads_lose_nothing_across_every_wrap() {
    let pushes = many(500);
    for (small, large) in wraps(4).into_iter().zip(wraps(64)).take(if cfg!(miri) { 1 } else { 5 }) {
        for sleeps in [false, true] {
            lose_nothing(mpsc::SoftCq::<4>::at(small - pushes), pushes, sleeps);
            lose_nothing(mpsc::SoftCq::<64>::at(large - pushes), pushes, sleeps);
        }
    }
    lose_nothing(SoftCq::<32>::new(), many(2000), true);
}

#[test]
#[cfg_attr(miri, ignore = "as Miri schedules threads, the consumer may keep up for ever")]
fn o03_many_threads_overrun_and_everything_stored_comes() {
    for round in 0..many(200) {
        let mut storage = SoftCq::<8>::new();
        let (producer, mut consumer) = storage.split();
        let (start, mut order) = (Instant::now(), Order::default());
        let mut out = [Wc::default(); 3];
        let stored: u64 = thread::scope(|threads| {
            let threads: Vec<_> = (0..PRODUCERS)
                .map(|which| {
                    let mut producer = producer.clone();
                    threads.spawn(move || {
                        (1..)
                            .take_while(|&nth| producer.push_or_overrun(&of(which, nth)).is_ok())
                            .count() as u64
                    })
                })
                .collect();
            loop {
                match consumer.poll_into(&mut out) {
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
        assert_eq!(consumer.poll_into(&mut out), Err(all));
    }
}
