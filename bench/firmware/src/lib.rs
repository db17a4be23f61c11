//! What the programs of this package have in common. Each has one queue of 16 entries, and in rounds pushes an entry, as an
//! interrupt handler does, and polls it, as a main loop does. `cargo verify bare-metal` counts the instructions of both.
#![no_std]
#![deny(unsafe_code)]

#[cfg(target_arch = "arm")]
use cortex_m as _; // the critical section
#[cfg(target_arch = "arm")]
pub use cortex_m_rt::entry;
use cq_core::queue::{Consumer, Producer, SoftCq};
use panic_halt as _;
#[cfg(target_arch = "riscv32")]
use riscv as _; // the critical section
#[cfg(target_arch = "riscv32")]
pub use riscv_rt::entry;
use semihosting::process;
use static_cell::ConstStaticCell;

/// How many entries a queue holds.
pub const SLOTS: usize = 16;
/// How many are pushed and polled.
const ROUNDS: u32 = 320;

cfg_if::cfg_if! {
    if #[cfg(feature = "small")] {
        use core::mem::offset_of;

        use bytemuck::{Pod, Zeroable};
        use cq_core::entry::{Entry as CqEntry, InEntry};

        /// An entry of 16 bytes, with spare bits.
        #[derive(Clone, Copy, Pod, Zeroable)]
        #[repr(C, align(8))]
        pub struct Entry {
            number: u32,
            rest: [u32; 2],
            status: u16,
            spare: u16,
        }

        impl CqEntry for Entry {
            type Generation = InEntry<u16, { offset_of!(Entry, spare) }, 0xffff>;
        }

        const fn entry(number: u32) -> Entry {
            Entry { number, rest: [1; 2], status: 0, spare: 0 }
        }

        /// The number that an entry was made with.
        pub const fn number(entry: &Entry) -> u32 {
            entry.number
        }
    } else {
        use cq_core::wc::{Wc, WcStatus};

        /// An entry of 48 bytes, with spare bits.
        pub type Entry = Wc;

        const fn entry(number: u32) -> Entry {
            Wc::new(number as u64, WcStatus::SUCCESS, 1)
        }

        /// The number that an entry was made with.
        pub const fn number(entry: &Entry) -> u32 {
            entry.wr_id() as u32
        }
    }
}

/// The sizes that the guide to firmware says.
#[cfg(feature = "small")]
const _: () = {
    use cq_core::channel::flag::{Flag, Raiser};
    use cq_core::queue::OnChannel;
    use cq_core::wc::Wc;

    assert!(size_of::<SoftCq<16, [u8; 8]>>() == 160 && size_of::<SoftCq<8, [u8; 8]>>() == 88);
    assert!(size_of::<SoftCq<16, Entry>>() == 16 + 16 * 16);
    assert!(size_of::<SoftCq<16>>() == 784 && size_of::<SoftCq<8>>() == 400);
    assert!(size_of::<Flag>() == 8);
    assert!(size_of::<Producer<'_, Entry>>() == 36 && size_of::<Consumer<'_, Entry>>() == 48);
    type OnFlag = Raiser<'static>;
    assert!(size_of::<Producer<'_, Wc, OnFlag>>() == 40);
    assert!(size_of::<Consumer<'_, Wc, OnChannel<OnFlag>>>() == 60);
    assert!(size_of::<Producer<'_, u32>>() == 44 && size_of::<Consumer<'_, u32>>() == 60);
};

/// The sides of cq-core's queue.
pub fn sides() -> (Producer<'static, Entry>, Consumer<'static, Entry>) {
    static QUEUE: ConstStaticCell<SoftCq<SLOTS, Entry>> =
        ConstStaticCell::new(SoftCq::of_entries());
    QUEUE.take().split()
}

/// Runs all rounds, and ends the program: with status 1 if `poll` has not returned the number of what was pushed.
#[inline(never)]
pub fn rounds(mut push: impl FnMut(&Entry), mut poll: impl FnMut() -> Option<u32>) -> ! {
    for number in 0..ROUNDS {
        handler(&mut push, &entry(number));
        if main_loop(&mut poll) != Some(number) {
            process::exit(1);
        }
    }
    process::exit(0)
}

#[inline(never)]
fn handler(push: &mut impl FnMut(&Entry), entry: &Entry) {
    push(entry);
}

#[inline(never)]
fn main_loop(poll: &mut impl FnMut() -> Option<u32>) -> Option<u32> {
    poll()
}
