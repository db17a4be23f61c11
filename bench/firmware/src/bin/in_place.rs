//! cq-core's queue: `push_or_overrun` and `poll_in_place` of one.
#![no_std]
#![no_main]

use cq_core::queue::SoftCq;
use firmware_cost::{Entry, SLOTS, entry, number, rounds};
use static_cell::ConstStaticCell;

static QUEUE: ConstStaticCell<SoftCq<SLOTS, Entry>> = ConstStaticCell::new(SoftCq::of_entries());

#[entry]
fn main() -> ! {
    let (mut producer, mut consumer) = QUEUE.take().split();
    rounds(
        move |entry| _ = producer.push_or_overrun(entry),
        move || consumer.poll_in_place(1).ok()?.iter().next().map(number),
    )
}
