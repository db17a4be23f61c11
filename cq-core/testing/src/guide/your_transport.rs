//! A transport for your device: which traits to implement, in which order, and how to test it.
//!
//! A transport for a device that writes to memory from another thread or core, and its test. One without events, half as
//! long, is in [`rules`](crate::rules).
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
//! use std::sync::atomic::{AtomicU8, AtomicU64, fence};
//!
//! use cq_core::channel::thread::{self, Raiser, Receiver};
//! use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, PollCq, PollError, Signal};
//! use cq_core::wc::Wc;
//! use cq_testing::rules::{self, EventFixture, Fixture, Kind};
//!
//! const SLOTS: usize = 8;
//!
//! /// The memory that the device and the driver share.
//! #[derive(Default)]
//! struct Shared {
//!     /// For each completion its `wr_id` and, in three bits, its kind. 0: the slot is free.
//!     ring: [AtomicU64; SLOTS],
//!     /// 0: not armed. 1: for solicited completions and failures. 2: for any.
//!     armed: AtomicU8,
//! }
//!
//! /// The transport.
//! struct Driver {
//!     shared: Arc<Shared>,
//!     next: usize,
//!     key: CqKey, // made by the channel
//! }
//!
//! impl PollCq for Driver {
//!     type Entry = Wc;
//!
//!     fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
//!         let mut count = 0;
//!         for wc in out {
//!             let slot = &self.shared.ring[self.next % SLOTS];
//!             let word = slot.load(Acquire); // what the device wrote before is visible
//!             if word == 0 {
//!                 break;
//!             }
//!             // The device's numbers may be out of range. What was completed before is polled first.
//!             let Some(kind) = Kind::ALL.get((word & 7).wrapping_sub(1) as usize) else {
//!                 return if count > 0 { Ok(count) } else { Err(PollError::Device(word as i32)) };
//!             };
//!             *wc = kind.wc(word >> 3);
//!             slot.store(0, Release);
//!             (count, self.next) = (count + 1, self.next.wrapping_add(1));
//!         }
//!         Ok(count)
//!     }
//! }
//!
//! impl Arm for Driver {
//!     fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
//!         let on = if on == Notify::Next { 2 } else { 1 };
//!         self.shared.armed.fetch_max(on, Relaxed); // never weakens an earlier arm
//!         fence(SeqCst); // with that of the device
//!         let is_empty = self.shared.ring[self.next % SLOTS].load(Relaxed) == 0;
//!         Ok(if is_empty { Armed::Armed } else { Armed::MayHaveMissed })
//!     }
//!
//!     fn key(&self) -> CqKey {
//!         self.key
//!     }
//! }
//!
//! /// What the checks need.
//! struct Bench {
//!     driver: Driver,
//!     raiser: Raiser,
//!     events: Receiver,
//! }
//!
//! impl Fixture for Bench {
//!     type Queue = Driver;
//!     const CAPACITY: usize = SLOTS;
//!
//!     fn new() -> Self {
//!         let (raiser, events) = thread::channel(1);
//!         let driver = Driver { shared: Arc::default(), next: 0, key: raiser.key() };
//!         Self { driver, raiser, events }
//!     }
//!     fn queue(&mut self) -> &mut Driver {
//!         &mut self.driver
//!     }
//!     /// What the device does.
//!     fn complete(&mut self, kind: Kind, number: u64) {
//!         let shared = &self.driver.shared;
//!         shared.ring[number as usize % SLOTS].store(number << 3 | (kind as u64 + 1), Release);
//!         fence(SeqCst); // with that of `arm`
//!         let least = if kind.is_urgent() { 1 } else { 2 };
//!         // Disarmed before the event: the consumer that takes the event may arm again.
//!         if shared.armed.fetch_update(AcqRel, Relaxed, |on| (on >= least).then_some(0)).is_ok() {
//!             self.raiser.raise();
//!         }
//!     }
//!     fn expected(&self, kind: Kind, number: u64) -> Wc {
//!         kind.wc(number)
//!     }
//! }
//!
//! impl EventFixture for Bench {
//!     type Channel = Receiver;
//!
//!     fn channel(&mut self) -> &mut Receiver {
//!         &mut self.events
//!     }
//! }
//!
//! fn main() -> Result<(), rules::RuleError> {
//!     let ran = rules::run(rules::all::<Bench>())?;
//!     assert_eq!(ran.to_string(), "16 checks passed, 0 not applicable");
//!     Ok(())
//! }
//! ```
//!
//! Two more are examples: `own_transport` of cq-core, a DMA engine with an interrupt and completions of its own, and `io_uring` of
//! cq-verbs, whose completions come in any order. A device in software, as the NVMe controller of cq-core's `nvme`, uses queues of the
//! engine and needs no transport.
//!
//! # Which traits, in which order
//! Each step works without the next ones; without events step 1 is all. Steps 1 to 4 are for any plain old data, the others for RDMA.
//!
//! | | implement | for | rules |
//! |---|---|---|---|
//! | 1 | [`PollCq`] | [`CompletionQueue::poll`], [`SharedCq`](cq_core::shared_cq), a ledger, a budget | [P1](cq_core::contract#p1)–[P7](cq_core::contract#p7), [O3](cq_core::contract#o3) |
//! | 2 | [`Arm`] | [`CompletionQueue::poll_or_arm`] | [N1](cq_core::contract#n1)–[N4](cq_core::contract#n4), [N6](cq_core::contract#n6) |
//! | 3 | [`Events`], then [`Block`] or [`RegisterWaker`] | [`CompletionQueue::wait`], `next_batch` | [N7](cq_core::contract#n7), [N8](cq_core::contract#n8), [N10](cq_core::contract#n10) |
//! | 4 | [`Signal`] | a [channel](cq_core::channel) of the engine instead of step 3, if the device is software | [N9](cq_core::contract#n9) |
//! | 5 | [`Post`] | the [ledger](cq_verbs::ledger), [tracked](cq_verbs::tracked) queue pairs | [Q4](cq_core::contract#q4), [C8](cq_core::contract#c8)–[C10](cq_core::contract#c10) |
//! | 6 | [`AsyncEvents`], [`BlockAsync`] | `wait_async` | [O2](cq_core::contract#o2) |
//! | 7 | the traits of [`device`](cq_verbs::device) | programs that are generic over the device | the [contract](cq_core::contract) |
//!
//! [`rules`](crate::rules) checks steps 1 to 3, except sleeping. The conformance suite checks all: `CONTRIBUTING.md` of the
//! repository says how a transport joins it.
//!
//! # Reading the ring
//! - **One word publishes a completion**: a status that becomes nonzero, a phase or generation bit that changes with each round, a
//!   producer index. Load it with Acquire, and the other fields after it. A device that writes by DMA also needs the barrier of its
//!   platform.
//! - **Copy, then free.** Give slots back before `poll_into` returns, in one store where the device has a consumer index: the caller may
//!   post a successor at once ([O7](cq_core::contract#o7)).
//! - **Check the device's numbers**, such as an index, a length, an address. Store an unknown status as it is
//!   ([C3](cq_core::contract#c3)).
//! - **Fill in what is valid**: of a failure `wr_id`, `status`, `qp_num` and `vendor_err` ([C4](cq_core::contract#c4)); of a success also
//!   the opcode, and `byte_len` if the device moved bytes to the program's memory ([C7](cq_core::contract#c7)).
//! - **Return all 64 bits of `wr_id`.** If descriptors hold less, keep it in a table by their index.
//! - **An error is the end of the queue** ([P3](cq_core::contract#p3)). A failed request is a completion.
//!
//! # Arming, and the race
//! A completion between a consumer's last poll and its arm raises no event ([N2](cq_core::contract#n2)). So
//! [`arm`](cq_core::transport::Arm::arm) looks at the ring **after** the arm took effect, and returns
//! [`MayHaveMissed`](cq_core::transport::Armed::MayHaveMissed) if there is a completion: the caller polls again. That is never wrong.
//! After [`Armed`](cq_core::transport::Armed::Armed) the next completion has to raise the event ([N6](cq_core::contract#n6)):
//!
//! | the arm is | `arm` |
//! |---|---|
//! | a word in memory, and the device is software | stores it, executes `fence(SeqCst)`, loads the next slot. The device stores the slot, has the same fence, then loads the arm. Acquire and Release are not enough |
//! | a register of hardware | writes it, reads it back so that the write has arrived, then reads the ring |
//! | a register with the consumer's position, as a network card's | writes the position, which the device compares, and returns `MayHaveMissed` |
//! | a counter to which a kernel adds after each completion, as the eventfd of an io_uring | empties the counter, then looks at the ring. As it counts without an arm, too, `take_event` returns an event only if the queue is armed |
//!
//! The device disarms **before** it raises the event: the consumer may arm again as soon as it has taken it. Polling does not disarm, and
//! does not take the event ([N5](cq_core::contract#n5)). If completions can't be solicited, only a failure raises the event of an arm for
//! [`Solicited`](cq_core::transport::Notify::Solicited); the fixture has [`KINDS`](crate::rules::Fixture::KINDS) for that.
//!
//! A transport without events does not implement [`Arm`], so that `wait` does not compile, or returns
//! [`ArmError::NoChannel`](cq_core::transport::ArmError::NoChannel) ([N11](cq_core::contract#n11)).
//!
//! # Posting, and who owns the memory
//! [`Post`] is for devices like a queue pair, whose requests complete in the order of posting. It is safe to call, so the device has to
//! refuse memory that was not registered, by its key.
//!
//! Anything else gets a method of its own, `unsafe` if a wrong address does harm. [`Receives`](cq_verbs::ledger::Receives) tracks
//! requests that complete in any order: `post_by` takes the call as a closure, as in `reads` of the example `io_uring`.
//!
//! - **The token owns the buffer** while the device may use it, and comes back with the completion. Unsafe code can rely on that.
//! - **A driver that is dropped with requests in flight** cancels them and waits for their completions. If it can't, it leaks their
//!   buffers. It never frees memory that the device still writes to.
//! - **Bound the requests in flight** by the capacity of the completion queue, with
//!   [`QueueFull`](cq_verbs::post::WrError::QueueFull) beyond it: then it never overruns ([O7](cq_core::contract#o7)). A
//!   [budget](cq_verbs::budget) does that for queue pairs that share one.
//!
//! # Testing
//! - **[`rules`](crate::rules)** checks [P1](cq_core::contract#p1)–[P7](cq_core::contract#p7) and
//!   [N1](cq_core::contract#n1)–[N8](cq_core::contract#n8) on one thread. Break the transport once and see which rule is named. The
//!   checks can't see races, overrun ([O1](cq_core::contract#o1)–[O8](cq_core::contract#o8)), or what a poll costs
//!   ([P5](cq_core::contract#p5)).
//! - **Races** are for a model checker such as loom. Without one, let two threads arm and complete for some seconds, each wait with a
//!   deadline.
//! - **[`fault`](crate::fault)** wraps the transport, and **[`fake`](crate::fake)** replaces it by a script, to test what is built on it:
//!   of completions (`Wc`) alone.
//!
//! [`PollCq`]: cq_core::transport::PollCq
//! [`Arm`]: cq_core::transport::Arm
//! [`Events`]: cq_core::transport::Events
//! [`Block`]: cq_core::transport::Block
//! [`RegisterWaker`]: cq_core::transport::RegisterWaker
//! [`Signal`]: cq_core::transport::Signal
//! [`Post`]: cq_verbs::post::Post
//! [`AsyncEvents`]: cq_verbs::async_event::AsyncEvents
//! [`BlockAsync`]: cq_verbs::async_event::BlockAsync
//! [`CompletionQueue::poll`]: cq_core::cq::CompletionQueue::poll
//! [`CompletionQueue::poll_or_arm`]: cq_core::cq::CompletionQueue::poll_or_arm
//! [`CompletionQueue::wait`]: cq_core::cq::CompletionQueue::wait
