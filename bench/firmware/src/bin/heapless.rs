//! The queue of heapless for one producer and one consumer.
#![no_std]
#![no_main]

use core::hint::black_box;

use firmware_cost::{Entry, SLOTS, entry, number, rounds};
use heapless::spsc::Queue;
use static_cell::ConstStaticCell;

static QUEUE: ConstStaticCell<Queue<Entry, { SLOTS + 1 }>> = ConstStaticCell::new(Queue::new());

#[entry]
fn main() -> ! {
    let (mut producer, mut consumer) = QUEUE.take().split();
    rounds(
        move |entry| _ = producer.enqueue(*entry),
        move || consumer.dequeue().map(|entry| number(black_box(&entry))),
    )
}
