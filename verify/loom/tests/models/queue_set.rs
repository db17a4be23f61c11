//! Two queues on one channel, by the engine's own set of queues: each is armed once for each of its events, and a thread
//! that sleeps on the channel gets everything of both (N2, N6, N8); an event of one is not taken for one of the other.

use cq_core::cq::CompletionQueue;
use cq_core::queue::HeapCq;
use cq_core::sync::Site;
use cq_core::transport::{Block, CqKey};
use cq_core::wc::Wc;
use cq_verbs::queue_set::{QueueId, QueueSet};
use verify_loom::channel::{Channel, LOST};
use verify_loom::harness::model;
use verify_loom::shared::{Taken, of};
use verify_loom::threads::spawn;

#[derive(Clone, Copy)]
struct Shape {
    /// Completions of each queue.
    pushes: [u64; 2],
    batch: usize,
}

fn sleep_and_take(Shape { pushes, batch }: Shape) {
    let busy = pushes.iter().filter(|&&pushes| pushes > 0).count();
    let channel = Channel::new(busy as u32);
    // Dropped after the set: a producer whose consumer is there raises an event.
    let (mut threads, mut idle) = (Vec::new(), Vec::new());
    let mut set = QueueSet::new();
    let id = set.add_channel(channel.clone());
    let mut queues: Vec<QueueId> = Vec::new();
    for (index, &pushes) in (0..).zip(&pushes) {
        let (key, raised) = (CqKey { index, generation: 1 }, channel.clone());
        let signal = (key, move || raised.raise_for(key));
        let (mut producer, consumer) = HeapCq::new(4).unwrap().split_with(signal);
        queues.push(set.add_queue(CompletionQueue::new(consumer)));
        if pushes == 0 {
            idle.push(producer);
            continue;
        }
        threads.push(spawn(&channel, move |channel| {
            (1..=pushes).for_each(|nth| producer.push(&of(index.into(), nth)).unwrap());
            channel.hang_up();
            producer
        }));
    }
    let (mut buffer, mut taken) = (vec![Wc::default(); batch], Taken::default());
    while taken.count() < pushes.iter().sum() {
        match set.poll_or_arm(&mut buffer).unwrap() {
            Some((queue, batch)) => {
                assert!(batch.iter().all(|wc| queues[wc.wr_id() as usize / 64] == queue));
                taken.add(batch);
            }
            None => _ = set.channel_mut(id).unwrap().block(None).unwrap(),
        }
    }
    let _producers: Vec<_> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    assert!(channel.unread() <= busy, "events gather");
}

#[test]
fn n06_a_set_sleeps_only_while_all_of_its_queues_are_empty() {
    for (name, pushes, batch) in [
        ("a set of two, 1 of each", [1, 1], 1),
        ("a set of two, 2 of one", [2, 0], 1),
        ("a set of two, 2 of one in a batch", [0, 2], 2),
        ("a set of two, 2 and 1", [2, 1], 1),
    ] {
        model(name, move || sleep_and_take(Shape { pushes, batch }))
            .must_fail_without([Site::PushFence, Site::ArmFence], LOST);
    }
}
