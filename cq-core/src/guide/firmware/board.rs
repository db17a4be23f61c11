#![no_std]
#![no_main]

use core::cell::RefCell;

#[cfg(target_arch = "arm")]
use cortex_m::asm::wfi;
#[cfg(target_arch = "arm")]
use cortex_m_rt::{entry, exception};
use cq_core::channel::flag::{Flag, Raiser};
use cq_core::cq::CompletionQueue;
use cq_core::queue::{Producer, SoftCq};
use critical_section::Mutex;
use firmware::board::Timer; // plays the device
#[cfg(target_arch = "riscv32")]
use riscv::{asm::wfi, interrupt::Interrupt};
#[cfg(target_arch = "riscv32")]
use riscv_rt::{core_interrupt, entry};
use semihosting::{println, process}; // of QEMU
use static_cell::ConstStaticCell;

/// What the interrupt handler owns.
struct Handler {
    device: Timer,
    transfer: u32,
    queue: Producer<'static, u32, Raiser<'static>>,
}

static HANDLER: Mutex<RefCell<Option<Handler>>> = Mutex::new(RefCell::new(None));
static QUEUE: ConstStaticCell<SoftCq<16, u32>> = ConstStaticCell::new(SoftCq::of_entries());
static FLAG: ConstStaticCell<Flag> = ConstStaticCell::new(Flag::new());

#[cfg_attr(target_arch = "arm", exception)]
#[cfg_attr(target_arch = "riscv32", core_interrupt(Interrupt::MachineTimer))]
#[allow(non_snake_case)] // Cortex-M has this name
fn SysTick() {
    critical_section::with(|cs| {
        let mut handler = HANDLER.borrow_ref_mut(cs);
        let Some(Handler { device, transfer, queue }) = handler.as_mut() else { return };
        let _ = queue.push_or_overrun(transfer); // an overrun is latched: the main loop gets it
        *transfer += 1;
        device.start(10_000); // which ends this interrupt; when it expires, the next transfer is done
    });
}

#[entry]
fn main() -> ! {
    let (raiser, events) = FLAG.take().split();
    let (queue, consumer) = QUEUE.take().split_with(raiser);
    let handler = Handler { device: Timer::take(), transfer: 0, queue };
    critical_section::with(|cs| HANDLER.borrow_ref_mut(cs).insert(handler).device.start(10_000));

    let mut cq = CompletionQueue::new(consumer);
    // No handler runs between the look and the WFI, which an interrupt that is pending ends.
    let mut channel = events.sleeping(|events| {
        critical_section::with(|_| {
            if !events.is_pending() {
                wfi()
            }
        });
    });
    let (mut buffer, mut done) = ([0; 4], 0);
    while done < 100 {
        for &transfer in cq.wait(&mut buffer, &mut channel, None).expect("it keeps up") {
            assert_eq!(transfer, done);
            done += 1;
        }
    }
    println!("by interrupt: {done} transfers");
    process::exit(0)
}
