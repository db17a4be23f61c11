//! A RISC-V core with a CLINT, as QEMU's machine `virt` has it: its timer, the machine software interrupt, and WFI.

use riscv::register::{mie, time};
use riscv::{asm, interrupt};
pub use riscv_rt::entry;

/// The registers of the CLINT for hart 0.
const MSIP: *mut u32 = 0x0200_0000 as *mut u32;
const MTIMECMP_LOW: *mut u32 = 0x0200_4000 as *mut u32;
const MTIMECMP_HIGH: *mut u32 = 0x0200_4004 as *mut u32;

/// Has the timer's interrupt call one function, and the one that the program pends another.
#[macro_export]
macro_rules! interrupts {
    (timer: $timer:path, pended: $pended:path) => {
        #[riscv_rt::core_interrupt(riscv::interrupt::Interrupt::MachineTimer)]
        fn machine_timer() {
            $timer();
        }

        #[riscv_rt::core_interrupt(riscv::interrupt::Interrupt::MachineSoft)]
        fn machine_soft() {
            $crate::board::acknowledge_interrupt();
            $pended();
        }
    };
}

/// A timer that expires once.
pub struct Timer(());

impl Timer {
    /// The timer, with its interrupt and the program's one enabled.
    pub fn take() -> Self {
        let mut timer = Self(());
        timer.stop();
        // SAFETY: no critical section is left by this: it is not called in one. Both have handlers.
        unsafe {
            mie::set_mtimer();
            mie::set_msoft();
            interrupt::enable();
        }
        timer
    }

    /// Lets it expire after so many cycles.
    pub fn start(&mut self, cycles: u32) {
        let expiry = time::read64() + u64::from(cycles);
        self.stop();
        write(MTIMECMP_LOW, expiry as u32);
        write(MTIMECMP_HIGH, (expiry >> 32) as u32);
    }

    /// Stops it. An interrupt that is pending is dropped.
    pub fn stop(&mut self) {
        write(MTIMECMP_HIGH, u32::MAX);
    }
}

/// Pends the program's interrupt.
pub fn pend_interrupt() {
    write(MSIP, 1);
}

/// In the handler of the program's interrupt, which is pending until then.
pub fn acknowledge_interrupt() {
    write(MSIP, 0);
}

/// Sleeps until an interrupt is pending. In a critical section, its handler runs at the end of the section.
pub fn wait_for_interrupt() {
    asm::wfi();
}

/// After a critical section: the handlers of pending interrupts have run.
pub const fn take_interrupts() {}

/// Writes a register of the CLINT.
fn write(register: *mut u32, value: u32) {
    // SAFETY: it is one of the three above, which are there and aligned, and which change no memory.
    unsafe { register.write_volatile(value) }
}
