//! Waiting, by the engine's own `wait` on a channel that it really sleeps on: it ends with everything that
//! was pushed (N2, N5, N6), and with the error if the queue overran (O5).

use cq_core::queue::HeapCq;
use cq_core::sync::Site;
use cq_core::transport::Notify;
use cq_core::wc::Wc;
use cq_testing::entries::{Bytes4, Bytes16, Spare2};
use verify_loom::channel::{Channel, LOST, take_all};
use verify_loom::harness::model;
use verify_loom::queue::Modelled;
use verify_loom::threads::spawn;

#[derive(Clone, Copy)]
struct Shape {
    capacity: u32,
    /// The last one is solicited, if that is what the consumer waits for.
    pushes: u64,
    batch: usize,
    on: Notify,
}

fn sleep_and_take<E: Modelled>(shape: Shape) {
    let mut channel = Channel::new(1);
    let queue = HeapCq::<E>::of_entries(shape.capacity as usize).unwrap();
    let (mut producer, consumer) = queue.split_with(channel.clone());
    let producer = spawn(&channel, move |channel| {
        let refused = |&number: &u64| {
            let solicited = shape.on == Notify::Solicited && number == shape.pushes;
            producer.push_or_overrun(&E::tagged(number, solicited)).is_err()
        };
        let dropped = (1..=shape.pushes).filter(refused).count() as u64;
        channel.hang_up();
        (dropped, producer)
    });
    let mut buffer = vec![E::numbered(0); shape.batch];
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
        model(name, move || sleep_and_take::<Wc>(Shape { capacity, pushes, batch, on }))
            .must_fail_without([Site::PushFence, Site::ArmFence], LOST);
    }
}

/// With other entries than completions.
#[test]
fn n06_wait_for_entries_ends_with_everything_or_the_overrun() {
    type Body = fn(Shape);
    let bodies: [(&str, Body); 3] = [
        ("16 bytes", sleep_and_take::<Bytes16>),
        ("4 bytes", sleep_and_take::<Bytes4>),
        ("2 spare bits", sleep_and_take::<Spare2>),
    ];
    let on = Notify::Next;
    for (entry, body) in bodies {
        for (name, capacity, pushes) in [("wait for 2", 4, 2), ("overrun wakes", 1, 3)] {
            let shape = Shape { capacity, pushes, batch: 1, on };
            model(format!("{name}, {entry}"), move || body(shape))
                .must_fail_without([Site::PushFence, Site::ArmFence], LOST);
        }
    }
}
