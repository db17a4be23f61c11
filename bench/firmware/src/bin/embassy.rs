//! The channel of embassy, in critical sections.
#![no_std]
#![no_main]

use core::hint::black_box;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::channel::Channel;
use firmware_cost::{Entry, SLOTS, entry, number, rounds};

static CHANNEL: Channel<CriticalSectionRawMutex, Entry, SLOTS> = Channel::new();

#[entry]
fn main() -> ! {
    rounds(
        |entry| _ = CHANNEL.try_send(*entry),
        || CHANNEL.try_receive().ok().map(|entry| number(black_box(&entry))),
    )
}
