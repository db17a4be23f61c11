//! A transport for your device: which traits to implement, in which order, what each promises, and how to test it.
//!
//! The whole of one, for a device that writes to memory from another thread or core, and its test. One for a device without
//! events is half as long: [`rules`](crate::rules) has it.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
//! use std::sync::atomic::{AtomicU8, AtomicU64, fence};
//!
//! use cq_core::channel::thread::{self, Raiser, Receiver};
//! use cq_core::queue::Completion;
//! use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, PollCq, PollError, Signal};
//! use cq_core::wc::Wc;
//! use cq_testing::rules::{self, EventFixture, Fixture, Kind};
//!
//! const SLOTS: usize = 8;
//!
//! /// The memory that the device and the driver share.
//! #[derive(Default)]
//! struct Shared {
//!     /// Completions, each its `wr_id` times 8 plus the number of its kind. 0: the slot is free.
//!     ring: [AtomicU64; SLOTS],
//!     /// 0: not armed. 1: for solicited completions and failures. 2: for any.
//!     armed: AtomicU8,
//! }
//!
//! /// The driver: the transport.
//! struct Driver {
//!     shared: Arc<Shared>,
//!     next: usize,
//!     key: CqKey, // made by the channel
//! }
//!
//! impl PollCq for Driver {
//!     type Entry = Wc;

//!     fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
//!         let mut count = 0;
//!         for wc in out {
//!             let slot = &self.shared.ring[self.next % SLOTS];
//!             // Acquire: what the device wrote before this word is visible.
//!             let word = slot.load(Acquire);
//!             if word == 0 {
//!                 break;
//!             }
//!             // The device's numbers are not trusted to be in range. What was completed before is polled first.
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
//! /// The device: what hardware does, or a thread.
//! struct Device {
//!     shared: Arc<Shared>,
//!     next: usize,
//!     channel: Raiser,
//! }
//!
//! impl Device {
//!     fn finish(&mut self, kind: Kind, wr_id: u64) {
//!         let word = wr_id << 3 | (kind as u64 + 1);
//!         self.shared.ring[self.next % SLOTS].store(word, Release);
//!         self.next += 1;
//!         fence(SeqCst); // with that of `arm`
//!         let least = if kind.entry(wr_id).is_urgent() { 1 } else { 2 };
//!         let disarm = |armed| (armed >= least).then_some(0);
//!         // Disarmed before the event: whoever takes the event may arm again.
//!         if self.shared.armed.fetch_update(AcqRel, Relaxed, disarm).is_ok() {
//!             self.channel.raise();
//!         }
//!     }
//! }
//!
//! /// Both, for the test kit.
//! struct Bench {
//!     driver: Driver,
//!     device: Device,
//!     events: Receiver,
//! }
//!
//! impl Fixture for Bench {
//!     type Queue = Driver;
//!     const CAPACITY: usize = SLOTS;
//!
//!     fn new() -> Self {
//!         let (shared, (channel, events)) = (Arc::<Shared>::default(), thread::channel(1));
//!         let driver = Driver { shared: Arc::clone(&shared), next: 0, key: channel.key() };
//!         Self { driver, device: Device { shared, next: 0, channel }, events }
//!     }
//!     fn queue(&mut self) -> &mut Driver {
//!         &mut self.driver
//!     }
//!     fn complete(&mut self, kind: Kind, wr_id: u64) {
//!         self.device.finish(kind, wr_id);
//!     }
//!     fn expected(&self, kind: Kind, wr_id: u64) -> Wc {
//!         kind.wc(wr_id)
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
//! Two more stand among the examples: `own_transport` of cq-core, a DMA engine with an interrupt, whose completions are its own
//! instead of `Wc`s, and `io_uring` of cq-verbs, where a kernel writes the ring and completions come in any order.
//!
//! # Which traits, in which order
//! Each step works without the next ones. A transport stops where its device does.
//!
//! | | implement | which gives | promised | checked by |
//! |---|---|---|---|---|
//! | 1 | [`PollCq`] | [`CompletionQueue::poll`], [`SharedCq`](cq_core::shared_cq), a ledger, a budget | oldest first, each once, no more than asked; an empty queue is no error; no system call, no lock: [P1](cq_core::contract#p1)–[P7](cq_core::contract#p7). A queue that overran says so once it is empty, and for ever: [O3](cq_core::contract#o3) | [`rules::polling`](crate::rules::polling()) |
//! | 2 | [`Arm`] | [`CompletionQueue::poll_or_arm`], for loops that sleep on their own | one event for an arm, at the next completion, and none for what came before: [N1](cq_core::contract#n1), [N2](cq_core::contract#n2). Solicited completions and failures alone, if asked: [N3](cq_core::contract#n3). A later arm never weakens: [N4](cq_core::contract#n4). No wake-up is lost: [N6](cq_core::contract#n6) | [`rules::all`](crate::rules::all), with the next step |
//! | 3 | [`Events`], then [`Block`] or [`RegisterWaker`] | [`CompletionQueue::wait`], `next_batch` | taking an event acknowledges it: [N7](cq_core::contract#n7). It names its queue: [N8](cq_core::contract#n8). Sleeping ends with an event, at the deadline or after a signal: [N10](cq_core::contract#n10) | [`rules::all`](crate::rules::all), but for sleeping |
//! | 4 | [`Signal`] | any [channel](cq_core::channel) of the engine in place of step 3, if the device is software | raising never waits for the reader: [N9](cq_core::contract#n9) | |
//! | 5 | [`Post`] | the [ledger](cq_verbs::ledger), [tracked](cq_verbs::tracked) queue pairs | a list stops at the first request that is refused: [Q4](cq_core::contract#q4). Each request completes once, in order, and a failed one also if it is unsignaled: [C8](cq_core::contract#c8), [C9](cq_core::contract#c9), [C10](cq_core::contract#c10) | the conformance suite |
//! | 6 | [`AsyncEvents`], [`BlockAsync`] | `wait_async` | an overrun raises one event that names the queue: [O2](cq_core::contract#o2) | the conformance suite |
//! | 7 | the traits of [`device`](cq_verbs::device) | programs that are generic over the device | all of the [contract](cq_core::contract) | the conformance suite |
//!
//! A device that never raises events ends at step 1: its programs poll. Steps 1 to 4 are for a queue of any plain old data, the
//! others for completions. The conformance suite is in the repository, whose
//! `CONTRIBUTING.md` says how a transport joins it.
//!
//! # Reading the ring
//! - **A completion is published by one word**: a status that becomes nonzero, a phase or generation bit that changes
//!   with each round, a producer index. Load that word with Acquire, and the other fields after it. A device that
//!   writes by DMA also needs the barrier of its platform.
//! - **Copy, then free.** Copy the entry to `out`, then give its slot back. Give slots back before `poll` returns, one
//!   store for the whole batch where the device has a consumer index: a caller that has a completion may post its
//!   successor at once, which needs the slot ([O7](cq_core::contract#o7)).
//! - **Numbers of the device are foreign.** A status that nobody knows is stored as it is ([C3](cq_core::contract#c3)).
//!   An index, a length or an address is checked before it is used.
//! - **Fill in what is valid.** Of a failure `wr_id`, `status`, `qp_num` and `vendor_err` are
//!   ([C4](cq_core::contract#c4)). Of a success the opcode is, and `byte_len` if the device moved bytes to the program's
//!   memory ([C7](cq_core::contract#c7)).
//! - **`wr_id` comes back as it was posted**, all 64 bits. If descriptors hold less, keep it in a table by their index.
//! - **An error of `poll` is the end of the queue** ([P3](cq_core::contract#p3)). A failed request is a completion.
//! - Entries past the count stay as they are ([P4](cq_core::contract#p4)), and an empty `out` takes nothing
//!   ([P6](cq_core::contract#p6)).
//!
//! # Arming, and the race
//! A consumer polls, finds nothing, arms, and sleeps. A completion may come between the poll and the arm, and raises no
//! event ([N2](cq_core::contract#n2)). So [`arm`](cq_core::transport::Arm::arm) looks at the ring **after** the arm took effect, and returns
//! [`MayHaveMissed`](cq_core::transport::Armed::MayHaveMissed) if there is a completion: the caller polls again. It never
//! hurts to return that. What has to be certain is [`Armed`](cq_core::transport::Armed::Armed): from then on, the next
//! completion raises the event ([N6](cq_core::contract#n6)). How that becomes certain depends on where the arm is stored:
//!
//! | the arm is | then `arm` does |
//! |---|---|
//! | a word in memory, and the device is software | store, `fence(SeqCst)`, load the next slot. The device stores the slot, has the same fence, then loads the arm. At least one sees the other's store. Acquire and Release are not enough: they let both loads be early |
//! | a register of hardware | write it, read it back so that the write has arrived, then read the ring |
//! | a register of hardware with the consumer's position, as a network card's | write the position; the device compares it, so there is nothing to look at: return `MayHaveMissed` |
//! | a counter to which a kernel adds after each completion, as the eventfd of an io_uring | empty the counter, then look at the ring. What was added before is in the ring, and what is not in the ring will be added. That the counter also counts without an arm is settled where it is read: it is an event only if the queue is armed |
//!
//! The device disarms **before** it raises the event: the consumer may arm again as soon as it has taken it. An arm
//! that is stronger than an earlier one replaces it; a weaker one changes nothing ([N4](cq_core::contract#n4)). Polling
//! does not disarm, and does not take the event ([N5](cq_core::contract#n5)). If completions of a device can't be
//! solicited, only a failure raises the event of an arm for [`Solicited`](cq_core::transport::Notify::Solicited); if none fails,
//! nothing does. Its fixture says so by [`KINDS`](crate::rules::Fixture::KINDS).
//!
//! A transport whose device has no events returns [`ArmError::NoChannel`](cq_core::transport::ArmError::NoChannel)
//! ([N11](cq_core::contract#n11)), or does not implement [`Arm`], which is better: then `wait` does not compile.
//!
//! # Posting, and who owns the memory
//! [`Post`] is for devices like a queue pair: requests of [`wr`](cq_verbs::wr), whose completions come in the order in
//! which they were posted. [`Sends`](cq_verbs::ledger::Sends) relies on that order, since a completion retires all
//! requests before it. Its methods are safe to call, so the device has to refuse memory that was not registered, by its
//! key.
//!
//! Anything else gets a method of its own, `unsafe` if a wrong address does harm. Requests that complete in any order
//! are tracked by [`Receives`](cq_verbs::ledger::Receives), which takes the call as a closure:
//!
//! ```
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_verbs::ledger::{Array, Generation, Receives};
//! use cq_verbs::post::{PostError, WrError};
//!
//! /// A disk: which sector goes to which request.
//! #[derive(Default)]
//! struct Disk {
//!     requests: Vec<(u64, u64)>,
//! }
//!
//! impl Disk {
//!     fn read(&mut self, wr_id: u64, sector: u64) -> Result<(), WrError> {
//!         self.requests.push((wr_id, sector));
//!         Ok(())
//!     }
//! }
//!
//! let (mut disk, mut reads) = (Disk::default(), Receives::<&str, Array<4>>::fixed(Generation::unique()));
//! for (sector, token) in [(7, "seven"), (8, "eight")] {
//!     reads.post_by(&[], token, |list| {
//!         disk.read(list[0].wr_id, sector).map_err(|why| PostError { posted: 0, why })
//!     })?;
//! }
//! // The second one completes first.
//! let wc = Wc::new(disk.requests[1].0, WcStatus::SUCCESS, 1);
//! assert_eq!(reads.retire(&wc).map(|done| done.token), Some("eight"));
//! assert_eq!(reads.outstanding(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - **The token owns the buffer** for as long as the device may use it: it comes back with the completion, and not
//!   before. That is the fact on which the unsafe code of a driver can rely.
//! - **A driver that is dropped with requests in flight** cancels them and waits for their completions. If it can't, it
//!   leaks their buffers. It never frees memory that the device still writes to.
//! - **Bound the requests in flight** by the capacity of the completion queue,
//!   [`QueueFull`](cq_verbs::post::WrError::QueueFull) beyond it, and the queue never overruns
//!   ([O7](cq_core::contract#o7)). A [budget](cq_verbs::budget) does that for queues that several share.
//!
//! # Testing
//! - **[`rules`](crate::rules)** checks [P1](cq_core::contract#p1)–[P7](cq_core::contract#p7) and
//!   [N1](cq_core::contract#n1)–[N6](cq_core::contract#n6), [N7](cq_core::contract#n7) and [N8](cq_core::contract#n8) on the
//!   way, on one thread: a fixture makes a queue and completes requests on demand. What the device has no completions for is
//!   counted as not applicable. Break the transport once and see the rule that is named. The checks can't see races, overrun
//!   ([O1](cq_core::contract#o1)–[O8](cq_core::contract#o8)), or what a poll costs ([P5](cq_core::contract#p5)).
//! - **Races** are for a model checker: put the atomics of both sides behind a `cfg(loom)`. Without one, test two
//!   threads that arm and complete for some seconds, each wait with a deadline.
//! - **[`fault`](crate::fault)** wraps the transport in a `FaultInjector`, to test what is built on it: late and reordered
//!   completions, failures, spurious events, overrun. A seed repeats what it did.
//! - **[`fake`](crate::fake)** is a scripted transport, for tests of a consumer without a device.
//!
//! ```
//! use cq_core::transport::PollCq;
//! use cq_verbs::polling::PollWc;
//! use cq_testing::fault::{FaultInjector, Faults, When};
//!
//! /// The transport, but completions come late, and those of different queue pairs in another order. Holds back up to 16.
//! fn disturbed<T: PollWc>(transport: T, seed: u64) -> FaultInjector<T, 16> {
//!     let faults = Faults::seeded(seed).delay(When::chance(0.5), 3).reorder(When::chance(0.5));
//!     FaultInjector::new(transport, &faults)
//! }
//! ```
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
