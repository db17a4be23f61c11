//! A task of embassy waits for completions that an interrupt pushes, each time for at most 10 ms. Another task plays the
//! device, which pauses for longer than that now and then.
//!
//! `cargo run --bin embassy --features embassy`
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod clock;

use core::cell::RefCell;

use cq_core::channel::Share;
use cq_core::channel::waker::{Raiser, Receiver, WakerChannel};
use cq_core::cq::CompletionQueue;
use cq_core::queue::{Consumer, OnChannel, Producer, SoftCq};
use critical_section::Mutex;
use embassy_executor::{Executor, Spawner};
use embassy_time::{Duration, Timer, with_timeout};
use firmware::board;
use semihosting::{println, process};
use static_cell::{ConstStaticCell, StaticCell};

firmware::interrupts!(timer: clock::on_timer, pended: on_interrupt);

/// How many transfers an interrupt reports, and how many interrupts come between pauses of the device.
const BURST: u32 = 3;
const BURSTS: u32 = 8;
const PAUSES: u32 = 10;

type Channel = Share<'static, WakerChannel>;
type Cq = CompletionQueue<Consumer<'static, u32, OnChannel<Raiser<Channel>>>>;

static QUEUE: ConstStaticCell<SoftCq<16, u32>> = ConstStaticCell::new(SoftCq::of_entries());
static CHANNEL: ConstStaticCell<WakerChannel> = ConstStaticCell::new(WakerChannel::new());
static EXECUTOR: StaticCell<Executor> = StaticCell::new();
static HANDLER: Mutex<RefCell<Option<Handler>>> = Mutex::new(RefCell::new(None));

/// What the interrupt handler owns.
struct Handler {
    transfer: u32,
    queue: Producer<'static, u32, Raiser<Channel>>,
}

/// The device's interrupt: transfers are done.
fn on_interrupt() {
    critical_section::with(|cs| {
        let mut handler = HANDLER.borrow_ref_mut(cs);
        let Some(Handler { transfer, queue }) = handler.as_mut() else { return };
        for _ in 0..BURST {
            // An overrun is latched in the queue, and the task gets it.
            let _ = queue.push_or_overrun(transfer);
            *transfer += 1;
        }
    });
}

#[embassy_executor::task]
async fn device() {
    for _ in 0..PAUSES {
        Timer::after_millis(25).await;
        for _ in 0..BURSTS {
            Timer::after_millis(2).await;
            board::pend_interrupt();
        }
    }
}

#[embassy_executor::task]
async fn receive(mut cq: Cq, mut events: Receiver<Channel>) {
    let (mut buffer, mut done, mut timeouts) = ([0; 4], 0, 0);
    while done < PAUSES * BURSTS * BURST {
        let batch = cq.next_batch(&mut buffer, &mut events);
        let Ok(batch) = with_timeout(Duration::from_millis(10), batch).await else {
            timeouts += 1;
            continue;
        };
        for &transfer in batch.expect("it keeps up") {
            assert_eq!(transfer, done, "a completion is missing, or came twice");
            done += 1;
        }
    }
    assert!(timeouts >= PAUSES, "a deadline has passed without a timeout");
    println!("awaited: {done} transfers; {timeouts} deadlines have passed");
    process::exit(0);
}

#[board::entry]
fn main() -> ! {
    let (raiser, events) = CHANNEL.take().split();
    let (queue, consumer) = QUEUE.take().split_with(raiser);
    critical_section::with(|cs| HANDLER.replace(cs, Some(Handler { transfer: 0, queue })));
    clock::start();

    let cq = CompletionQueue::new(consumer);
    EXECUTOR.init(Executor::new()).run(|spawner: Spawner| {
        spawner.spawn(device().expect("it is spawned once"));
        spawner.spawn(receive(cq, events).expect("it is spawned once"));
    })
}
