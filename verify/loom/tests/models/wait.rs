//! Waiting, by the engine's own `wait` on a channel that it really sleeps on: it ends with everything that
//! was pushed (N2, N5, N6), and with the error if the queue overran (O5).

use cq_core::queue::{HeapCq, Tagged};
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
            producer.push(&Tagged { wc: numbered(number), tag: 0, solicited }).is_err()
        };
        let dropped = (1..=shape.pushes).filter(refused).count() as u64;
        channel.hang_up();
        (dropped, producer)
    });
    let mut buffer = vec![Wc::default(); shape.batch];
    let taken = take_all(consumer, &mut channel, shape.on, &mut buffer, shape.pushes);
    let (dropped, _producer) = producer.join().unwrap();
    assert_eq!(taken + dropped, shape.pushes, "lost");
    assert!(shape.on != Notify::Next || channel.unread() <= 2, "events gather");
}

#[test]
fn n06_wait_ends_with_everything_or_the_overrun() {
    for (name, capacity, pushes, batch, on) in [
        ("wait for 1, batches of 1", 4, 1, 1, Notify::Next),
        ("wait for 2, batches of 1", 4, 2, 1, Notify::Next),
        ("wait for 2, batches of 2", 4, 2, 2, Notify::Next),
        ("wait for 3, batches of 2", 4, 3, 2, Notify::Next),
        ("wait for solicited", 4, 2, 1, Notify::Solicited),
        ("overrun wakes who waits for any", 1, 3, 1, Notify::Next),
        ("overrun wakes who waits for solicited", 1, 3, 1, Notify::Solicited),
    ] {
        model(name, move || sleep_and_take(Shape { capacity, pushes, batch, on }))
            .must_fail_without([Site::PushFence, Site::ArmFence], LOST);
    }
}
