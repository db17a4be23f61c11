//! Firmware for Cortex-M and RISC-V: a static queue, an interrupt handler that pushes, a main loop that sleeps by `WFI`. No
//! allocator, no operating system, no compare-and-swap.
//!
//! | you look for | in |
//! |---|---|
//! | a program to begin with | [The least program](#the-least-program) |
//! | atomics and features of a target | [Targets](#targets) |
//! | what a handler may call, priorities, two cores | [What is sound from an interrupt](#what-is-sound-from-an-interrupt) |
//! | `WFI`, deadlines | [Sleeping](#sleeping) |
//! | embassy, RTIC | [Tasks](#tasks) |
//! | a queue that is full, or has overrun | [A full queue](#a-full-queue) |
//! | RAM, flash and instructions | [What it costs](#what-it-costs) |
//! | tests on the host | [Tests](#tests) |
//!
//! # The least program
//! It runs in QEMU on `thumbv7em-none-eabihf`, `thumbv6m-none-eabi` and `riscv32imac-unknown-none-elf`. On a board, the interrupt is
//! the device's and has the number of its transfer; here a timer plays the device.
//!
//! ```rust,ignore
#![doc = include_str!("firmware/board.rs")]
//! ```
//!
//! It is `board` in `cq-core/examples/firmware` of the repository: `cargo run --bin board` there, with `--target` for the other
//! two. To begin with it, copy that folder: `src/board` is the timer, `memory` the addresses of flash and RAM, the other programs
//! can be deleted with their `[[bin]]`. Its entries are numbers; [`entry`](crate::entry) says how a structure is one, and the
//! example's `dma.rs` has one with its generation in spare bits. What the folder has:
//!
//! | | Cortex-M | RISC-V |
//! |---|---|---|
//! | start, interrupts | `cortex-m`, `cortex-m-rt`; `#[exception]`, and `#[interrupt]` of the device's crate | `riscv`, `riscv-rt` with `memory` and `single-hart`; `#[core_interrupt(…)]` |
//! | critical sections, for `critical-section` | the feature `critical-section-single-core` of `cortex-m` | the feature `critical-section-single-hart` of `riscv` |
//! | `memory.x` | `FLASH` and `RAM` | also `REGION_ALIAS` for each region |
//! | linker | `-Tlink.x` | `-Tlink.x` |
//! | in QEMU | `qemu-system-arm`, `semihosting` | `qemu-system-riscv32`, `semihosting` |
//!
//! What goes to the flash is built with `--release`, and each architecture by a call of cargo of its own: of two at once,
//! `critical-section` gets the features of both. In `#[entry]` of cortex-m-rt, though not of riscv-rt, a `static mut` does what
//! `ConstStaticCell` does here. `Timer::take` enables the interrupt; a device's is enabled by `NVIC::unmask`, or on RISC-V by its bit of
//! `mie` and by `riscv::interrupt::enable`. There an interrupt stays pending until its cause is gone, so that a handler without a
//! queue is called again at once: give it the queue before the device starts, as above.
//!
//! # Targets
//! | target | atomics | the queue, a flag | `fail` raises an event; [`shared_cq`](crate::shared_cq), `budget`, `tracked` | [`queue::mpsc`](crate::queue::mpsc) |
//! |---|---|---|---|---|
//! | `thumbv7m`, `thumbv7em`, `riscv32imac` | 32 bits, with compare-and-swap | yes | yes | no |
//! | `thumbv6m`, `riscv32imc` | 32 bits, loads and stores | yes | no | no |
//! | bare `aarch64`, `x86_64` | 64 bits, with compare-and-swap | yes | yes | yes |
//!
//! Of others, `rustc --print cfg --target …` lists `target_has_atomic`. Without compare-and-swap share a queue in a critical section
//! instead of by `SharedCq`; `budget` and `tracked` are of cq-verbs, and count outstanding requests of RDMA. `cargo verify bare-metal`
//! runs programs on all of these but `riscv32imc` and the bare 64-bit ones, for which it compiles the libraries.
//!
//! | feature | for | without compare-and-swap |
//! |---|---|---|
//! | none | all of this guide but tasks and logs | |
//! | `async` | tasks: `channel::waker` | needs the choice below |
//! | `defmt` | [logs](#what-it-costs) | |
//! | `alloc` | the traits of [`transport`](crate::transport) for `Box<T>`, and queues on the heap; the program has a `#[global_allocator]` | no queues on the heap, no `waker::channel` |
//! | `portable-atomic` | `async` with the atomics of that crate on targets with compare-and-swap, too | `async` has them |
//! | `heapless` of cq-verbs | `handlers` for each queue pair, in maps of `heapless` | |
//!
//! **The choice.** Without compare-and-swap, `async` and the crate `static_cell` take it from `portable-atomic`, and the program
//! says how, by exactly one of these in its own manifest or flags:
//!
//! - `portable-atomic = { version = "1", default-features = false, features = ["critical-section"] }`. It works everywhere, also on
//!   several cores and beside a HAL that enables it, with the critical sections of the table above.
//! - Its feature `unsafe-assume-single-core`, or `--cfg portable_atomic_unsafe_assume_single_core`: on one core, without a HAL that
//!   enables `critical-section`, since that together with one of these does not compile.
//!
//! # What is sound from an interrupt
//! A handler and the main loop are two sides, as two cores would be: a side is `Send`, and every call takes `&mut self`. Handlers of
//! one priority do not interrupt each other, and are one side.
//!
//! | in a handler | |
//! |---|---|
//! | `push`, `push_or_overrun`, their batches, `poll`, `pop`, `poll_in_place`, `arm`, `raise` | sound. None of them waits or allocates |
//! | `push_or_wait`, `wait`, [`SharedCq::lock`](crate::shared_cq::SharedCq::lock) | never: the code that they wait for is interrupted. `SharedCq::try_lock` is sound |
//! | a raiser of `channel::waker` | sound with executors whose tasks interrupts may wake, as embassy's and RTIC's |
//! | an NMI | is not masked by a critical section: a side that it uses is its alone |
//!
//! **Several priorities that push** have a queue each, or share a producer in a critical section. `queue::mpsc` needs 64-bit
//! atomics.
//!
//! ```
//! use core::cell::RefCell;
//!
//! use cq_core::queue::{DroppedError, Producer, SoftCq};
//! use critical_section::Mutex;
//! use static_cell::ConstStaticCell;
//!
//! static QUEUE: ConstStaticCell<SoftCq<16, u32>> = ConstStaticCell::new(SoftCq::of_entries());
//! static PRODUCER: Mutex<RefCell<Option<Producer<'static, u32>>>> = Mutex::new(RefCell::new(None));
//!
//! /// For handlers of any priority.
//! fn push(transfer: u32) -> Option<Result<(), DroppedError>> {
//!     critical_section::with(|cs| {
//!         PRODUCER.borrow_ref_mut(cs).as_mut().map(|queue| queue.push_or_overrun(&transfer))
//!     })
//! }
//!
//! assert_eq!(push(6), None, "before the queue is split");
//! let (producer, mut consumer) = QUEUE.take().split();
//! critical_section::with(|cs| PRODUCER.replace(cs, Some(producer)));
//! assert_eq!(push(7), Some(Ok(())));
//! assert_eq!(consumer.pop(), Ok(Some(7)));
//! ```
//!
//! **Two cores.** A queue orders what both do by its own Release and Acquire, on cores without compare-and-swap, too. An interrupt
//! of one core does not wake the other: on Cortex-M, the core that pushes executes `dsb` and `sev` afterwards, and the other one sleeps
//! by `WFE`; on RISC-V, the hart that pushes writes the software interrupt of the other one. Both cores push to one queue only in
//! critical sections. These are the HAL's, which lock out both cores, and the choice above is `critical-section`. This follows from
//! the architectures; no program was run on two cores.
//!
//! # Sleeping
//! [`wait`](crate::cq::CompletionQueue::wait) polls, takes events, arms the queue and looks at it again
//! ([N6](crate::contract#n6)). Then it calls the closure of [`sleeping`](crate::channel::flag::Receiver::sleeping) while there is no
//! event. The interrupt comes at one of these places:
//!
//! | the interrupt comes | then |
//! |---|---|
//! | before the queue is armed | no event is raised. Arming finds the completion, and `wait` returns it |
//! | after that, before interrupts are masked | its handler pushes, and raises the event. The look finds it, and there is no `WFI` |
//! | after they are masked | it is pending, and the handler does not run yet. A pending interrupt ends the `WFI`, or keeps it from sleeping. The handler runs when interrupts are unmasked, and the next look finds the event |
//!
//! Without the mask, the interrupt could come between the look and the `WFI`: its handler runs, no interrupt is pending
//! any more, and the core sleeps with a completion in the queue. `cargo verify bare-metal` tries that on both architectures: it
//! hangs.
//!
//! - The mask is PRIMASK or `mstatus.MIE`, as `critical_section::with` sets them on one core. An interrupt that is masked by BASEPRI, as
//!   RTIC's `lock` does, or disabled in the NVIC or in `mie`, does not end the `WFI`.
//! - `WFE` of Cortex-M needs no mask: an interrupt sets the event register, and the next `WFE` returns at once. Then the closure is
//!   `|_| asm::wfe()`. QEMU does not sleep in it.
//! - Other interrupts end the sleep, too; then there is no event, and the core sleeps again. A main loop with more to
//!   do than this queue calls [`poll_or_arm`](crate::cq::CompletionQueue::poll_or_arm), and sleeps after a look at
//!   everything else, as in the guide to events of cq-verbs.
//! - A queue without a channel ([`split`](crate::queue::SoftCq::split)) can't be armed: the main loop polls.
//!
//! **With a deadline.** [`sleeping_until`](crate::channel::flag::Receiver::sleeping_until) takes a clock, too. The timer's interrupt
//! ends each sleep, and `wait` returns an empty batch once the deadline has passed. Ticks of 32 bits wrap, so that they are
//! compared by their difference:
//!
//! ```
//! use core::cmp::Ordering;
//! use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
//!
//! use cq_core::channel::flag::Flag;
//! use cq_core::cq::{CompletionQueue, WaitError};
//! use cq_core::queue::SoftCq;
//! # mod cortex_m { pub mod asm { pub fn wfi() { crate::on_timer() } } }
//! # mod critical_section { pub fn with(section: impl FnOnce(())) { section(()) } }
//!
//! static TICKS: AtomicU32 = AtomicU32::new(u32::MAX - 10);
//!
//! /// The interrupt of a timer, each millisecond.
//! fn on_timer() {
//!     TICKS.store(TICKS.load(Relaxed).wrapping_add(1), Relaxed);
//! }
//!
//! /// An instant. Two that are compared are less than 25 days apart.
//! #[derive(Clone, Copy, PartialEq)]
//! struct Tick(u32);
//!
//! impl Tick {
//!     fn now() -> Self {
//!         Self(TICKS.load(Relaxed))
//!     }
//! }
//!
//! impl PartialOrd for Tick {
//!     fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
//!         (self.0.wrapping_sub(other.0) as i32).partial_cmp(&0)
//!     }
//! }
//!
//! # fn main() -> Result<(), WaitError> {
//! let (mut flag, mut storage) = (Flag::new(), SoftCq::<16, u32>::of_entries()); // on a board, statics as above
//! let (raiser, events) = flag.split();
//! let (_producer, consumer) = storage.split_with(raiser);
//! let mut channel = events.sleeping_until(
//!     Tick::now,
//!     |events, _deadline| critical_section::with(|_| if !events.is_pending() { cortex_m::asm::wfi() }),
//! );
//! let mut cq = CompletionQueue::new(consumer);
//! let deadline = Tick(Tick::now().0.wrapping_add(20));
//! let batch = cq.wait(&mut [0; 4], &mut channel, Some(deadline))?.len();
//! assert_eq!(batch, 0, "nothing came for 20 ms");
//! # Ok(())
//! # }
//! ```
//!
//! # Tasks
//! With the feature `async`, `channel::waker` wakes a task of any executor, and
//! `next_batch` of [`CompletionQueue`](crate::cq::CompletionQueue) awaits completions. A
//! `WakerChannel` in a static is split as a flag is. A handler's producer is then a
//! `Producer<'static, E, waker::Raiser<Share<'static, WakerChannel>>>`. Both programs are in the example's folder:
//!
//! | | run | the queue's halves | a deadline |
//! |---|---|---|---|
//! | embassy | `cargo run --bin embassy --features embassy`, on all three targets | the task has the consumer; the handler has the producer in a critical section | `with_timeout(…, cq.next_batch(…))` of embassy-time; a wait that is dropped takes nothing |
//! | RTIC | `cargo run --bin rtic --features rtic --target thumbv7m-none-eabi` | `init` splits statics of its own; the producer is a `local` resource of the hardware task, without a lock, or `shared` by tasks of two priorities | `timeout_after` of a monotonic of rtic-monotonics |
//!
//! RTIC's idle task calls `wait` outside of a `lock`, which may keep an interrupt from ending the `WFI`.
//!
//! # A full queue
//! `N` is at least the number of descriptors, and the main loop never posts more than were polled: then the queue is never full. If
//! that can't be promised, the handler chooses.
//!
//! **It drops.** [`push_or_overrun`](crate::queue::Producer::push_or_overrun) drops what does not fit, and the queue has ended: the main
//! loop gets what was stored, then [`Overrun`](crate::transport::PollError::Overrun) with the number of those that were dropped, at
//! every poll ([O3](crate::contract#o3)). It is woken for that ([O5](crate::contract#o5)), so the handler need not report it.
//!
//! **It leaves descriptors as they are.** [`push`](crate::queue::Producer::push) fails with `Full`, and the handler returns. No
//! interrupt follows for what it has left, so the main loop pends the interrupt again once it has polled. With `wait` it does so,
//! too: a queue that is full does not let it sleep.
//!
//! ```
//! use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
//!
//! use cq_core::queue::{Producer, PushError, SoftCq};
//! use cq_core::transport::PollError;
//!
//! static FINISHED: AtomicU32 = AtomicU32::new(7); // by the device: 7 transfers
//! static IS_LEFT: AtomicBool = AtomicBool::new(false);
//!
//! /// The handler. `next` is the transfer that it pushes next.
//! fn on_interrupt(queue: &mut Producer<'_, u32>, next: &mut u32) {
//!     while *next < FINISHED.load(Relaxed) {
//!         match queue.push(next) {
//!             Ok(()) => *next += 1,
//!             Err(PushError::Full) => return IS_LEFT.store(true, Relaxed),
//!             Err(_) => return, // the main loop has failed or dropped the queue
//!         }
//!     }
//! }
//!
//! let (mut storage, mut next, mut done) = (SoftCq::<4, u32>::of_entries(), 0, 0);
//! let (mut producer, mut consumer) = storage.split();
//! on_interrupt(&mut producer, &mut next);
//! while done < 7 {
//!     done += consumer.poll(&mut [0; 4])?.len();
//!     if IS_LEFT.load(Relaxed) {
//!         IS_LEFT.store(false, Relaxed); // before the handler may set it again
//!         on_interrupt(&mut producer, &mut next); // on a board, `NVIC::pend`, or the software interrupt of RISC-V
//!     }
//! }
//! # Ok::<(), PollError>(())
//! ```
//!
//! **To go on after an overrun**, both sides give the queue back, with the raiser, and it is split again: a static can be taken
//! only once. The handler's side comes back as it went, through its static.
//!
//! ```
//! use core::cell::RefCell;
//!
//! use cq_core::channel::flag::{Flag, Raiser};
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::{Consumer, OnChannel, Producer, SoftCq};
//! use cq_core::transport::PollError;
//! use cq_core::wc::{Wc, WcStatus};
//! use critical_section::Mutex;
//! use static_cell::ConstStaticCell;
//!
//! static QUEUE: ConstStaticCell<SoftCq<16>> = ConstStaticCell::new(SoftCq::new());
//! static FLAG: ConstStaticCell<Flag> = ConstStaticCell::new(Flag::new());
//! static HANDLER: Mutex<RefCell<Option<Producer<'static, Wc, Raiser<'static>>>>> = Mutex::new(RefCell::new(None));
//!
//! type Cq = CompletionQueue<Consumer<'static, Wc, OnChannel<Raiser<'static>>>>;
//!
//! fn start(queue: &'static mut SoftCq<16>, raiser: Raiser<'static>) -> Cq {
//!     let (producer, consumer) = queue.split_with(raiser);
//!     critical_section::with(|cs| HANDLER.replace(cs, Some(producer)));
//!     CompletionQueue::new(consumer)
//! }
//!
//! fn restart(cq: Cq) -> Cq {
//!     let producer = critical_section::with(|cs| HANDLER.take(cs)).expect("`start` has put it there");
//!     let (queue, raiser) = SoftCq::reunite(producer, cq.into_inner()).expect("the sides of one queue");
//!     start(queue, raiser)
//! }
//!
//! fn on_interrupt() {
//!     critical_section::with(|cs| {
//!         if let Some(queue) = HANDLER.borrow_ref_mut(cs).as_mut() {
//!             let _ = queue.push_or_overrun(&Wc::new(7, WcStatus::SUCCESS, 0)); // latched: the main loop gets it
//!         }
//!     });
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
//! An interrupt in between finds no producer, and pushes nothing. So pend it once after the restart: its handler pushes what was
//! finished meanwhile, for which no other interrupt may come. The positions after the last transfer that was polled tell which
//! ones were dropped. Their results are lost if the handler frees a descriptor before it pushes. Keep both sides of a queue and of a
//! flag: a dropped one can't be given back. Those of a flag [reunite](crate::channel::Raiser::reunite), too.
//!
//! # Where completions are kept
//! | | the handler | memory | for |
//! |---|---|---|---|
//! | the main loop polls the engine | none | none | a loop that never sleeps: the driver implements [`PollCq`](crate::transport::PollCq), as `Finished` of the example's `dma.rs` |
//! | the handler pushes | as above | a [`SoftCq`](crate::queue::SoftCq) | descriptors that must be free at once; several sources of completions that one queue collects |
//! | the handler raises the flag only | `raiser.raise()` | none | engines whose interrupt can be enabled: the driver is the main loop's, and implements [`Arm`](crate::transport::Arm) as in the guide to transports of cq-testing |
//!
//! An engine that finishes in order needs no ledger: the position says which transfer it was, and an array of `N` tells what each was
//! for. One that finishes in any order takes `Receives` of cq-verbs, as in the guide to transports of cq-testing; without
//! compare-and-swap its generation is `Generation::new` with a number of your own.
//!
//! # What it costs
//! A queue for `N` completions, a power of two, holds exactly `N`. `SoftCq::of_entries` is a constant of zeros, so it needs no
//! flash.
//!
//! | static | bytes on a 32-bit core |
//! |---|---|
//! | `SoftCq<N, E>`, `E` of 8 bytes with [`InArray`](crate::entry::InArray) | 16 + 9 · `N`: 88 for 8, 160 for 16 |
//! | `SoftCq<N, E>`, `E` of 8 bytes with [`InEntry`](crate::entry::InEntry), if two bits of it are spare | 16 + 8 · `N`: 80 for 8, 144 for 16 |
//! | `SoftCq<N>`, of [`Wc`](crate::wc::Wc), which is for what stands on cq-verbs | 16 + 48 · `N`: 400 for 8, 784 for 16 |
//! | `Flag`, `WakerChannel` | 8, 20 |
//! | a producer, a consumer | 36, 48; with a flag 40, 60; with `InArray` 8 and 12 more |
//!
//! Instructions for one completion, pushed and polled, and the flash of the whole program, for `thumbv7em-none-eabihf` at
//! `opt-level = "s"`, counted in QEMU:
//!
//! | programs of `bench/firmware` | 48 bytes: instructions | flash | 16 bytes: instructions | flash |
//! |---|---|---|---|---|
//! | `push_or_overrun`, `pop` | 64 | 2280 | 61 | 2060 |
//! | `push_or_overrun`, a batch of one in place | 63 | 2280 | 60 | 2056 |
//! | `push_or_overrun`, `poll` of up to four | 100 | 2472 | 91 | 2252 |
//! | a flag, and `wait` for up to four | 106 | 3028 | 97 | 2776 |
//! | `push_or_overrun`, `pop`, with the producer in a static and a critical section | 87 | 2536 | 77 | 2308 |
//! | `spsc` of heapless | 63 | 1756 | 55 | 1512 |
//! | `spsc` of heapless, with the producer in a static and a critical section | 82 | 1884 | 74 | 1640 |
//! | embassy's channel, in critical sections | 91 | 1820 | 85 | 1576 |
//!
//! Entering and leaving an interrupt is not counted. Make the buffer of a poll once: an array that each poll makes is cleared each
//! time.
//!
//! **Logs.** `Debug` puts its texts, and the code that assembles them, into the flash. With the feature `defmt` the host has them. The
//! program links by `-Tdefmt.x`, too, and has a logger, such as `defmt-rtt`:
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
//! # Tests
//! - **The same code on the host**: nothing in the program below names a target but the `cortex_m` that is imported. Its last two
//!   items model the engine and the core. The model is strict: without the mask in `sleep` it hangs. It is `cargo run -p cq-core
//!   --example static_isr`.
//! - **The driver alone**: `rules` of cq-testing checks a transport, arming included, by the rules of the contract.
//! - **The main loop alone**: generic over [`PollCq`](crate::transport::PollCq) or [`Arm`](crate::transport::Arm), it
//!   runs on a script, or on a queue with injected faults: the guide to tests of cq-testing.
//! - **The image**: `cargo run` in QEMU. `-icount` makes each run the same, races included. The largest
//!   program of the example lets its interrupt come one cycle later in each round, at every instruction from the doorbell to the
//!   `WFI`.
//!
//! ```rust,ignore
#![doc = include_str!("../../examples/static_isr.rs")]
//! ```
