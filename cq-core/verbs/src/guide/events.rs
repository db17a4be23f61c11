//! Sleeping until there are completions, without losing a wake-up.
//!
//! # The order
//! A completion queue that is armed raises one event at the next completion, and is then disarmed
//! ([N1](cq_core::contract#n1)). It raises none for completions that it held before it was armed
//! ([N2](cq_core::contract#n2)). So a consumer
//!
//! 1. polls until the queue is empty,
//! 2. takes the events that are pending,
//! 3. arms,
//! 4. polls again: a completion may have come between 1 and 3, and raises no event,
//! 5. sleeps, only if 4 found nothing.
//!
//! Without 4 it may sleep for ever while the queue holds a completion. If 2 came after 3, it might take the event of this
//! very arm, and the sleep would miss it. `ibv_get_cq_event(3)` has the same order.
//!
//! In this order no wake-up is lost ([N6](cq_core::contract#n6)). What remains are wake-ups for nothing
//! ([N5](cq_core::contract#n5)): the completion of an event may have been polled in 4 already. So an event means "poll",
//! and never "there is a completion".
//!
//! # What does which part
//! | sleeps on | call | the program does |
//! |---|---|---|
//! | a channel of its own | [`wait`](cq_core::cq::CompletionQueue::wait) | nothing: it is all five steps, with a deadline |
//! | a channel that threads share with the queue | [`SharedCq::wait`](cq_core::shared_cq::SharedCq::wait) | nothing; the lock is free while it sleeps |
//! | several queues, descriptors, a request to stop | [`WaitSet::wait`](crate::wait_set::WaitSet::wait) | nothing; feature `std`, Linux: [server](super::server) |
//! | an event loop of its own | [`poll_or_arm`](cq_core::cq::CompletionQueue::poll_or_arm), or [`QueueSet`](crate::queue_set::QueueSet::poll_or_arm) for several queues | 2 and 5 |
//! | a task | [`next_batch`](cq_core::cq::CompletionQueue::next_batch), `task` | nothing |
//! | an interrupt | [`wait`](cq_core::cq::CompletionQueue::wait) on a [flag](cq_core::channel::flag) | 5, as a closure: [firmware](cq_core::guide::firmware) |
//!
//! A thread that only waits:
//!
//! ```
//! use std::time::Duration;
//! use cq_core::channel::thread;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! // On a device: `device.create_channel()?` and `device.cq(64).channel(&channel).create()?`.
//! let (raiser, mut channel) = thread::channel(1);
//! let (mut device, consumer) = HeapCq::new(64)?.split_with(raiser);
//! let device = std::thread::spawn(move || {
//!     for wr_id in 0..1000 {
//!         device.push_or_wait(&Wc::new(wr_id, WcStatus::SUCCESS, 1), std::thread::yield_now).unwrap();
//!     }
//!     device
//! });
//!
//! let (mut cq, mut buffer, mut served) = (CompletionQueue::new(consumer), [Wc::default(); 32], 0);
//! while served < 1000 {
//!     let batch = cq.wait_timeout(&mut buffer, &mut channel, Duration::from_secs(10))?;
//!     assert!(!batch.is_empty(), "nothing has come for 10 s");
//!     served += batch.len();
//! }
//! # device.join().unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # An event loop
//! The descriptor of a channel is readable exactly while there is an event to take ([N14](cq_core::contract#n14)). A loop adds it to
//! its own set of descriptors, and does this after each wake-up, and once before the first sleep:
//!
//! ```
//! use cq_core::cq::{CompletionQueue, WaitError};
//! use cq_core::transport::{Events, Notify};
//! use cq_core::wc::Wc;
//! use cq_verbs::polling::ArmWc;
//!
//! /// Takes the events, and polls until the queue is empty and armed. Then the loop may sleep.
//! fn ready<T: ArmWc, C: Events>(
//!     cq: &mut CompletionQueue<T>,
//!     channel: &mut C,
//!     mut completed: impl FnMut(&Wc),
//! ) -> Result<(), WaitError> {
//!     while channel.take_event()?.is_some() {} // before the first sleep there may be none
//!     let mut buffer = [Wc::default(); 32];
//!     loop {
//!         let batch = cq.poll_or_arm(&mut buffer, Notify::Next)?;
//!         if batch.is_empty() {
//!             return Ok(());
//!         }
//!         batch.iter().for_each(&mut completed);
//!     }
//! }
//! ```
//!
//! - **Level-triggered**, as poll(2) and epoll(7) are by default: an event that is left wakes the loop again. It may take
//!   one event at each wake-up, and must not forget to: otherwise it does not sleep any more. `cargo run -p
//!   transport-rxe-loop --example epoll_channel`.
//! - **Edge-triggered**, as mio, tokio, and epoll(7) with `EPOLLET` are: each event is reported once, or with others, and
//!   those that were left are not reported again. All events are taken, until there is none, before the queue is armed. The
//!   loop above is right for both. `cargo run -p transport-rxe-loop
//!   --example mio`.
//! - A loop that serves a busy queue returns to its other descriptors now and then: poll some batches, then look at them
//!   without sleeping. [`WaitSet`](crate::wait_set) does so after 64.
//!
//! A queue in software has a channel with a descriptor, too: [`descriptor`](crate::descriptor).
//!
//! # Tasks
//! [`next_batch`](cq_core::cq::CompletionQueue::next_batch) is the same order for a task of any executor: the task is
//! registered before the queue is armed. `task::TaskChannel` gives the channel of a device to tokio.
//! Where each task is to await its own requests, one task polls (`Driver`), and the others await
//! (`TaskQp`). The feature is `async`, or `tokio` for those of tokio; the example also needs tokio
//! itself, with `macros` and `rt`:
//!
//! ```
//! use cq_core::channel::waker;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_verbs::polling::ArmWc;
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let (raiser, mut events) = waker::channel();
//!     let (mut device, consumer) = HeapCq::new(16)?.split_with(raiser);
//!     let (mut cq, mut buffer) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
//!
//!     // A future that is dropped has taken nothing.
//!     tokio::select! {
//!         biased;
//!         _ = cq.next_batch(&mut buffer, &mut events) => unreachable!("there is no completion"),
//!         pushed = async { device.push(&Wc::new(7, WcStatus::SUCCESS, 1)) } => pushed?,
//!     }
//!     assert_eq!(cq.next_batch(&mut buffer, &mut events).await?[0].wr_id(), 7);
//!     Ok(())
//! }
//! ```
//!
//! What a future that is dropped leaves behind:
//!
//! | future | afterwards |
//! |---|---|
//! | [`next_batch`](cq_core::cq::CompletionQueue::next_batch), `DeviceEvents::next`, `Inbox::next` | nothing was taken; the next call returns it |
//! | `TaskQp::send`, `receive` | if it was posted, the request is still executed, since it can't be taken back. Its buffer stays with the queue pair until it has completed |
//! | `TaskQp::post_send`, `post_recv` | nothing was posted, and the buffer was dropped |
//! | `Posted`, which these return | as with `send`; a receive takes the next message |
//! | `Driver::run` | the completion queue was dropped: outstanding and later requests end with `NotPolled` |
//! | `Pool::take` | no slot was taken, and the place in the queue is lost |
//!
//! `send` is the reason why a request owns its buffer there. `cargo run -p transport-rxe-loop --features tokio
//! --example tokio_server` has clients that leave in the middle. A whole server: the guide `tasks`.
//!
//! # Several queues on one channel
//! Each event names its queue by its [`CqKey`](cq_core::transport::CqKey) ([N8](cq_core::contract#n8)). The channels of the
//! engine make the keys: [`raiser`](cq_core::channel::thread::Receiver::raiser) is called for each queue.
//!
//! - [`QueueSet`](crate::queue_set) and [`WaitSet`](crate::wait_set) serve them together, in turn. They arm a queue once for
//!   each event.
//! - [`Router`](cq_core::channel::route) keeps the events of the others while one is waited for.
//! - [`wait`](cq_core::cq::CompletionQueue::wait) alone is for a channel of one queue. It returns
//!   [`OtherQueue`](cq_core::transport::WaitError::OtherQueue) if it takes an event of another, which must then be polled.
//!   On a channel that does not serve the queue at all it returns
//!   [`WrongChannel`](cq_core::transport::WaitError::WrongChannel), where the channel can tell.
//!
//! A loop of its own polls and arms all queues of the channel before it sleeps, or those that the events name.
//!
//! # Solicited completions
//! A queue that is armed for [`Notify::Solicited`](cq_core::transport::Notify::Solicited) raises its event at a receive
//! whose sender has marked it ([`solicited`](crate::wr::SendWr::solicited)), and at any failure; never at a
//! successful send ([N3](cq_core::contract#n3)). Use it where a peer sends bursts and marks the last message of each. Arming
//! for solicited completions does not weaken an earlier arm for any ([N4](cq_core::contract#n4)).
//!
//! # Moderation
//! [`moderate`](crate::device::DeviceCq::moderate) delays an event until a number of completions or a time, whichever comes
//! first; a failure raises it at once ([N12](cq_core::contract#n12)). Polling does not cancel it. It costs latency and saves
//! wake-ups: where a thread polls for a while before it sleeps ([`set_spin`](crate::wait_set::WaitSet::set_spin)), it is
//! seldom worth it.
//!
//! # Other wake-ups
//! | what | how |
//! |---|---|
//! | a signal was handled | [`WaitError::Interrupted`](cq_core::transport::WaitError::Interrupted), if there is no completion. Check the handler's flag after each wait |
//! | another thread asks to stop | [`StopHandle`](crate::wait_set::StopHandle) of a `WaitSet`, or [`thread::StopHandle`](cq_core::channel::thread::StopHandle) |
//! | the queue overran, was closed, or was failed by another thread | the consumer is woken, and its poll fails ([O5](cq_core::contract#o5), [S2](cq_core::contract#s2), [S4](cq_core::contract#s4)) |
//! | an asynchronous event | another descriptor: that of the device. [`wait_async`](crate::async_event::BlockAsync::wait_async), `DeviceEvents` |
//!
//! # Testing it
//! A lost wake-up is a race that seldom happens. Three tools make it happen: a `Script` of `cq-testing`
//! lets completions come between the poll and the arm; `FaultInjector` of `cq-testing` adds
//! spurious and duplicate events; `RXE_LOOP_FAULTS="seed=7,spurious=0.3,defer=50us"` does so in the loopback. A program
//! that sleeps without a deadline hangs where it is wrong, so tests give one. See the guide to tests of `cq-testing`.
