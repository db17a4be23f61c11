//! Tasks of tokio: channels and asynchronous events that they await, and queue pairs on which each awaits its own
//! requests. Feature `tokio`.
//!
//! ```
//! use std::error::Error;
//! use std::os::fd::AsFd;
//!
//! use cq_verbs::budget::Entries;
//! use cq_verbs::device::{Device, QueuePair, Slots};
//! use cq_verbs::setup::Access;
//! use cq_verbs::task::{Driver, Pool, Slot, TaskQp};
//! use cq_verbs::wr::SendWr;
//!
//! /// A queue pair with up to 8 sends and 8 receives outstanding. Each owns the memory that it uses.
//! type Qp<D> = TaskQp<<D as Device>::Qp, Slot<<D as Device>::Memory>, 8, 8, Entries>;
//!
//! /// Two queue pairs of a device exchange a message, each in a task of its own.
//! async fn greet<D: Device<Channel: AsFd>>(device: &D) -> Result<(), Box<dyn Error + Send + Sync>> {
//!     // A task polls the completion queue, and wakes those whose requests have completed.
//!     let driver = Driver::open(device, 32)?;
//!     let (queue, handle) = (driver.queue(), driver.handle());
//!     let driver = tokio::spawn(driver.run());
//!
//!     let (pd, port) = (device.alloc_pd()?, device.port(1)?);
//!     let alice = Qp::<D>::create(&pd, &queue, &handle).await?;
//!     let bob = Qp::<D>::create(&pd, &queue, &handle).await?;
//!     alice.connect(&port, &bob.with(|qp| qp.endpoint(&port)))?;
//!     bob.connect(&port, &alice.with(|qp| qp.endpoint(&port)))?;
//!
//!     let pool = Pool::new(Slots::allocate(&pd, 16, 64, Access::LOCAL_WRITE)?);
//!     let slot = pool.take().await;
//!     let receiver = tokio::spawn(async move { bob.receive(&[slot.sge()], slot).await });
//!     let slot = pool.take().await;
//!     slot.write(b"hello")?;
//!     alice.send(SendWr::send(0, &[slot.part(5)?]), slot).await?;
//!     let (received, mut bytes) = (receiver.await??, [0; 5]);
//!     received.buffer.read(&mut bytes)?;
//!     assert_eq!((&bytes, received.completed().byte_len()), (b"hello", 5));
//!     driver.abort();
//!     Ok(())
//! }
//! ```
//!
//! | type | what a task awaits |
//! |---|---|
//! | [`Channel`] | a batch of completions, by [`next_batch`](cq_core::cq::CompletionQueue::next_batch) |
//! | [`DeviceEvents`] | an asynchronous event |
//! | [`Driver`] and [`TaskQp`] | the completion of its own request |
//! | [`Inbox`] | the next message of a queue pair |
//! | [`Pool`] | memory for a message |
//!
//! A server of many clients: [`guide::tasks`](crate::guide::tasks).
//!
//! # Futures that are dropped
//! A request that was posted can't be taken back. If the future of [`TaskQp::send`] or [`TaskQp::receive`] is dropped, the
//! device still executes the request, and its buffer stays with the queue pair until the request has completed or the
//! queue pair was destroyed. So a buffer is never freed while the device may use it; where that can't be known, as of a
//! peer whose process is suspended in the middle of a message, the buffer is leaked. What the other futures of this module
//! have not returned is returned by the next call.
//!
//! A receive whose future was dropped takes the next message all the same. So where answers belong to questions, one task
//! has the [`Inbox`], and passes each message on by what it says; the others [wait for
//! that](crate::guide::tasks#a-client-with-many-requests).

mod channel;
#[cfg(target_os = "linux")]
mod connect;
mod create;
mod device_events;
mod driver;
mod for_all;
mod inbox;
mod pool;
mod qp;
mod request;
mod shared;

pub use self::channel::Channel;
pub use self::device_events::DeviceEvents;
pub use self::driver::{Driver, Ended, Handle};
pub use self::inbox::Inbox;
pub use self::pool::{Pool, Slot};
pub use self::qp::TaskQp;
pub use self::request::{Finished, Request, RequestError, Token, Unfinished};
