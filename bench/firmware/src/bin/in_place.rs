//! cq-core's queue: `push_or_overrun` and `poll_in_place` of one.
#![no_std]
#![no_main]

use firmware_cost::{entry, number, rounds, sides};

#[entry]
fn main() -> ! {
    let (mut producer, mut consumer) = sides();
    rounds(
        move |entry| _ = producer.push_or_overrun(entry),
        move || consumer.poll_in_place(1).ok()?.iter().next().map(number),
    )
}
