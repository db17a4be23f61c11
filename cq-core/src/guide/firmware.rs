//! Firmware in `no_std`, without an allocator: the interrupt handler of a DMA engine pushes to a static queue, and a main loop that
//! sleeps by `WFI`, an embassy task or an RTIC task takes the completions. It works on Cortex-M and RISC-V, also without
//! compare-and-swap; RTIC ran on `thumbv7m` only. For embassy and RTIC begin with [Tasks](#tasks).
//!
//! # The least program
//! It runs in QEMU on `thumbv7em-none-eabihf`, `thumbv6m-none-eabi` and `riscv32imac-unknown-none-elf`. A timer plays the device.
//!
//! ```rust,ignore
#![doc = include_str!("firmware/board.rs")]
//! ```
//!
//! In the repository: `cd cq-core/examples/firmware && cargo run --bin board`, with `--target` for the other two. It needs the target
//! (`rustup target add thumbv7em-none-eabihf`) and QEMU (Debian: `qemu-system-arm`, `qemu-system-misc`). In a copy of the folder, add
//! `board.rs`, and set its path and that of `cq-core` in `Cargo.toml`. `src/board` is the timer, `memory` has the addresses of flash and
//! RAM. An entry is a number here; any plain old data can be one ([`entry`](crate::entry)).
//!
//! - On Cortex-M the program has `cortex-m-rt`, and `cortex-m` with `critical-section-single-core`. On RISC-V it has `riscv-rt` with
//!   `memory` and `single-hart`, and `riscv` with `critical-section-single-hart`. Both link by `-Tlink.x` with a `memory.x`.
//! - Build each architecture by a call of cargo of its own: in one call, `critical-section` gets the features of both.
//! - `Timer::take` enables the interrupt. A device's is enabled by `NVIC::unmask`; on RISC-V by its bit of `mie` and by
//!   `riscv::interrupt::enable`.
//! - On RISC-V an interrupt stays pending until its cause is gone. Give the handler its queue before the device starts, as above.
//!
//! # Targets
//! | target | atomics | queues, flags | `fail` raises an event; [`shared_cq`](crate::shared_cq) | [`queue::mpsc`](crate::queue::mpsc) |
//! |---|---|---|---|---|
//! | `thumbv7m`, `thumbv7em`, `riscv32imac` | 32 bits, with compare-and-swap | yes | yes | no |
//! | `thumbv6m`, `riscv32imc` | 32 bits, loads and stores | yes | no | no |
//! | bare `aarch64`, `x86_64` | 64 bits, with compare-and-swap | yes | yes | yes |
//!
//! For others, `rustc --print cfg --target …` lists `target_has_atomic`. `cargo verify bare-metal` runs programs in QEMU on all of
//! these but `riscv32imc` and the 64-bit ones, for which it compiles the libraries. Tasks need the [feature](crate#features) `async`.
//!
//! **Without compare-and-swap**, `async` and the crate `static_cell` take it from `portable-atomic`. The program says how, by exactly
//! one of these:
//!
//! - `portable-atomic = { version = "1", default-features = false, features = ["critical-section"] }` in its manifest. It works
//!   everywhere, also on several cores and with a HAL that enables it.
//! - That crate's feature `unsafe-assume-single-core`, or `--cfg portable_atomic_unsafe_assume_single_core`: on one core, if no HAL
//!   enables `critical-section`, since the two together do not compile.
//!
//! # What is sound from an interrupt
//! A handler and the main loop are two sides, as two threads would be: each is `Send`, and its calls take `&mut self`. Handlers of one
//! priority do not interrupt each other, and can be one side.
//!
//! | in a handler | |
//! |---|---|
//! | `push`, `push_or_overrun`, their batches, `poll`, `pop`, `poll_in_place`, `arm`, `raise`, `len`, `end`, `fail`, `reunite`, dropping a side | sound. None of them waits or allocates; the last side of a `HeapCq` frees it |
//! | `push_or_wait`, `wait`, [`SharedCq::lock`](crate::shared_cq::SharedCq::lock) | never: the code that they wait for is interrupted. `SharedCq::try_lock` is sound |
//! | a raiser of `channel::waker` | sound with executors whose tasks interrupts may wake, as embassy's and RTIC's |
//! | an NMI | no critical section masks it: it must not share a side |
//!
//! **Several priorities that push** have a queue each, or share a producer in a critical section, as `HANDLER` is above. `queue::mpsc`
//! needs 64-bit atomics.
//!
//! **Two cores** may have a side each, also without compare-and-swap: the queue orders their accesses by Release and Acquire. An
//! interrupt of one core does not wake the other. On Cortex-M, the core that pushes executes `dsb` and `sev` afterwards, and the other one
//! sleeps by `WFE`; on RISC-V, the hart that pushes raises the software interrupt of the other one. To push to one queue, both need the
//! critical sections of a HAL, which lock out both cores; `portable-atomic` then needs `critical-section`. This follows from the
//! architectures; no program was run on two cores.
//!
//! # Sleeping
//! [`wait`](crate::cq::CompletionQueue::wait) polls, arms the queue and polls again ([N6](crate::contract#n6)). Then it calls the
//! closure of [`sleeping`](crate::channel::flag::Receiver::sleeping) while there is no event. The closure checks for one, and
//! sleeps, with interrupts masked:
//!
//! | the interrupt comes | then |
//! |---|---|
//! | before the queue is armed | there is no event. Arming finds the completion, and `wait` returns it |
//! | before interrupts are masked | its handler raises the event. The closure finds it, and skips `WFI` |
//! | after they are masked | it is pending, which ends the `WFI`. The handler runs when they are unmasked, and raises the event |
//!
//! Without the mask, an interrupt between check and `WFI` is lost: nothing is pending any more, and the core sleeps with a
//! completion in the queue.
//!
//! - The mask is PRIMASK or `mstatus.MIE`, as `critical_section::with` sets it on one core. An interrupt that BASEPRI masks, as RTIC's
//!   `lock` does, or that is disabled in the NVIC or in `mie`, does not end the `WFI`.
//! - `WFE` of Cortex-M needs no mask: an interrupt sets the event register, and the next `WFE` returns at once. The closure is
//!   `|_| asm::wfe()`. QEMU does not sleep in it.
//! - After another interrupt the core sleeps again. A main loop with other work calls
//!   [`poll_or_arm`](crate::cq::CompletionQueue::poll_or_arm), and sleeps once nothing is left to do.
//! - A queue without a channel ([`split`](crate::queue::SoftCq::split)) can't be armed: the main loop polls.
//!
//! **With a deadline.** [`sleeping_until`](crate::channel::flag::Receiver::sleeping_until) takes a clock, too, such as
//! `|| Tick(TICKS.load(Relaxed))`. The timer's interrupt ends each sleep, and `wait` returns an empty batch once the deadline has passed.
//! Ticks of 32 bits wrap, so compare their difference:
//!
//! ```
//! use core::cmp::Ordering;
//!
//! /// Milliseconds. Two that are compared are less than 24 days apart.
//! #[derive(Clone, Copy, PartialEq)]
//! struct Tick(u32);
//!
//! impl PartialOrd for Tick {
//!     fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
//!         (self.0.wrapping_sub(other.0) as i32).partial_cmp(&0)
//!     }
//! }
//!
//! assert!(Tick(20) > Tick(u32::MAX));
//! ```
//!
//! # Tasks
//! With the feature `async`, `channel::waker` wakes a task of any executor, and `next_batch` of
//! [`CompletionQueue`](crate::cq::CompletionQueue) awaits completions. A `WakerChannel` is split as a flag is; a handler's producer is a
//! `Producer<'static, E, waker::Raiser<Share<'static, WakerChannel>>>`. Both programs are in the example's folder:
//!
//! | | embassy | RTIC |
//! |---|---|---|
//! | run | `cargo run --bin embassy --features embassy`, on all three targets | `cargo run --bin rtic --features rtic --target thumbv7m-none-eabi` |
//! | producer | of the handler, in a critical section | `local` to the hardware task, without a lock, or `shared` by tasks of two priorities |
//! | statics | `ConstStaticCell` | `local` of `init` |
//! | deadline | `with_timeout(…, cq.next_batch(…))`; a wait that is dropped takes nothing | `timeout_after` of a monotonic |
//!
//! RTIC's program also compiles for `thumbv7em`. Its idle task calls `wait` outside of a `lock`, which may keep an interrupt from ending
//! the `WFI`.
//!
//! # A full queue
//! If `N` is at least the number of descriptors, and none is posted again before its completion was polled, the queue is never full.
//! Otherwise the handler chooses.
//!
//! **It drops.** [`push_or_overrun`](crate::queue::Producer::push_or_overrun) drops what does not fit and ends the queue. The main loop
//! polls what was stored, then every poll fails with [`Overrun`](crate::transport::PollError::Overrun) and the number of dropped
//! completions ([O3](crate::contract#o3)). It is woken for that ([O5](crate::contract#o5)).
//!
//! **It leaves descriptors as they are.** [`push`](crate::queue::Producer::push) fails with `Full`, and the handler returns. No
//! interrupt follows for what it has left. So after each poll the main loop checks `IS_LEFT`, clears it, and then pends the interrupt
//! (`NVIC::pend`, or the software interrupt of RISC-V).
//!
//! ```
//! use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
//!
//! use cq_core::queue::{Producer, PushError};
//!
//! static FINISHED: AtomicU32 = AtomicU32::new(0); // by the device
//! static IS_LEFT: AtomicBool = AtomicBool::new(false);
//!
//! fn on_interrupt(queue: &mut Producer<'_, u32>, next: &mut u32) {
//!     while *next < FINISHED.load(Relaxed) {
//!         match queue.push(next) {
//!             Ok(()) => *next += 1,
//!             Err(PushError::Full) => return IS_LEFT.store(true, Relaxed),
//!             Err(_) => return, // the main loop has failed or dropped the queue
//!         }
//!     }
//! }
//! ```
//!
//! **Recovery after an overrun.** A static can be taken only once, so both sides give the queue back by
//! [`SoftCq::reunite`](crate::queue::SoftCq::reunite), with the raiser, and it is split again:
//!
//! ```
//! use core::cell::RefCell;
//!
//! use cq_core::channel::flag::Raiser;
//! use cq_core::queue::{Consumer, OnChannel, Producer, SoftCq};
//! use critical_section::Mutex;
//!
//! static HANDLER: Mutex<RefCell<Option<Producer<'static, u32, Raiser<'static>>>>> = Mutex::new(RefCell::new(None));
//!
//! type Side = Consumer<'static, u32, OnChannel<Raiser<'static>>>; // `cq.into_inner()`
//!
//! fn restart(consumer: Side) -> Side {
//!     let producer = critical_section::with(|cs| HANDLER.take(cs)).expect("the handler has it");
//!     let (queue, raiser) = SoftCq::<16, u32>::reunite(producer, consumer).expect("the sides of one queue");
//!     let (producer, consumer) = queue.split_with(raiser);
//!     critical_section::with(|cs| HANDLER.replace(cs, Some(producer)));
//!     consumer // now pend the interrupt
//! }
//! ```
//!
//! - An interrupt in between finds no producer. Pend it afterwards, so that its handler pushes what was finished meanwhile.
//! - The transfers between the last one polled before the restart and the first one after it were dropped. Their results are lost
//!   if the handler frees a descriptor before it pushes.
//! - Keep both sides of a queue and of a flag: a dropped one can't be given back. Those of a flag
//!   [reunite](crate::channel::Raiser::reunite), too.
//!
//! # Where completions are kept
//! | | memory | for |
//! |---|---|---|
//! | the main loop polls the engine | none | loops that never sleep. The driver implements [`PollCq`](crate::transport::PollCq), as the example's `dma.rs` |
//! | the handler pushes | a [`SoftCq`](crate::queue::SoftCq) | descriptors that must be free at once; several sources in one queue |
//! | the handler calls `raiser.raise()` only | none | engines whose interrupt can be enabled. The driver implements [`Arm`](crate::transport::Arm), as in the guide to transports of cq-testing |
//!
//! An engine that finishes in order needs no ledger: the position identifies the transfer. For any order use `Receives` of cq-verbs;
//! without compare-and-swap its generation is `Generation::new` with a number of your own.
//!
//! # What it costs
//! A queue for `N` completions, a power of two, holds exactly `N`. `SoftCq::of_entries` is a constant of zeros and needs no flash.
//!
//! | static | bytes on a 32-bit core |
//! |---|---|
//! | `SoftCq<N, E>`, `E` of 8 bytes with [`InArray`](crate::entry::InArray) | 16 + 9 · `N` |
//! | the same with [`InEntry`](crate::entry::InEntry), if two bits of the entry are spare | 16 + 8 · `N` |
//! | `SoftCq<N>`, of [`Wc`](crate::wc::Wc) | 16 + 48 · `N` |
//! | `Flag`, `WakerChannel` | 8, 20 |
//! | a producer, a consumer | 36, 48; with a flag 40, 60; with `InArray` 8 and 12 more |
//!
//! For an entry of 16 bytes with two spare (`InEntry`) on `thumbv7em-none-eabihf` at `opt-level = "s"`, counted in QEMU without interrupt
//! entry and exit:
//!
//! | a push and a poll | instructions | bytes of flash, whole program |
//! |---|---|---|
//! | `push_or_overrun`, `pop` | 61 | 2060 |
//! | the same, the producer in a critical section | 77 | 2308 |
//! | a flag, and `wait` for up to four | 97 | 2776 |
//! | `spsc` of heapless; in a critical section | 55; 74 | 1512; 1640 |
//! | embassy's channel, in critical sections | 85 | 1576 |
//!
//! With `InArray` the first three take 62, 78 and 95 instructions, 2100, 2352 and 3656 bytes: the last links `memcpy`. Tasks are not
//! measured. `bench/firmware` has other targets and sizes. Reuse the buffer of a poll: a new array is cleared each time.
//!
//! A handler of cortex-m-rt can take its side once, without a critical section afterwards, and give it back for a
//! [recovery](#a-full-queue):
//!
//! ```rust,ignore
//! static mut MINE: Option<Handler> = None; // in the handler, where it is a `&mut`
//! if MINE.is_none() {
//!     *MINE = critical_section::with(|cs| HANDLER.take(cs));
//! }
//! ```
//!
//! **Logs.** `Debug` puts its texts and code into the flash. With the feature `defmt` the host has the texts: completions and errors are
//! `defmt::Format`. The program also links by `-Tdefmt.x` and has a logger, such as `defmt-rtt`.
//!
//! # Tests
//! - **The same code on the host**: `cargo run -p cq-core --example static_isr` models the engine and the core. Without the mask it hangs.
//! - **The driver**: `rules` of cq-testing checks a transport of any entry.
//! - **The main loop**: cq-testing's scripts and fault injection are for completions (`Wc`) only. A loop over other entries is tested on
//!   a [`SoftCq`](crate::queue::SoftCq), to which the test pushes them late, failed or out of order.
//! - **The image**: `cargo run` in QEMU, where `-icount` makes each run the same. The program `firmware` tries the interrupt at every
//!   instruction from the doorbell to the `WFI`.
