//! cq-core's queue: `push_or_overrun` and `poll` of up to four.
#![no_std]
#![no_main]

use cq_core::queue::SoftCq;
use firmware_cost::{Entry, SLOTS, entry, number, rounds};
use static_cell::ConstStaticCell;

static QUEUE: ConstStaticCell<SoftCq<SLOTS, Entry>> = ConstStaticCell::new(SoftCq::of_entries());
static BUFFER: ConstStaticCell<[Entry; 4]> = ConstStaticCell::new(bytemuck::zeroed());

#[entry]
fn main() -> ! {
    let (mut producer, mut consumer) = QUEUE.take().split();
    let buffer = BUFFER.take();
    rounds(
        move |entry| _ = producer.push_or_overrun(entry),
        move || consumer.poll(buffer).ok()?.first().map(number),
    )
}
