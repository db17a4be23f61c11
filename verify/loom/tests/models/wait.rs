//! Waiting, by the engine's own `wait` on a channel that it really sleeps on: it ends with everything that
//! was pushed (N2, N5, N6), and with the error if the queue overran (O5).

use cq_core::queue::{Entry, HeapCq};
use cq_core::sync::Site;
use cq_core::transport::Notify;
use cq_core::wc::Wc;
use verify_loom::channel::{Channel, LOST, take_all};
use verify_loom::harness::model;
use verify_loom::queue::{KEY, numbered};
use verify_loom::threads::spawn;

#[derive(Clone, Copy)]
struct Shape {
    capacity: u32,
    /// The last one is solicited.
    pushes: u64,
    batch: usize,
    on: Notify,
}

fn sleep_and_take(shape: Shape) {
    let mut channel = Channel::new(1);
    let queue = HeapCq::new(shape.capacity).unwrap();
    let (mut producer, consumer) = queue.split_with(KEY, channel.clone());
    let producer = spawn(&channel, move |channel| {
        let refused = |&number: &u64| {
            let solicited = number == shape.pushes;
            producer.push(&Entry { wc: numbered(number), tag: 0, solicited }).is_err()
        };
        let dropped = (1..=shape.pushes).filter(refused).count() as u64;
        channel.hang_up();
        (dropped, producer)
    });
    let mut room = vec![Wc::default(); shape.batch];
    let taken = take_all(consumer, &mut channel, shape.on, &mut room, shape.pushes);
    let (dropped, _producer) = producer.join().unwrap();
    assert_eq!(taken + dropped, shape.pushes, "lost");
    assert!(shape.on != Notify::Next || channel.unread() <= 2, "events gather");
}

/// It ends, and would not without either fence.
fn ends(name: impl Into<String>, shape: Shape) {
    model(name, move || sleep_and_take(shape))
        .must_fail_without(Site::PushFence, LOST)
        .must_fail_without(Site::ArmFence, LOST);
}

#[test]
fn n06_wait_ends_with_everything() {
    for (pushes, batch) in [(1, 1), (2, 1), (2, 2), (3, 2)] {
        let shape = Shape { capacity: 4, pushes, batch, on: Notify::Next };
        ends(format!("wait for {pushes}, batches of {batch}"), shape);
    }
}

#[test]
fn n06_waiting_for_solicited_ends_with_everything() {
    let shape = Shape { capacity: 4, pushes: 2, batch: 1, on: Notify::Solicited };
    ends("wait for solicited", shape);
}

#[test]
fn o05_an_overrun_wakes_the_sleeper() {
    let shape = Shape { capacity: 1, pushes: 3, batch: 1, on: Notify::Next };
    ends("overrun wakes who waits for any", shape);
    let shape = Shape { on: Notify::Solicited, ..shape };
    ends("overrun wakes who waits for solicited", shape);
}
