//! Firmware on the host: a DMA engine's interrupt pushes to a static queue, and the main loop sleeps while the queue is empty. The
//! last two items model the engine and the core; all else is what runs on a microcontroller.
//!
//! `cargo run -p cq-core --example static_isr`

use core::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use bytemuck::{Pod, Zeroable};
use cortex_m::{asm, interrupt};
use cq_core::channel::flag::{Flag, Raiser, Receiver};
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::entry::{Entry, InArray};
use cq_core::queue::{Producer, SoftCq};
use static_cell::ConstStaticCell;

const FREE: u32 = 0;
const POSTED: u32 = 1;
const DONE: u32 = 2; // anything else: the number of an error

/// What the queue holds for a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Finished {
    position: u32,
    state: u32, // `DONE`, or the number of the error
}

impl Entry for Finished {
    type Generation = InArray; // no bit of it is spare
}

/// The states of the engine's descriptors. On a board, also their addresses and lengths.
static RING: [AtomicU32; 8] = [const { AtomicU32::new(FREE) }; 8];
static QUEUE: ConstStaticCell<SoftCq<16, Finished>> = ConstStaticCell::new(SoftCq::of_entries());
static FLAG: ConstStaticCell<Flag> = ConstStaticCell::new(Flag::new());

fn state(position: u32) -> &'static AtomicU32 {
    &RING[position as usize % RING.len()]
}

/// What the interrupt handler owns.
struct Handler {
    next: u32,
    queue: Producer<'static, Finished, Raiser<'static>>,
}

impl Handler {
    /// Pushes what the engine has finished, in order.
    fn on_interrupt(&mut self) {
        loop {
            // Acquire: the moved data is read after this load.
            let finished = match state(self.next).load(Acquire) {
                FREE | POSTED => return,
                state => Finished { position: self.next, state },
            };
            state(self.next).store(FREE, Relaxed); // before the push: who polls that may post here again
            let _ = self.queue.push_or_overrun(&finished); // an overrun is latched: the main loop gets it
            self.next = self.next.wrapping_add(1);
        }
    }
}

/// Sleeps until an interrupt, unless an event is pending.
fn sleep(events: &Receiver<'_>) {
    interrupt::free(|_| {
        if !events.is_pending() {
            asm::dsb();
            asm::wfi();
        }
    });
    asm::isb(); // the handler runs here
}

fn main() -> Result<(), WaitError> {
    let (raiser, events) = FLAG.take().split();
    let (queue, consumer) = QUEUE.take().split_with(raiser);
    power_on(Handler { next: 0, queue });

    let (mut cq, mut channel) = (CompletionQueue::new(consumer), events.sleeping(sleep));
    let (mut buffer, mut posted, mut done) = ([Finished::zeroed(); 4], 0, 0);
    while done < 1000 {
        // Never more than there are descriptors, of which one is in use until its completion was polled: then the
        // queue can't overrun, and no buffer is written to before its data was read.
        while posted < 1000 && posted - done < RING.len() as u32 {
            state(posted).store(POSTED, Release); // before it the addresses, after it the doorbell
            posted += 1;
        }
        for finished in cq.wait(&mut buffer, &mut channel, None)? {
            let state = if done % 16 == 15 { 7 } else { DONE };
            assert_eq!(*finished, Finished { position: done, state });
            done += 1;
        }
    }
    println!("{done} transfers, each sixteenth of which failed as it must");
    Ok(())
}

/// The engine: it fails each sixteenth transfer with error 7. An interrupt is taken when the core does not mask it.
fn power_on(mut handler: Handler) {
    std::thread::spawn(move || {
        for position in 0.. {
            while state(position).load(Acquire) != POSTED {
                std::thread::yield_now();
            }
            let error_or_done = if position % 16 == 15 { 7 } else { DONE };
            state(position).store(error_or_done, Release);
            cortex_m::interrupt(|| handler.on_interrupt());
        }
    });
}

/// The core, as far as it is used here.
mod cortex_m {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    static MASK: Mutex<()> = Mutex::new(());
    static PENDING: AtomicBool = AtomicBool::new(false);

    pub fn interrupt(handler: impl FnOnce()) {
        PENDING.store(true, SeqCst);
        let _unmasked = MASK.lock().unwrap();
        PENDING.store(false, SeqCst);
        handler();
    }
    pub mod interrupt {
        pub fn free<R>(section: impl FnOnce(&()) -> R) -> R {
            let _masked = super::MASK.lock().unwrap();
            section(&())
        }
    }
    pub mod asm {
        pub use std::thread::yield_now as isb;
        pub fn dsb() {}
        pub fn wfi() {
            while !super::PENDING.load(super::SeqCst) {
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn it_runs() -> Result<(), WaitError> {
    main()
}
