//! cq-core's queue: `push_or_overrun` and `poll` of up to four.
#![no_std]
#![no_main]

use firmware_cost::{Entry, entry, number, rounds, sides};
use static_cell::ConstStaticCell;

static BUFFER: ConstStaticCell<[Entry; 4]> = ConstStaticCell::new(bytemuck::zeroed());

#[entry]
fn main() -> ! {
    let (mut producer, mut consumer) = sides();
    let buffer = BUFFER.take();
    rounds(
        move |entry| _ = producer.push_or_overrun(entry),
        move || consumer.poll(buffer).ok()?.first().map(number),
    )
}
