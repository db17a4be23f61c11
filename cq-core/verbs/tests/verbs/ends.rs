//! Each end of a queue wakes every waiting thread and task of either side (S2–S4, O5, N6).
//!
//! | waiting | closed by the last producer | overrun | failed by another thread | consumer dropped |
//! |---|---|---|---|---|
//! | the consumer: `wait`, `SharedCq::wait`, `next_batch`, a stream, a queue set, a wait set | tested | tested | tested | can't be: its wait borrows or owns the consumer |
//! | a producer: `push_or_wait`, and `push_batch_or_wait` of a lone one | can't be: it waits, so it is not dropped | of several, tested; alone, can't be: no other one pushes | tested | tested |

use std::sync::Arc;
use std::sync::mpsc::channel;

use cq_core::channel::{thread as threads, waker};
use cq_core::shared_cq::SharedCq;
use cq_verbs::polling::ArmWc;
use cq_verbs::queue_set::{QueueSet, SetError};
use futures_util::StreamExt;

use super::*;

/// A consumer of any kind.
trait Fails: ArmWc + Send {
    fn fail(&mut self);
}

/// A producer of any kind.
trait Overruns: Send {
    fn overrun(&mut self);
}

macro_rules! sides {
    ($of:ident, $queue:path, $producer:path, $consumer:path) => {
        fn $of<S: Signal + SplitSignal + Send + 'static>(signal: S) -> Sides {
            let (device, queue) = <$queue>::new(1).unwrap().split_with(signal);
            (Box::new(device), Box::new(queue))
        }

        const _: () = {
            use $consumer as Consumer;
            use $producer as Producer;
            impl<S: Signal + Send> Fails for Consumer<'_, Wc, OnChannel<S>> {
                fn fail(&mut self) {
                    Self::fail(self);
                }
            }

            impl<C: QueueChannel + Send> Overruns for Producer<'_, Wc, C> {
                fn overrun(&mut self) {
                    self.push_batch_or_overrun(&[1, 2].map(send)).unwrap_err();
                }
            }
        };
    };
}

type Sides = (Box<dyn Overruns>, Box<dyn Fails>);

sides!(lone, HeapCq, Producer, Consumer);
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
sides!(
    of_several,
    cq_core::queue::mpsc::HeapCq,
    cq_core::queue::mpsc::SharedProducer,
    cq_core::queue::mpsc::SharedConsumer
);

/// The consumer, which counts how often it was armed and empty.
struct Watched(Box<dyn Fails>, u32);

impl PollCq for Watched {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        self.0.poll_into(out)
    }
}

impl Arm for Watched {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        let armed = self.0.arm(on)?;
        self.1 += u32::from(armed == Armed::Armed);
        Ok(armed)
    }

    fn key(&self) -> CqKey {
        self.0.key()
    }
}

/// The queue that one thread waits for, and another one ends.
#[derive(Clone)]
struct Queue(Arc<SharedCq<Watched>>);

impl PollCq for Queue {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        self.0.lock().get_mut().poll_into(out)
    }
}

impl Arm for Queue {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.0.lock().get_mut().arm(on)
    }

    fn key(&self) -> CqKey {
        self.0.lock().get_mut().key()
    }
}

fn until(mut holds: impl FnMut() -> bool, what: &str) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < DEADLINE, "{what}: it never waits");
        thread::yield_now();
    }
}

/// The cells of a waiting consumer, for each kind of queue: `wait` waits until the end, and returns it.
fn consumer_cells<S, E>(
    waiter: &str,
    channel_of_events: impl Fn() -> (S, E),
    wait: fn(Queue, E) -> PollError,
) where
    S: Signal + SplitSignal + Send + 'static,
    E: Send + 'static,
{
    let kinds = [
        ("of one producer", lone as fn(S) -> Sides),
        #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
        ("of several producers", of_several),
    ];
    let ends = [PollError::Closed, PollError::Overrun { dropped: Some(1) }, PollError::Failed];
    for ((kind, sides), end) in kinds.into_iter().flat_map(|kind| ends.map(|end| (kind, end))) {
        let cell = format!("{waiter}, a queue {kind}, {end:?}");
        let (signal, events) = channel_of_events();
        let (device, queue) = sides(signal);
        let mut device = Some(device);
        let queue = Queue(Arc::new(SharedCq::new(CompletionQueue::new(Watched(queue, 0)))));
        let (found, finds) = channel();
        let waits = queue.clone();
        thread::spawn(move || found.send(wait(waits, events)));
        until(|| queue.0.lock().get_mut().1 > 0, &cell);
        match end {
            PollError::Closed => device = None,
            PollError::Failed => queue.0.lock().get_mut().0.fail(),
            _ => device.as_mut().unwrap().overrun(),
        }
        // Who is not dropped ends nothing.
        let found = finds.recv_timeout(DEADLINE);
        assert_eq!(found, Ok(end), "{cell}");
        drop(device);
    }
}

/// Goes on until the queue has ended.
fn until_the_end<T>(mut wait: impl FnMut() -> Result<T, WaitError>) -> PollError {
    loop {
        match wait() {
            Ok(_) => {}
            Err(WaitError::Poll(end)) => return end,
            Err(error) => panic!("{error}"),
        }
    }
}

fn end_of_set(error: SetError) -> PollError {
    match error {
        SetError::Poll { error, .. } => error,
        error => panic!("{error}"),
    }
}

#[test]
fn s02_s04_o05_an_end_wakes_a_wait() {
    consumer_cells(
        "wait",
        || threads::channel(1),
        |queue, mut events| {
            let (mut cq, mut buffer) = (CompletionQueue::new(queue), [Wc::default()]);
            until_the_end(|| cq.wait(&mut buffer, &mut events, None).map(drop))
        },
    );
}

#[test]
fn s02_s04_o05_an_end_wakes_a_wait_on_a_shared_queue() {
    consumer_cells(
        "SharedCq::wait",
        || threads::channel(1),
        |queue, mut events| {
            let mut buffer = [Wc::default()];
            until_the_end(|| queue.0.wait(&mut buffer, &mut events, None).map(drop))
        },
    );
}

#[test]
fn s02_s04_o05_an_end_wakes_a_task_that_awaits_a_batch() {
    consumer_cells("next_batch", waker::channel, |queue, mut events| {
        let (mut cq, mut buffer) = (CompletionQueue::new(queue), [Wc::default()]);
        until_the_end(|| pollster::block_on(cq.next_batch(&mut buffer, &mut events)).map(drop))
    });
}

#[test]
fn s02_s04_o05_an_end_wakes_a_stream() {
    consumer_cells("CompletionStream", waker::channel, |queue, events| {
        let all = CompletionStream::<_, _, 2>::new(CompletionQueue::new(queue), events);
        let all: Vec<_> = pollster::block_on(all.collect());
        until_the_end(|| all.last().copied().unwrap_or(Err(PollError::Closed.into())))
    });
}

#[test]
fn s02_s04_o05_an_end_wakes_who_sleeps_for_a_set_of_queues() {
    consumer_cells(
        "QueueSet::poll_or_arm",
        || threads::channel(1),
        |queue, events| {
            let (mut set, mut buffer) = (QueueSet::new(), [Wc::default()]);
            let channel = set.add_channel(events);
            set.add_queue(CompletionQueue::new(queue));
            loop {
                match set.poll_or_arm(&mut buffer) {
                    Ok(Some(_)) => {}
                    Ok(None) => _ = set.channel_mut(channel).unwrap().block(None).unwrap(),
                    Err(error) => return end_of_set(error),
                }
            }
        },
    );
}

#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(miri, ignore = "Miri has no level-triggered epoll(7)")]
fn s02_s04_o05_an_end_wakes_a_wait_set() {
    use cq_verbs::descriptor;
    use cq_verbs::wait_set::WaitSet;

    consumer_cells(
        "WaitSet::wait",
        || descriptor::channel(1).unwrap(),
        |queue, events| {
            let (mut set, mut buffer) = (WaitSet::new().unwrap(), [Wc::default()]);
            set.add_channel(events).unwrap();
            set.add_queue(CompletionQueue::new(queue));
            loop {
                if let Err(error) = set.wait(&mut buffer, None) {
                    return end_of_set(error);
                }
            }
        },
    );
}

/// The cell of a producer that waits for a free slot: `push` calls its argument meanwhile. `ends` returns what lives on.
fn producer_cell<P: Send + 'static, L>(
    cell: &str,
    mut producer: P,
    push: fn(&mut P, &mut dyn FnMut()) -> Result<(), End>,
    ends: impl FnOnce() -> L,
    end: End,
) {
    let ((found, finds), waits) = (channel(), Arc::new(AtomicU32::new(0)));
    let counts = Arc::clone(&waits);
    thread::spawn(move || {
        let mut wait = || {
            counts.fetch_add(1, SeqCst);
            thread::yield_now();
        };
        found.send(push(&mut producer, &mut wait))
    });
    until(|| waits.load(SeqCst) > 0, cell);
    let _lives = ends();
    assert_eq!(finds.recv_timeout(DEADLINE), Ok(Err(end)), "{cell}");
}

#[test]
fn s03_s04_an_end_is_found_by_a_producer_that_waits() {
    type Push = fn(&mut Producer<'static>, &mut dyn FnMut()) -> Result<(), End>;
    let pushes: [(&str, Push); 2] = [
        ("push_or_wait", |producer, wait| producer.push_or_wait(&send(1), wait)),
        ("push_batch_or_wait", |producer, wait| {
            producer.push_batch_or_wait(&[1, 2].map(send), wait).map_err(|error| error.why)
        }),
    ];
    let full = || {
        let (mut producer, consumer) = HeapCq::new(1).unwrap().split();
        producer.push(&send(0)).unwrap();
        (producer, consumer)
    };
    for (name, push) in pushes {
        let (producer, consumer) = full();
        let cell = format!("{name}, dropped");
        producer_cell(&cell, producer, push, || drop(consumer), End::Abandoned);
        let (producer, mut consumer) = full();
        let fails = || {
            consumer.fail();
            consumer
        };
        producer_cell(&format!("{name}, failed"), producer, push, fails, End::Failed);
    }
}

#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
#[test]
fn s03_s04_an_end_is_found_by_one_of_several_producers_that_waits() {
    use cq_core::queue::mpsc;

    let full = || {
        let (mut producer, consumer) = mpsc::HeapCq::new(1).unwrap().split();
        producer.push(&send(0)).unwrap();
        (producer, consumer)
    };
    type Push = fn(&mut mpsc::SharedProducer<'static>, &mut dyn FnMut()) -> Result<(), End>;
    fn end(error: mpsc::PushError) -> End {
        match error {
            mpsc::PushError::Ended(end) => end,
            other => panic!("{other}"),
        }
    }
    let pushes: [Push; 2] = [
        |producer, wait| producer.push_or_wait(&send(1), wait).map_err(end),
        |producer, wait| {
            producer.push_batch_or_wait(&[1, 2].map(send), wait).map_err(|error| end(error.why))
        },
    ];
    for push in pushes {
        let (producer, consumer) = full();
        producer_cell("dropped", producer, push, || drop(consumer), End::Abandoned);
        let (producer, mut consumer) = full();
        let fails = || {
            consumer.fail();
            consumer
        };
        producer_cell("failed", producer, push, fails, End::Failed);
        let (producer, consumer) = full();
        let mut other = producer.clone();
        let overruns = || {
            other.push_or_overrun(&send(2)).unwrap_err();
            (other, consumer)
        };
        let overrun = End::Overrun { dropped: 1 };
        producer_cell("overrun by another", producer, push, overruns, overrun);
    }
}
