//! Threads that wait for an event (N5, N6, O5).

use std::thread;
use std::time::{Duration, Instant};

use cq_core::cq::CompletionQueue;
use cq_core::transport::{Block, Woken};
use cq_verbs::async_event::AsyncEvent;
use cq_verbs::queue_set::QueueSet;

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/sleepers.rs"));

/// A deadline that no wake-up exceeds.
fn long() -> Option<Instant> {
    Some(Instant::now() + patience())
}

/// Leaves an unread event in `b`'s channel whose completion has been polled.
fn stale_event<D: Device>(a: &mut End<D>, b: &mut End<D>) {
    arm(&mut b.received, Notify::Next);
    b.recv(1, 0, 8);
    a.send(1);
    a.expect_sent(&[(1, S::SUCCESS)]);
    b.expect_received(&[(1, S::SUCCESS)]);
}

fn n05_a_waiter_goes_on_after_an_event_that_finds_nothing<D: Device>() {
    let (mut a, mut b) = pair_with::<D>(&Plan::default(), &Plan::with_channel());
    stale_event(&mut a, &mut b);
    b.recv(2, 0, 8);
    let End { received, channel, qp: _qp, mr: _mr, .. } = b;
    thread::scope(|scope| {
        let sleeper = scope.spawn(move || {
            let mut buffer = [Wc::default(); 4];
            let mut cq = CompletionQueue::new(received);
            let got = cq.wait(&mut buffer, &mut channel.unwrap(), long()).unwrap();
            got.iter().map(Wc::wr_id).collect::<Vec<_>>()
        });
        thread::sleep(Duration::from_millis(5)); // so that it has gone to sleep, most of the time
        a.send(2);
        a.expect_sent(&[(2, S::SUCCESS)]);
        assert_eq!(sleeper.join().unwrap(), [2]);
    });
}

fn n05_waiting_ends_in_time_whatever_stale_events_there_are<D: Device>() {
    let (mut a, mut b) = pair_with::<D>(&Plan::default(), &Plan::with_channel());
    stale_event(&mut a, &mut b);
    let mut cq = CompletionQueue::new(b.received);
    let mut buffer = [Wc::default(); 4];
    let limit = Some(Instant::now() + Duration::from_millis(5));
    let got = cq.wait(&mut buffer, b.channel.as_mut().unwrap(), limit).unwrap();
    assert!(got.is_empty(), "nothing came: {got:?}");
}

/// Receives `count` messages, waiting for each, and posts the next receive.
fn sleep_and_receive<D: Device>(
    qp: &mut D::Qp,
    cq: &mut CompletionQueue<D::Cq>,
    channel: &mut D::Channel,
    count: u64,
    mut then: impl FnMut(&mut D::Qp, u64),
) {
    let mut next = 0;
    let mut buffer = [Wc::default(); 4];
    while next < count {
        let got = cq.wait(&mut buffer, channel, long()).expect("the queue works");
        assert!(!got.is_empty(), "slept over message {next} of {count}");
        for wc in got {
            assert_eq!((wc.wr_id(), wc.status()), (next, S::SUCCESS));
            qp.post_recv(&[RecvWr::new(next + 8, &[])]).unwrap();
            then(qp, next);
            next += 1;
        }
    }
}

fn n06_no_wake_up_is_lost<D: Device>() {
    const COUNT: u64 = 2_000;
    let (mut a, mut b) = pair_with::<D>(&Plan::default(), &Plan::with_channel());
    for id in 0..8 {
        b.qp.post_recv(&[RecvWr::new(id, &[])]).unwrap();
    }
    let End { mut qp, received, channel, .. } = b;
    let (mut cq, mut channel) = (CompletionQueue::new(received), channel.unwrap());
    thread::scope(|scope| {
        scope.spawn(move || {
            sleep_and_receive::<D>(&mut qp, &mut cq, &mut channel, COUNT, |_, _| {});
            (qp, cq, channel)
        });
        for id in 0..COUNT {
            a.post(SendWr::send_inline(id, b""));
            wait_until(&a.device, "it is sent", || !take(&mut a.sent).is_empty());
        }
    });
}

fn n06_two_that_wake_each_other_never_stop<D: Device>() {
    const COUNT: u64 = 500;
    let (mut a, mut b) = pair_with::<D>(&Plan::with_channel(), &Plan::with_channel());
    for id in 0..8 {
        a.qp.post_recv(&[RecvWr::new(id, &[])]).unwrap();
        b.qp.post_recv(&[RecvWr::new(id, &[])]).unwrap();
    }
    a.post(SendWr::send_inline(0, b"").unsignaled());
    thread::scope(|scope| {
        // The last answer would not be received.
        for (end, answers) in [(a, COUNT - 1), (b, COUNT)] {
            scope.spawn(move || {
                let End { mut qp, mut sent, received, channel, device, .. } = end;
                let (mut cq, mut channel) = (CompletionQueue::new(received), channel.unwrap());
                let answer = |qp: &mut D::Qp, id| {
                    if id < answers {
                        qp.post_send(&[SendWr::send_inline(id, b"")]).unwrap();
                        wait_until(&device, "it is sent", || !take(&mut sent).is_empty());
                    }
                };
                sleep_and_receive::<D>(&mut qp, &mut cq, &mut channel, COUNT, answer);
            });
        }
    });
}

fn n06_a_set_of_two_queues_sleeps_over_neither<D: Device>() {
    const COUNT: u64 = 500;
    let (mut a, b) = pair_with::<D>(&Plan::default(), &Plan::with_channel());
    let End { mut qp, sent, received, channel, .. } = b;
    for id in 0..8 {
        a.qp.post_recv(&[RecvWr::new(id, &[])]).unwrap();
        qp.post_recv(&[RecvWr::new(id, &[])]).unwrap();
    }
    let mut set = QueueSet::new();
    let channel = set.add_channel(channel.unwrap());
    let [sent, received] = [sent, received].map(|cq| set.add_queue(CompletionQueue::new(cq)));
    let serve = move || {
        let (mut buffer, mut answered, mut next) = ([Wc::default(); 4], 0, 0);
        while answered < COUNT {
            let Some((queue, batch)) = set.poll_or_arm(&mut buffer).expect("both queues work")
            else {
                let woken = set.channel_mut(channel).unwrap().block(long()).unwrap();
                assert_ne!(woken, Woken::DeadlinePassed, "slept over {next} or {answered}");
                continue;
            };
            for wc in batch {
                let count = if queue == received { &mut next } else { &mut answered };
                assert_eq!((wc.wr_id(), wc.status()), (*count, S::SUCCESS));
                *count += 1;
                if queue == received {
                    qp.post_recv(&[RecvWr::new(wc.wr_id() + 8, &[])]).unwrap();
                    qp.post_send(&[SendWr::send_inline(wc.wr_id(), b"")]).unwrap();
                }
            }
        }
        assert!(set.queue(sent).is_some());
        (qp, set)
    };
    thread::scope(|scope| {
        scope.spawn(serve);
        for id in 0..COUNT {
            a.post(SendWr::send_inline(id, b""));
            wait_until(&a.device, "it is sent", || !take(&mut a.sent).is_empty());
            wait_until(&a.device, "it is answered", || !take(&mut a.received).is_empty());
            a.qp.post_recv(&[RecvWr::new(id + 8, &[])]).unwrap();
        }
    });
}

fn o05_a_sleeper_wakes_when_the_queue_overruns<D: Device>() {
    let narrow = Plan { cqe: 4, ..Plan::with_channel() };
    let (mut a, b) = pair_with::<D>(&Plan::default(), &narrow);
    let End { mut qp, mut received, channel, mut device, .. } = b;
    let mut channel = channel.unwrap();
    arm(&mut received, Notify::Solicited);
    thread::scope(|scope| {
        let key = received.key();
        let sleeper = scope.spawn(move || {
            let deadline = long();
            while channel.block(deadline).unwrap() != Woken::DeadlinePassed {
                if let Some(event) = channel.take_event().unwrap() {
                    return Some(event) == Some(key);
                }
            }
            false
        });
        let overrun = AsyncEvent { event_type: AsyncEventType::CQ_ERR, element: Element::Cq(key) };
        let mut overran = false;
        for id in 0..4 * u64::from(received.capacity()) + 64 {
            if overran {
                break;
            }
            qp.post_recv(&[RecvWr::new(id, &[])]).unwrap();
            a.post(SendWr::send_inline(id, b""));
            let start = Instant::now();
            while take(&mut a.sent).is_empty() && !overran && start.elapsed() < patience() {
                overran |= device.take_async_event().unwrap() == Some(overrun);
                device.pause();
            }
        }
        assert!(overran, "it overran");
        assert!(sleeper.join().unwrap(), "the sleeper was woken, by this queue");
    });
}
