//! `pop`, with the producer in a static, as a handler has it: in a critical section.
#![no_std]
#![no_main]

use core::cell::RefCell;

use cq_core::queue::Producer;
use critical_section::Mutex;
use firmware_cost::{Entry, entry, number, rounds, sides};

static PRODUCER: Mutex<RefCell<Option<Producer<'static, Entry>>>> = Mutex::new(RefCell::new(None));

fn push(entry: &Entry) {
    critical_section::with(|cs| {
        if let Some(producer) = PRODUCER.borrow_ref_mut(cs).as_mut() {
            let _ = producer.push_or_overrun(entry);
        }
    });
}

#[entry]
fn main() -> ! {
    let (producer, mut consumer) = sides();
    critical_section::with(|cs| PRODUCER.replace(cs, Some(producer)));
    rounds(push, move || consumer.pop().ok()?.map(|entry| number(&entry)))
}
