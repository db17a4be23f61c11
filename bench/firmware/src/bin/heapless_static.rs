//! `heapless`, with the producer in a static, as a handler has it: in a critical section.
#![no_std]
#![no_main]

use core::cell::RefCell;
use core::hint::black_box;

use critical_section::Mutex;
use firmware_cost::{Entry, SLOTS, entry, number, rounds};
use heapless::spsc::{Producer, Queue};
use static_cell::ConstStaticCell;

static QUEUE: ConstStaticCell<Queue<Entry, { SLOTS + 1 }>> = ConstStaticCell::new(Queue::new());
static PRODUCER: Mutex<RefCell<Option<Producer<'static, Entry>>>> = Mutex::new(RefCell::new(None));

fn push(entry: &Entry) {
    critical_section::with(|cs| {
        if let Some(producer) = PRODUCER.borrow_ref_mut(cs).as_mut() {
            let _ = producer.enqueue(*entry);
        }
    });
}

#[entry]
fn main() -> ! {
    let (producer, mut consumer) = QUEUE.take().split();
    critical_section::with(|cs| PRODUCER.replace(cs, Some(producer)));
    rounds(push, move || consumer.dequeue().map(|entry| number(black_box(&entry))))
}
