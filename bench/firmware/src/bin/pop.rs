//! cq-core's queue: `push_or_overrun` and `pop`.
#![no_std]
#![no_main]

use firmware_cost::{entry, number, rounds, sides};

#[entry]
fn main() -> ! {
    let (mut producer, mut consumer) = sides();
    rounds(
        move |entry| _ = producer.push_or_overrun(entry),
        move || consumer.pop().ok()?.map(|entry| number(&entry)),
    )
}
