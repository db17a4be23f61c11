//! Firmware: a static queue, an interrupt handler that pushes, a main loop that sleeps by `WFI`. No allocator, no
//! operating system, no compare-and-swap.
//!
//! A whole program, for a DMA engine of your own. It is what runs on a microcontroller, except that the last two items
//! model the engine and the core, so that it runs on the host. It needs the crates `bytemuck`, with the feature `derive`, and
//! `static_cell`, which on a core without compare-and-swap needs `--cfg portable_atomic_unsafe_assume_single_core`, or is
//! replaced by [what a board adds](#what-a-board-adds):
//!
//! ```
//! use core::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
//!
//! use bytemuck::{Pod, Zeroable};
//! use cortex_m::{asm, interrupt};
//! use cq_core::channel::flag::{Flag, Raiser, Receiver};
//! use cq_core::cq::{CompletionQueue, WaitError};
//! use cq_core::entry::{Entry, InArray};
//! use cq_core::queue::{Producer, SoftCq};
//! use static_cell::ConstStaticCell;
//!
//! const FREE: u32 = 0;
//! const POSTED: u32 = 1;
//! const DONE: u32 = 2; // anything else: the number of an error
//!
//! /// What the queue holds for a transfer.
//! #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
//! #[repr(C)]
//! struct Finished {
//!     position: u32,
//!     state: u32, // `DONE`, or the number of the error
//! }
//!
//! impl Entry for Finished {
//!     type Generation = InArray; // no bit of it is spare
//! }
//!
//! /// The states of the engine's descriptors. On a board, also their addresses and lengths.
//! static RING: [AtomicU32; 8] = [const { AtomicU32::new(FREE) }; 8];
//! static QUEUE: ConstStaticCell<SoftCq<16, Finished>> = ConstStaticCell::new(SoftCq::of_entries());
//! static FLAG: ConstStaticCell<Flag> = ConstStaticCell::new(Flag::new());
//!
//! fn state(position: u32) -> &'static AtomicU32 {
//!     &RING[position as usize % RING.len()]
//! }
//!
//! /// What the interrupt handler owns.
//! struct Handler {
//!     next: u32,
//!     queue: Producer<'static, Finished, Raiser<'static>>,
//! }
//!
//! impl Handler {
//!     /// Pushes what the engine has finished, in order.
//!     fn on_interrupt(&mut self) {
//!         loop {
//!             // Acquire: the moved data is read after this load.
//!             let finished = match state(self.next).load(Acquire) {
//!                 FREE | POSTED => return,
//!                 state => Finished { position: self.next, state },
//!             };
//!             state(self.next).store(FREE, Relaxed); // before the push: who polls that may post here again
//!             let _ = self.queue.push_or_overrun(&finished); // an overrun is latched: the main loop gets it
//!             self.next = self.next.wrapping_add(1);
//!         }
//!     }
//! }
//!
//! /// Sleeps until an interrupt, unless an event is pending.
//! fn sleep(events: &Receiver<'_>) {
//!     interrupt::free(|_| {
//!         if !events.is_pending() {
//!             asm::dsb();
//!             asm::wfi();
//!         }
//!     });
//!     asm::isb(); // the handler runs here
//! }
//!
//! fn main() -> Result<(), WaitError> {
//!     let (raiser, events) = FLAG.take().split();
//!     let (queue, consumer) = QUEUE.take().split_with(raiser);
//!     power_on(Handler { next: 0, queue });
//!
//!     let (mut cq, mut channel) = (CompletionQueue::new(consumer), events.sleeping(sleep));
//!     let (mut buffer, mut posted, mut done) = ([Finished::zeroed(); 4], 0, 0);
//!     while done < 1000 {
//!         // Never more than there are descriptors, of which one is in use until its completion was polled: then the
//!         // queue can't overrun, and no buffer is written to before its data was read.
//!         while posted < 1000 && posted - done < RING.len() as u32 {
//!             state(posted).store(POSTED, Release); // before it the addresses, after it the doorbell
//!             posted += 1;
//!         }
//!         for finished in cq.wait(&mut buffer, &mut channel, None)? {
//!             let state = if done % 16 == 15 { 7 } else { DONE };
//!             assert_eq!(*finished, Finished { position: done, state });
//!             done += 1;
//!         }
//!     }
//!     Ok(())
//! }
//!
//! /// The engine: it fails each sixteenth transfer with error 7. An interrupt is taken when the core does not mask it.
//! fn power_on(mut handler: Handler) {
//!     std::thread::spawn(move || {
//!         for position in 0.. {
//!             while state(position).load(Acquire) != POSTED {
//!                 std::thread::yield_now();
//!             }
//!             let error_or_done = if position % 16 == 15 { 7 } else { DONE };
//!             state(position).store(error_or_done, Release);
//!             cortex_m::interrupt(|| handler.on_interrupt());
//!         }
//!     });
//! }
//!
//! /// The core, as far as it is used here.
//! mod cortex_m {
//!     use std::sync::Mutex;
//!     use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
//!
//!     static MASK: Mutex<()> = Mutex::new(());
//!     static PENDING: AtomicBool = AtomicBool::new(false);
//!
//!     pub fn interrupt(handler: impl FnOnce()) {
//!         PENDING.store(true, SeqCst);
//!         let _unmasked = MASK.lock().unwrap();
//!         PENDING.store(false, SeqCst);
//!         handler();
//!     }
//!     pub mod interrupt {
//!         pub fn free<R>(section: impl FnOnce(&()) -> R) -> R {
//!             let _masked = super::MASK.lock().unwrap();
//!             section(&())
//!         }
//!     }
//!     pub mod asm {
//!         pub use std::thread::yield_now as isb;
//!         pub fn dsb() {}
//!         pub fn wfi() {
//!             while !super::PENDING.load(super::SeqCst) {
//!                 std::thread::yield_now();
//!             }
//!         }
//!     }
//! }
//! ```
//!
//! The firmware that `cargo verify bare-metal` runs in QEMU is this with an engine that a timer plays:
//! `cq-core/examples/firmware` in the repository. Its interrupt comes one cycle later in each round, at every
//! instruction from the doorbell to the `WFI`.
//!
//! # What a board adds
//! The handler gets its half through a static. `static mut` in a function with `#[entry]` is safe: the attribute sees to it
//! that it is used once.
//!
//! ```text
//! use cortex_m::interrupt::{self, Mutex};
//! use cortex_m_rt::entry;
//!
//! static HANDLER: Mutex<RefCell<Option<Handler>>> = Mutex::new(RefCell::new(None));
//!
//! #[interrupt] // of the device's crate; #[exception] of cortex-m-rt for SysTick and PendSV
//! fn DMA() {
//!     interrupt::free(|cs| HANDLER.borrow(cs).borrow_mut().iter_mut().for_each(Handler::on_interrupt));
//! }
//!
//! #[entry]
//! fn main() -> ! {
//!     static mut QUEUE: SoftCq<16, Finished> = SoftCq::of_entries();
//!     static mut FLAG: Flag = Flag::new();
//!     let (raiser, events) = FLAG.split();
//!     let (queue, consumer) = QUEUE.split_with(raiser);
//!     interrupt::free(|cs| HANDLER.borrow(cs).replace(Some(Handler { next: 0, queue })));
//!     // then enable the interrupt
//! ```
//!
//! The manifest needs `cortex-m` (with `critical-section-single-core`, by which its `Peripherals::take` is safe on one
//! core), `cortex-m-rt`, a handler of panics, and for QEMU `cortex-m-semihosting`, whose `debug::exit` ends a run with a
//! status; `.cargo/config.toml` names the target, `memory.x` the addresses of flash and RAM. Copy all of them from the
//! example, with its `build.rs`. In its folder, `rustup target add thumbv7em-none-eabihf` and `cargo run` build it and run it
//! in QEMU (`qemu-system-arm`); for a core without compare-and-swap, `rustup target add thumbv6m-none-eabi` and `cargo run
//! --target thumbv6m-none-eabi` do. What goes to the flash is built with `--release`.
//!
//! # Why no wake-up is lost
//! [`wait`](crate::cq::CompletionQueue::wait) polls, takes events, arms the queue and looks at it again
//! ([N6](crate::contract#n6)). Then it calls `sleep` while there is no event. The interrupt comes at one of these
//! places:
//!
//! | the interrupt comes | then |
//! |---|---|
//! | before the queue is armed | no event is raised. Arming finds the completion, and `wait` returns it |
//! | after that, before interrupts are masked | its handler pushes, and raises the event. The look finds it, and there is no `WFI` |
//! | after they are masked | it is pending, and the handler does not run yet. A pending interrupt ends the `WFI`, or keeps it from sleeping. The handler runs when interrupts are unmasked, and the next look finds the event |
//!
//! Without the mask, the interrupt could come between the look and the `WFI`: its handler runs, no interrupt is pending
//! any more, and the core sleeps with a completion in the queue. `cargo verify bare-metal` tries that: it hangs.
//!
//! - Mask with `cortex_m::interrupt::free`, which sets PRIMASK. BASEPRI, an interrupt that is disabled in the NVIC, and
//!   critical sections that are made of these also keep the interrupt from ending the `WFI`.
//! - `WFE` needs no mask: an interrupt sets the event register, and the next `WFE` returns at once. Then `sleep` is
//!   `|_| asm::wfe()`. Under an emulator it may not sleep at all.
//! - Other interrupts end the sleep, too; then there is no event, and the core sleeps again. A main loop with more to
//!   do than this queue calls [`poll_or_arm`](crate::cq::CompletionQueue::poll_or_arm), and sleeps after a look at
//!   everything else, as in the guide to events of cq-verbs.
//! - If the queue has no channel ([`split`](crate::queue::SoftCq::split)), it can't be armed: the main loop polls.
//!
//! # Where completions are kept
//! | | the handler | memory | for |
//! |---|---|---|---|
//! | the main loop polls the engine | none | none | a loop that never sleeps: the driver implements [`PollCq`](crate::transport::PollCq), and `cq.poll(…)` of its `CompletionQueue` does what the handler does above |
//! | the handler pushes | as above | a [`SoftCq`](crate::queue::SoftCq) | descriptors that must be free at once; several sources of completions that one queue collects |
//! | the handler raises the flag only | `raiser.raise()` | none | engines whose interrupt can be enabled: the driver is the main loop's, and implements [`Arm`](crate::transport::Arm) as in the guide to transports of cq-testing |
//!
//! # What is static, and how big
//! A queue for `N` completions, a power of two, holds exactly `N`. Nothing is allocated.
//!
//! | static | bytes on a 32-bit core |
//! |---|---|
//! | `SoftCq<N, E>`, `E` of 8 bytes with `InArray` | 16 + 9 · `N`: 88 for 8, 160 for 16, 592 for 64 |
//! | `SoftCq<N, E>`, `E` of 8 bytes with `InEntry` | 16 + 8 · `N`: 80 for 8, 144 for 16, 528 for 64 |
//! | `SoftCq<N>`, of `Wc` | 16 + 48 · `N`: 400 for 8, 784 for 16, 3088 for 64 |
//! | `Flag` | 8 |
//! | a producer, a consumer | 40, 60; with `InArray` 48, 72 |
//! | `[E; N]`, the buffer of a poll | the entries, on the stack: of the handler, too |
//!
//! An [entry](crate::entry) of one's own, as `Finished` is, costs 8 bytes of RAM and 1 byte for its generation, or 0 with
//! [`InEntry`](crate::entry::InEntry) if two bits of it are spare, as in the example in the repository. A completion,
//! [`Wc`](crate::wc::Wc), costs 48: it is for what stands on cq-verbs.
//!
//! `SoftCq::of_entries` is a constant of zeros, so the queue needs no flash.
//!
//! **Overrun.** `N` is at least the number of descriptors, and the loop never posts more than were polled: then there
//! is no overrun. If there is one, [`push_or_overrun`](crate::queue::Producer::push_or_overrun) drops what does not fit, and the
//! queue has ended: the main loop gets what was stored, then [`Overrun`](crate::transport::PollError::Overrun) with the
//! number of those that were dropped, at every poll ([O3](crate::contract#o3)). It is woken for that
//! ([O5](crate::contract#o5)), so the handler need not report it. A handler that can leave descriptors as they are uses
//! [`push`](crate::queue::Producer::push) instead. To go on, see below.
//!
//! **Tokens.** An engine that finishes in order needs no ledger: the position says which it was, as above, and
//! an array of `N` tells what each was for. One that finishes in any order takes `Receives` of cq-verbs, as
//! in the guide to transports of cq-testing; without compare-and-swap its
//! generation is `Generation::new` with a number of your own.
//!
//! # After an overrun
//! Both sides of a queue that has overrun, or that was failed, give it back, with the raiser, and it is split again: another
//! start would find the static taken. The handler's side comes back as it went, through its static; in the program above it is
//! a `Handler`, which keeps its `next`:
//!
//! ```
//! use std::sync::Mutex; // on a board, that of `cortex_m::interrupt`, with a `RefCell`
//!
//! use cq_core::channel::flag::{Flag, Raiser};
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::{Consumer, OnChannel, Producer, SoftCq};
//! use cq_core::transport::PollError;
//! use cq_core::wc::{Wc, WcStatus};
//! use static_cell::ConstStaticCell;
//!
//! static QUEUE: ConstStaticCell<SoftCq<16>> = ConstStaticCell::new(SoftCq::new());
//! static FLAG: ConstStaticCell<Flag> = ConstStaticCell::new(Flag::new());
//! static HANDLER: Mutex<Option<Producer<'static, Wc, Raiser<'static>>>> = Mutex::new(None);
//!
//! type Cq = CompletionQueue<Consumer<'static, Wc, OnChannel<Raiser<'static>>>>;
//!
//! fn start(queue: &'static mut SoftCq<16>, raiser: Raiser<'static>) -> Cq {
//!     let (producer, consumer) = queue.split_with(raiser);
//!     *HANDLER.lock().unwrap() = Some(producer);
//!     CompletionQueue::new(consumer)
//! }
//!
//! fn restart(cq: Cq) -> Cq {
//!     let producer = HANDLER.lock().unwrap().take().expect("`start` has put it there");
//!     let (queue, raiser) = SoftCq::reunite(producer, cq.into_inner()).expect("the sides of one queue");
//!     start(queue, raiser)
//! }
//!
//! fn on_interrupt() {
//!     if let Some(queue) = HANDLER.lock().unwrap().as_mut() {
//!         let _ = queue.push_or_overrun(&Wc::new(7, WcStatus::SUCCESS, 0)); // latched: the main loop gets it
//!     }
//! }
//!
//! let (raiser, _events) = FLAG.take().split();
//! let mut cq = start(QUEUE.take(), raiser);
//! (0..17).for_each(|_| on_interrupt()); // one too many
//! let mut buffer = [Wc::default(); 16];
//! assert_eq!(cq.poll(&mut buffer)?.len(), 16);
//! assert_eq!(cq.poll(&mut buffer), Err(PollError::Overrun { dropped: Some(1) }));
//! let mut cq = restart(cq);
//! on_interrupt();
//! assert_eq!(cq.poll(&mut buffer)?.len(), 1);
//! # Ok::<(), PollError>(())
//! ```
//!
//! An interrupt in between finds no producer, and pushes nothing. So pend it once after the restart, as by `NVIC::pend`: its
//! handler pushes what was finished meanwhile, for which no other interrupt may come. Which transfers were dropped is known by
//! their positions, from the one after the last that was polled; how they went is lost, if the handler frees a descriptor before
//! it pushes. The guide to recovery of cq-verbs says how a program goes on. A flag whose raiser was dropped with its
//! producer is lost, as is a queue one side of which was: keep them. Both sides of a flag
//! [give it back](crate::channel::Raiser::reunite), too.
//!
//! # Features
//! | feature | for |
//! |---|---|
//! | none | all of the above |
//! | `defmt` | logs: `defmt::warn!("{}", failed)` |
//! | `heapless` of cq-verbs | `handlers` for each queue pair, in maps of `heapless` |
//! | `async` | tasks of embassy instead of a main loop that sleeps: `channel::waker` |
//! | `portable-atomic` | `async` without compare-and-swap; on one core build with `--cfg portable_atomic_unsafe_assume_single_core` |
//!
//! Tests on the host have `cq-testing`.
//!
//! Without compare-and-swap (`thumbv6m-none-eabi`) a consumer that [fails](crate::queue::Consumer::fail) its
//! queue raises no event, and there is no `budget`, `tracked` or `shared_cq`. [`queue::mpsc`](crate::queue::mpsc) needs 64-bit atomics: elsewhere
//! several handlers share a producer in a critical section, or have a queue each. An interrupt handler and the main
//! loop are two sides, as two cores would be; handlers of the same priority do not interrupt each other, and are one
//! side.
//!
//! # Logs
//! `Debug` puts its texts, and the code that assembles them, into the flash. With `defmt` the host has them:
//!
#![cfg_attr(feature = "defmt", doc = "```")]
#![cfg_attr(not(feature = "defmt"), doc = "```ignore")]
//! use cq_core::transport::PollError;
//! use cq_core::wc::Wc;
//!
//! fn log(polled: Result<&[Wc], PollError>) {
//!     match polled {
//!         Ok(batch) => batch.iter().filter_map(|wc| wc.result().err()).for_each(|failed| {
//!             defmt::warn!("{}", failed); // Failed { wr_id: 7, status: RETRY_EXC_ERR, qp_num: 17, vendor_err: 0x0 }
//!         }),
//!         Err(error) => defmt::error!("{}", error), // Overrun { dropped: Some(3) }
//!     }
//! }
//! ```
//!
//! | built for thumbv7em, optimized for size | bytes of flash |
//! |---|---|
//! | a firmware that polls a queue | 1480 |
//! | and logs completions and errors by `defmt` | 3042 |
//! | by `Debug` | 8152 |
//!
//! # Tests on the host
//! - **The same code**, as above: nothing in it names a target but the `cortex_m` that is imported. The model of the
//!   core is strict: without the mask in `sleep` it hangs.
//! - **The driver alone**: `rules` of cq-testing checks a transport, arming included, by the rules of the
//!   contract.
//! - **The main loop alone**: generic over [`PollCq`](crate::transport::PollCq) or [`Arm`](crate::transport::Arm), it
//!   runs on a script, or on a queue with injected faults: the guide to tests of cq-testing.
//! - **The image**: `cargo run` in QEMU. `-icount` makes each run the same, so a race that it has, it has each time.
