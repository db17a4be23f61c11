//! cq-core's queue with a flag: `push_or_overrun`, which looks whether to raise it, and `wait` for up to four.
#![no_std]
#![no_main]

use cq_core::channel::flag::{Flag, Receiver};
use cq_core::cq::CompletionQueue;
use cq_core::queue::SoftCq;
use firmware_cost::{Entry, SLOTS, entry, number, rounds};
use static_cell::ConstStaticCell;

static QUEUE: ConstStaticCell<SoftCq<SLOTS, Entry>> = ConstStaticCell::new(SoftCq::of_entries());
static FLAG: ConstStaticCell<Flag> = ConstStaticCell::new(Flag::new());
static BUFFER: ConstStaticCell<[Entry; 4]> = ConstStaticCell::new(bytemuck::zeroed());

/// Nothing is waited for, since an entry is there.
fn sleep(_: &Receiver<'static>) {}

#[entry]
fn main() -> ! {
    let (raiser, events) = FLAG.take().split();
    let (mut producer, consumer) = QUEUE.take().split_with(raiser);
    let (mut cq, mut channel) = (CompletionQueue::new(consumer), events.sleeping(sleep));
    let buffer = BUFFER.take();
    rounds(
        move |entry| _ = producer.push_or_overrun(entry),
        move || cq.wait(buffer, &mut channel, None).ok()?.first().map(number),
    )
}
