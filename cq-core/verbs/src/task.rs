//! Tasks of tokio: channels and asynchronous events that they await, and queue pairs on which each awaits its own
//! requests. Feature `tokio`.
//!
//! ```
//! # use std::error::Error;
//! # use std::os::fd::AsFd;
//! # use cq_verbs::device::{Device, DeviceQp, Slots};
//! # use cq_verbs::setup::Access;
//! use cq_verbs::task::{Driver, Pool, TaskQp};
//! use cq_verbs::wr::SendWr;
//!
//! /// Two queue pairs of a device exchange a message, each in a task of its own.
//! async fn greet<D: Device<Channel: AsFd>>(device: &D) -> Result<(), Box<dyn Error + Send + Sync>> {
//!     // A task polls the completion queue, and wakes those whose requests have completed.
//!     let driver = Driver::open(device, 32)?;
//!     let (queue, handle) = (driver.queue(), driver.handle());
//!     tokio::spawn(driver.run());
//!
//!     // Each may have 8 sends and 8 receives outstanding. A request owns the memory that it uses.
//!     let (pd, port) = (device.alloc_pd()?, device.port(1)?);
//!     let alice = TaskQp::create(&pd, &queue, &handle, 8, 8).await?;
//!     let bob = TaskQp::create(&pd, &queue, &handle, 8, 8).await?;
//!     alice.connect(&port, &bob.query(|qp| qp.endpoint(&port)))?;
//!     bob.connect(&port, &alice.query(|qp| qp.endpoint(&port)))?;
//!
//!     let pool = Pool::new(Slots::allocate(&pd, 16, 64, Access::LOCAL_WRITE)?);
//!     let (to, from) = (pool.take().await, pool.take().await);
//!     let receiver = tokio::spawn(async move { bob.receive(&[to.sge()], to).await });
//!     from.write(b"hello")?;
//!     alice.send(SendWr::send(0, &[from.part(5)?]), from).await?;
//!     let (received, mut bytes) = (receiver.await??, [0; 5]);
//!     received.buffer.read(&mut bytes)?;
//!     assert_eq!(&bytes, b"hello");
//!     Ok(())
//! }
//! ```
//!
//! | type | what a task awaits |
//! |---|---|
//! | [`TaskChannel`] | a batch of completions, by [`next_batch`](cq_core::cq::CompletionQueue::next_batch) |
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

pub use self::channel::TaskChannel;
pub use self::device_events::DeviceEvents;
pub use self::driver::{Driver, Ended, Handle};
pub use self::inbox::Inbox;
pub use self::pool::{Pool, PoolSlot};
pub use self::qp::TaskQp;
pub use self::request::{Finished, Posted, RequestError, Token, UnfinishedError};
