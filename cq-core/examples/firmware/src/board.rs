//! All that differs between the architectures: a timer, an interrupt that the program pends, and sleep. A board's own crate has
//! this.

#[cfg(target_arch = "arm")]
mod cortex_m;
#[cfg(target_arch = "arm")]
pub use self::cortex_m::{Timer, entry, pend_interrupt, take_interrupts, wait_for_interrupt};

#[cfg(target_arch = "riscv32")]
#[allow(unsafe_code)]
mod riscv;
#[cfg(target_arch = "riscv32")]
pub use self::riscv::{
    Timer, acknowledge_interrupt, entry, pend_interrupt, take_interrupts, wait_for_interrupt,
};
