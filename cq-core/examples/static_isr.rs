//! Firmware: an interrupt handler pushes to a static queue, and the main loop sleeps while the queue is empty. Here a
//! thread stands in for the interrupt. On a microcontroller the handler owns the producer, and `wait_for_interrupt` is
//! `WFE`: `cq_core::guide::firmware`.
//!
//! `cargo run -p cq-core --example static_isr`

use std::thread;

use cq_core::channel::flag::{Flag, Raiser};
use cq_core::cq::CompletionQueue;
use cq_core::queue::{Producer, SoftCq};
use cq_core::wc::{Wc, WcStatus};
use static_cell::ConstStaticCell;

const TRANSFERS: u64 = 1000;

static QUEUE: ConstStaticCell<SoftCq<16>> = ConstStaticCell::new(SoftCq::new());
static FLAG: ConstStaticCell<Flag> = ConstStaticCell::new(Flag::new());

type Handler = Producer<'static, Wc, Raiser<'static>>;

/// The DMA engine's interrupt: a transfer is done.
fn on_interrupt(producer: &mut Handler, wr_id: u64) -> bool {
    producer.try_push(&Wc::new(wr_id, WcStatus::SUCCESS, 0)).is_ok()
}

fn wait_for_interrupt() {
    thread::yield_now();
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (raiser, events) = FLAG.take().split();
    let (mut producer, consumer) = QUEUE.take().split_with(raiser);

    let interrupts = thread::spawn(move || {
        for wr_id in 0..TRANSFERS {
            while !on_interrupt(&mut producer, wr_id) {
                wait_for_interrupt();
            }
        }
        producer // firmware never drops it
    });

    let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 8]);
    let (mut done, mut slept) = (0, 0);
    let mut channel = events.sleeping(|_| {
        slept += 1;
        wait_for_interrupt();
    });
    while done < TRANSFERS {
        done += cq.wait(&mut batch, &mut channel, None)?.len() as u64;
    }
    let _producer = interrupts.join().expect("the handler does not panic");
    println!("{done} transfers, asleep {slept} times");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
