//! Firmware: an interrupt handler pushes to a static queue, and the main loop sleeps while the queue is empty. When the
//! queue has overrun, the main loop takes its two sides back, and splits it again. Here a thread stands in for the
//! interrupt, and a `Mutex` for a critical section. On a microcontroller `wait_for_interrupt` is `WFE`:
//! `cq_core::guide::firmware`.
//!
//! `cargo run -p cq-core --example static_isr`

use std::sync::Mutex;
use std::thread;

use cq_core::channel::flag::{Flag, Raiser};
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::queue::{Producer, SoftCq};
use cq_core::transport::PollError;
use cq_core::wc::{Wc, WcStatus};
use static_cell::ConstStaticCell;

const TRANSFERS: u64 = 1000;

static QUEUE: ConstStaticCell<SoftCq<16>> = ConstStaticCell::new(SoftCq::new());
static FLAG: ConstStaticCell<Flag> = ConstStaticCell::new(Flag::new());
static HANDLER: Mutex<Handler> = Mutex::new(Handler { producer: None, lost: 0 });

/// What the interrupt handler owns.
struct Handler {
    producer: Option<Producer<'static, Wc, Raiser<'static>>>,
    lost: u64,
}

/// The DMA engine's interrupt: a transfer is done.
fn on_interrupt(wr_id: u64) {
    let Handler { producer, lost } = &mut *HANDLER.lock().unwrap();
    let pushed =
        producer.as_mut().map(|it| it.push_or_overrun(&Wc::new(wr_id, WcStatus::SUCCESS, 0)));
    *lost += u64::from(!matches!(pushed, Some(Ok(()))));
}

fn wait_for_interrupt() {
    thread::yield_now();
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut raiser, events) = FLAG.take().split();
    let (mut queue, mut channel) = (QUEUE.take(), events.sleeping(|_| wait_for_interrupt()));
    let (mut batch, mut done, mut overruns, mut interrupts) = ([Wc::default(); 8], 0, 0, None);
    loop {
        let (producer, consumer) = queue.split_with(raiser);
        HANDLER.lock().unwrap().producer = Some(producer);
        let mut cq = CompletionQueue::new(consumer);
        if overruns == 0 {
            (0..17).for_each(on_interrupt); // one more than the queue holds
        } else {
            interrupts
                .get_or_insert_with(|| thread::spawn(|| (17..TRANSFERS).for_each(on_interrupt)));
        }
        let end = loop {
            if done + HANDLER.lock().unwrap().lost == TRANSFERS {
                break None;
            }
            match cq.wait(&mut batch, &mut channel, None) {
                Ok(batch) => done += batch.len() as u64,
                Err(error) => break Some(error),
            }
        };
        match end {
            None => break,
            Some(WaitError::Poll(PollError::Overrun { .. })) => overruns += 1,
            Some(error) => return Err(error.into()),
        }
        let producer = HANDLER.lock().unwrap().producer.take().expect("it is put there");
        (queue, raiser) = SoftCq::reunite(producer, cq.into_inner())?;
    }
    println!("{done} transfers; the queue was split again after {overruns} overruns");
    assert!(overruns > 0);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
