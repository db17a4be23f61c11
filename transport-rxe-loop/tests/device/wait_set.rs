//! Waiting on several queues of the device at once, with its channels and its asynchronous events (N6, N8, O2, O3, X6).

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Instant;

use cq_core::transport::CqKey;
use cq_testing::fault::{FaultInjector, Faults, When};
use cq_verbs::handlers::{Handlers, Then};
use cq_verbs::queue_set::{QueueId, SetError};
use cq_verbs::wait_set::{DescriptorId, Ready, WaitSet};

use crate::common::actor::Actor;
use crate::common::*;

type Set = WaitSet<Cq, CompletionChannel>;

/// So late that a test which gets there has failed.
fn late() -> Option<Instant> {
    Some(Instant::now() + DEADLINE)
}

/// A queue of a set, on a channel of its own.
fn queue(set: &mut Set, context: &Context, capacity: u32) -> QueueId {
    let channel = set.add_channel(context.create_channel().unwrap()).unwrap();
    let cq = context.cq(capacity).channel(set.channel(channel)).create().unwrap();
    set.add_queue(CompletionQueue::new(cq))
}

/// A sender, and a queue pair of this context that completes in a queue of the set.
fn receiver(context: &Context, set: &Set, queue: QueueId) -> (End, QueuePair) {
    let mut sender = End::new();
    let pd = context.alloc_pd().unwrap();
    let mut qp = pd.qp(set.queue(queue).unwrap()).caps(CAPS).create().unwrap();
    connect(&mut sender.qp, &mut qp);
    (sender, qp)
}

fn deliver((sender, qp): &mut (End, QueuePair), wr_id: u64) {
    qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
    sender.post(SendWr::send(wr_id, &[]));
    sender.expect(&[(wr_id, S::SUCCESS)]);
}

/// How many messages each sender sends.
const EACH: u64 = 6;

/// A set of three queues on two channels, where completions are late and events spurious; three senders, each in a
/// thread, send to queue pairs of all of them.
fn everything_comes(seed: u64) {
    let ghost = CqKey { index: 0, generation: 0 };
    let faults = Faults::seeded(seed)
        .delay(When::chance(0.5), 3)
        .reorder(When::chance(0.5))
        .spurious(When::chance(0.2), ghost)
        .duplicate(When::chance(0.5));
    let context = open();
    let mut set = WaitSet::new().unwrap();
    let mut queues = HashMap::new();
    for count in [2, 1] {
        let channel = context.create_channel().unwrap();
        for _ in 0..count {
            let cq = context.cq(64).channel(&channel).create().unwrap();
            let handle = cq.handle();
            let cq = CompletionQueue::new(FaultInjector::<_, 32>::new(cq, &faults));
            queues.insert(set.add_queue(cq), handle);
        }
        assert!(set.add_channel(FaultInjector::<_, 0>::new(channel, &faults)).is_ok());
    }
    // What each queue pair got: its queue, and the requests in order.
    let (mut handlers, mut senders, mut qps) = (HashMap::new(), Vec::new(), Vec::new());
    for (&id, cq) in &queues {
        let mut sender = End::new();
        let mut qp = sender.pd.qp(&sender.cq).caps(CAPS).recv_cq(cq).create().unwrap();
        connect(&mut sender.qp, &mut qp);
        (0..EACH).for_each(|wr_id| qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap());
        handlers.insert(qp.number(), (id, Vec::new()));
        senders.push(sender);
        qps.push(qp);
    }
    let stop = set.stop_handle();
    thread::scope(|scope| {
        for mut sender in senders {
            scope.spawn(move || {
                for wr_id in 0..EACH {
                    sender.post(SendWr::send(wr_id, &[]));
                    thread::yield_now();
                }
                settle(&mut sender.cq, EACH as usize);
            });
        }
        let (mut buffer, mut missing) = ([Wc::default(); 4], EACH * queues.len() as u64);
        let ended = loop {
            match set.wait(&mut buffer, late()).unwrap() {
                Ready::Completions(queue, batch) => handlers.dispatch(batch, |handler, run| {
                    let (expected, seen) = handler.expect("no other queue pair is there");
                    assert_eq!(queue, *expected);
                    seen.extend(run.iter().map(|wc| (wc.wr_id(), wc.status())));
                    missing -= run.len() as u64;
                    Then::Keep
                }),
                ended => break ended,
            }
            if missing == 0 {
                stop.stop();
            }
        };
        assert_eq!(ended, Ready::Stopped, "{missing} are missing with seed {seed}");
    });
    for (_, seen) in handlers.values() {
        assert_eq!(*seen, all(0..EACH, S::SUCCESS), "in order, with seed {seed}");
    }
}

#[test]
fn n06_a_set_gets_everything_in_order_however_late() {
    (0..20).for_each(everything_comes);
}

#[test]
fn o03_an_overrun_is_a_descriptor_that_is_ready_and_a_queue_that_is_named() {
    let (mut context, mut set) = (open(), Set::new().unwrap());
    let [small, other] = [1, 64].map(|capacity| queue(&mut set, &context, capacity));
    let events: DescriptorId = set.add_descriptor(&context).unwrap();
    assert_eq!(context.as_raw_fd(), std::os::fd::AsFd::as_fd(&context).as_raw_fd());
    let [mut to_small, mut to_other] = [small, other].map(|queue| receiver(&context, &set, queue));
    let overrun = cq_err(set.queue(small).unwrap().get_ref());
    let mut delivered = 0;
    while to_small.1.state().unwrap() == QpState::RTS {
        deliver(&mut to_small, delivered);
        delivered += 1;
    }
    let (mut buffer, mut stored, mut told) = ([Wc::default()], 0, Vec::new());
    // It is kept: events of a queue that is destroyed are discarded (N7).
    let (mut removed, end) = (None, late());
    while told.len() < 3 {
        assert!(Some(Instant::now()) < end, "{told:?}");
        deliver(&mut to_other, 7);
        match set.wait(&mut buffer, late()) {
            Ok(Ready::Completions(queue, _)) if queue == small => stored += 1,
            Ok(Ready::Completions(queue, batch)) => {
                assert_eq!((queue, outcomes(batch)), (other, vec![(7, S::SUCCESS)]));
            }
            Ok(ready) => {
                assert_eq!(ready, Ready::Descriptor(events));
                told.extend(reports(&mut context).iter().map(|event| format!("{event:?}")));
            }
            Err(SetError::Poll { queue, error: PollError::Overrun { .. } }) => {
                assert_eq!(queue, small);
                removed = set.remove_queue(small);
                told.push("overrun".into());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(stored, delivered - 1);
    let fatal = format!("{:?}", fatal(&to_small.1));
    for expected in ["overrun".into(), format!("{overrun:?}"), fatal] {
        assert!(told.contains(&expected), "{expected}: {told:?}");
    }
    assert!(removed.is_some());
    // What it had is polled by now, or is later, and nothing else wakes the set.
    while let Ready::Completions(queue, _) = set.wait(&mut buffer, Some(Instant::now())).unwrap() {
        assert_eq!(queue, other);
    }
    deliver(&mut to_other, 8);
    assert!(
        matches!(set.wait(&mut buffer, late()), Ok(Ready::Completions(queue, _)) if queue == other)
    );
}

#[test]
fn x06_another_process_wakes_a_set() {
    let (context, mut set) = (open(), Set::new().unwrap());
    let mut sender = Actor::start("fabric", "direct");
    let pd = context.alloc_pd().unwrap();
    let mut ends: Vec<_> = (0..2)
        .map(|nth| {
            let queue = queue(&mut set, &context, 16);
            let init = pd.qp(set.queue(queue).unwrap().get_ref()).caps(CAPS);
            let mut qp = init.create().unwrap();
            qp.connect_to(sender.numbers[nth]).unwrap();
            sender.expect(&format!("use {nth}"), "done");
            sender.expect(&format!("connect {}", qp.number()), "done");
            (queue, qp)
        })
        .collect();
    let mut buffer = [Wc::default(); 4];
    for round in 0..20 {
        let (queue, qp) = &mut ends[round % 2];
        qp.post_recv(&[RecvWr::new(round as u64, &[])]).unwrap();
        sender.expect(&format!("use {}", round % 2), "done");
        thread::scope(|scope| {
            let sender = &mut sender;
            scope.spawn(move || sender.expect("send 0 0", "ok 0"));
            match set.wait(&mut buffer, late()).unwrap() {
                Ready::Completions(of, batch) => {
                    assert_eq!((of, outcomes(batch)), (*queue, vec![(round as u64, S::SUCCESS)]));
                }
                other => panic!("{other:?}"),
            }
        });
    }
}
