//! Sleeping until there are completions, without losing a wake-up: in an event loop (epoll, mio), a thread, or a task.
//!
//! # An event loop
//! The descriptor of a channel is readable exactly while there is an event to take ([N14](cq_core::contract#n14)). This
//! program waits for it in epoll(7). Its queue is in software, with the channel of [`descriptor`](crate::descriptor).
//!
//! ```
//! use std::error::Error;
//! use std::thread;
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::transport::{Events, Notify};
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_verbs::descriptor;
//! use rustix::buffer::spare_capacity;
//! use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
//! use rustix::io::retry_on_intr;
//!
//! fn main() -> Result<(), Box<dyn Error>> {
//!     // On a device: `device.create_channel()?` and `device.cq(64).channel(&channel).create()?`.
//!     let (raiser, mut channel) = descriptor::channel(1)?;
//!     let (mut device, consumer) = HeapCq::new(64)?.split_with(raiser);
//!     let device = thread::spawn(move || {
//!         for wr_id in 0..1000 {
//!             let wc = Wc::new(wr_id, WcStatus::SUCCESS, 1);
//!             device.push_or_wait(&wc, thread::yield_now).unwrap();
//!         }
//!         device // dropping it closes the queue
//!     });
//!
//!     let epoll = epoll::create(CreateFlags::CLOEXEC)?;
//!     epoll::add(&epoll, &channel, EventData::new_u64(0), EventFlags::IN)?;
//!     let (mut cq, mut wcs) = (CompletionQueue::new(consumer), [Wc::default(); 32]);
//!     let (mut served, mut ready) = (0, Vec::with_capacity(8));
//!     loop {
//!         // Take the events, then poll until the queue is empty and armed. Before the first sleep there may be no event.
//!         while channel.take_event()?.is_some() {}
//!         while let batch @ [_, ..] = cq.poll_or_arm(&mut wcs, Notify::Next)? {
//!             served += batch.len();
//!         }
//!         if served == 1000 {
//!             break;
//!         }
//!         ready.clear();
//!         retry_on_intr(|| epoll::wait(&epoll, spare_capacity(&mut ready), None))?;
//!     }
//!     drop(device.join());
//!     println!("{served} completions");
//!     Ok(())
//! }
//! ```
//!
//! Cargo.toml: `rustix = { version = "1", features = ["event"] }`, and the feature `std` of `cq-verbs`.
//!
//! - **Level-triggered**, as epoll(7) and poll(2) are by default: an event that is not taken wakes the loop again at once,
//!   so that it never sleeps. To take one event for each wake-up is enough. On a
//!   device: `cargo run -p transport-rxe-loop --example epoll_channel`.
//! - **Edge-triggered**, as `EPOLLET`, mio and tokio are: one report may stand for several events. All are taken before
//!   the queue is armed. The loop above is right for both. Example: `mio`.
//! - **A busy queue** starves the other descriptors: look at them after some batches, without sleeping.
//!   [`WaitSet`](crate::wait_set) does so after 64.
//!
//! # The order
//! A completion queue that is armed raises one event at the next completion, and is then disarmed
//! ([N1](cq_core::contract#n1)). It raises none for completions that it held before ([N2](cq_core::contract#n2)). So a
//! consumer
//!
//! 1. polls until the queue is empty,
//! 2. takes the pending events,
//! 3. arms,
//! 4. polls again: a completion that came between 1 and 3 raises no event,
//! 5. sleeps, only if 4 found nothing.
//!
//! Without 4 a consumer may sleep for ever despite a completion. With 2 after 3 it may take the event of this arm, and
//! not wake. The order is that of `ibv_get_cq_event(3)`: `ibv_req_notify_cq`, then `ibv_poll_cq` again.
//!
//! In this order no wake-up is lost ([N6](cq_core::contract#n6)). A wake-up may be spurious
//! ([N5](cq_core::contract#n5)): 4 may have polled the completion of the event.
//!
//! # Which call
//! | the program waits in | call | steps left to it |
//! |---|---|---|
//! | one queue on its own channel | [`wait`](cq_core::cq::CompletionQueue::wait), `wait_timeout` | none |
//! | a queue that threads share | [`SharedCq::wait`](cq_core::shared_cq::SharedCq::wait) | none; the lock is free while it sleeps |
//! | several queues, descriptors, a request to stop | [`WaitSet::wait`](crate::wait_set::WaitSet::wait) | none: [server](super::server) |
//! | an event loop | [`poll_or_arm`](cq_core::cq::CompletionQueue::poll_or_arm); for several queues that of [`QueueSet`](crate::queue_set) | 2 and 5; of a `QueueSet`, 5 |
//! | a task | [`next_batch`](cq_core::cq::CompletionQueue::next_batch), `task` | none |
//! | firmware | [`wait`](cq_core::cq::CompletionQueue::wait) on a [flag](cq_core::channel::flag) | 5, as a closure: [firmware](cq_core::guide::firmware) |
//!
//! # Tasks
//! [`next_batch`](cq_core::cq::CompletionQueue::next_batch), with the feature `async` of `cq-core`, is for tasks of any
//! executor. `task`, with the feature `tokio`, is for those of tokio: `TaskChannel` is the channel of a device. `Driver`
//! polls, and each `TaskQp` awaits its own requests. The guide `tasks` has a server; `cargo run -p transport-rxe-loop
//! --features tokio --example tokio_server`.
//!
//! `next_batch`, `DeviceEvents::next` and `Inbox::next` are cancel safe. A request that was posted can't be taken
//! back: if the future of `TaskQp::send` or `receive`, or a `Posted`, is dropped, the request is still executed, its buffer
//! stays with the queue pair until then, and a receive takes the next message. If `Driver::run` is dropped,
//! outstanding and later requests end with `NotPolled`.
//!
//! # Several queues on one channel
//! Each event names its queue by a [`CqKey`](cq_core::transport::CqKey) ([N8](cq_core::contract#n8)).
//!
//! - [`QueueSet`](crate::queue_set) and [`WaitSet`](crate::wait_set) serve the queues in turn.
//! - [`Router`](cq_core::channel::route) keeps the events of the others while the program waits for one.
//! - A loop of its own polls and arms all queues of the channel before it sleeps, or those that the events name.
//! - [`wait`](cq_core::cq::CompletionQueue::wait) alone is for a channel of one queue. It fails with
//!   [`OtherQueue`](cq_core::transport::WaitError::OtherQueue) if it takes the event of another, which must then be polled,
//!   and with [`WrongChannel`](cq_core::transport::WaitError::WrongChannel) on a channel that does not serve the queue,
//!   where the channel can tell.
//!
//! # Fewer wake-ups
//! - **Solicited:** a queue that is armed for [`Notify::Solicited`](cq_core::transport::Notify::Solicited) raises its event
//!   at a receive whose sender has marked it ([`solicited`](crate::wr::SendWr::solicited)), and at any failure, never at a
//!   successful send ([N3](cq_core::contract#n3)). Mark the last message of a burst.
//!   It does not weaken an earlier arming for any completion ([N4](cq_core::contract#n4)).
//! - **Moderation:** [`moderate`](crate::device::DeviceCq::moderate) delays an event until a number of completions or a time,
//!   whichever comes first; a failure raises it at once ([N12](cq_core::contract#n12)). It costs latency.
//! - **Spinning:** [`set_spin`](crate::wait_set::WaitSet::set_spin) polls before it sleeps.
//!
//! # Other wake-ups
//! | what | how |
//! |---|---|
//! | a signal | [`WaitError::Interrupted`](cq_core::transport::WaitError::Interrupted), if there is no completion: check the handler's flag after each wait |
//! | a request to stop | [`StopHandle`](crate::wait_set::StopHandle) of a `WaitSet`, or [`thread::StopHandle`](cq_core::channel::thread::StopHandle) |
//! | the queue overran, closed or was failed | the poll fails ([O5](cq_core::contract#o5), [S2](cq_core::contract#s2), [S4](cq_core::contract#s4)) |
//! | an asynchronous event | another descriptor, that of the device: [`wait_async`](crate::async_event::BlockAsync::wait_async), `DeviceEvents` |
//!
//! # Tests
//! Give each wait a deadline. `RXE_LOOP_FAULTS="seed=7,spurious=0.3,defer=50us"` makes such races frequent on the loopback,
//! `Script` and `FaultInjector` of `cq-testing` without a device.
