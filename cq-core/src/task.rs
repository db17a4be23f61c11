//! Tasks of tokio: channels and asynchronous events that they await, and queue pairs on which each awaits its own
//! requests. Feature `tokio`.
//!
//! ```
//! use std::error::Error;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::device::{Device, Memory, ProtectionDomain, QueuePair, Region};
//! use cq_core::setup::{Access, QpInit};
//! use cq_core::task::{Channel, Driver, TaskQp};
//! use cq_core::tracked::TrackedQp;
//! use cq_core::wr::SendWr;
//! use std::os::fd::AsFd;
//! use std::sync::Arc;
//!
//! /// Two queue pairs of a device exchange a message, each in a task of its own.
//! async fn greet<D: Device<Channel: AsFd>>(device: &D) -> Result<(), Box<dyn Error + Send + Sync>> {
//!     let (pd, port, channel) = (device.alloc_pd()?, device.port(1)?, device.create_channel()?);
//!     let cq = device.create_cq(64, Some(&channel))?;
//!     let mut alice = pd.create_qp(&QpInit::new(&cq))?;
//!     let mut bob = pd.create_qp(&QpInit::new(&cq))?;
//!     alice.connect(&port, &bob.endpoint(&port))?;
//!     bob.connect(&port, &alice.endpoint(&port))?;
//!
//!     // A task polls the completion queue, and wakes those whose requests have completed.
//!     let driver = Driver::new(CompletionQueue::new(cq), Channel::new(channel)?);
//!     let handle = &driver.handle();
//!     let alice = TaskQp::<_, (), 16, 0>::new(TrackedQp::new(alice), &[handle]);
//!     let bob = TaskQp::<_, _, 0, 16>::new(TrackedQp::new(bob), &[handle]);
//!     let driver = tokio::spawn(driver.run());
//!
//!     // Each request owns its buffer until it has completed, even if nobody awaits it any more.
//!     let memory = Arc::new(pd.allocate(64, Access::LOCAL_WRITE)?);
//!     let sge = memory.sge(0, 64)?;
//!     let receiver = tokio::spawn(async move { bob.receive(&[sge], memory).await });
//!     alice.send(SendWr::send_inline(0, b"hello"), ()).await?;
//!     let received = receiver.await??;
//!     let mut bytes = [0; 5];
//!     received.buffer.read(0, &mut bytes)?;
//!     assert_eq!((&bytes, received.wc.result()?.byte_len()), (b"hello", 5));
//!     driver.abort();
//!     Ok(())
//! }
//! ```
//!
//! | type | what a task awaits |
//! |---|---|
//! | [`Channel`] | a batch of completions, by [`next_batch`](crate::cq::CompletionQueue::next_batch) |
//! | [`DeviceEvents`] | an asynchronous event |
//! | [`Driver`] and [`TaskQp`] | the completion of its own request |
//!
//! # Futures that are dropped
//! A request that was posted can't be taken back. If the future of [`TaskQp::send`] or [`TaskQp::receive`] is dropped, the
//! device still executes the request, and its buffer stays with the queue pair until the request has completed or the
//! queue pair was destroyed. So a buffer is never freed while the device may use it. What the other futures of this
//! module have not returned is returned by the next call.

mod channel;
mod device_events;
mod driver;
mod qp;
mod request;

pub use self::channel::Channel;
pub use self::device_events::DeviceEvents;
pub use self::driver::{Driver, Handle};
pub use self::qp::TaskQp;
pub use self::request::{Finished, Request, RequestError, Token, Unfinished};
