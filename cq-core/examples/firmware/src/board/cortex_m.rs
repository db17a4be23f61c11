//! A Cortex-M: SysTick, PendSV and WFI.

use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::peripheral::{SCB, SYST};
use cortex_m::{Peripherals, asm};
pub use cortex_m_rt::entry;

/// Has the timer's interrupt call one function, and the one that the program pends another.
#[macro_export]
macro_rules! interrupts {
    (timer: $timer:path, pended: $pended:path) => {
        #[cortex_m_rt::exception]
        fn SysTick() {
            $timer();
        }

        #[cortex_m_rt::exception]
        fn PendSV() {
            $pended();
        }
    };
}

/// A timer that expires once.
pub struct Timer(SYST);

impl Timer {
    /// The timer, with its interrupt enabled.
    ///
    /// # Panics
    /// It was taken before.
    pub fn take() -> Self {
        let mut timer = Peripherals::take().expect("nobody has taken them").SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.enable_interrupt();
        Self(timer)
    }

    /// Lets it expire after so many cycles.
    pub fn start(&mut self, cycles: u32) {
        self.0.set_reload(cycles);
        self.0.clear_current();
        self.0.enable_counter();
    }

    /// Stops it. An interrupt that is pending is dropped.
    pub fn stop(&mut self) {
        self.0.disable_counter();
        SCB::clear_pendst();
    }
}

/// Pends the program's interrupt.
pub fn pend_interrupt() {
    SCB::set_pendsv();
}

/// Sleeps until an interrupt is pending. In a critical section, its handler runs at the end of the section.
pub fn wait_for_interrupt() {
    asm::dsb();
    asm::wfi();
}

/// After a critical section: the handlers of pending interrupts have run.
pub fn take_interrupts() {
    asm::isb();
}
