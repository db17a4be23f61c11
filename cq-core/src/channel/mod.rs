//! Event channels for software queues.
//!
//! ```
//! use cq_core::channel::flag::Flag;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::SoftCq;
//! use cq_core::transport::{Arm, Events, Notify};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let (mut storage, mut flag) = (SoftCq::<16>::new(), Flag::new());
//! let (raiser, mut events) = flag.split();
//! let (mut producer, consumer) = storage.split_with(raiser);
//! let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
//!
//! assert!(cq.poll_or_arm(&mut batch, Notify::Next)?.is_empty()); // armed: sleep until the event
//! producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?; // in an interrupt handler, say
//! assert_eq!(events.take_event(), Ok(Some(cq.get_ref().key())));
//! assert_eq!(cq.poll(&mut batch)?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | channel | for | needs |
//! |---|---|---|
//! | [`flag`] | firmware that checks it when the core wakes | nothing, not even compare-and-swap |
//! | `thread` | a thread that sleeps | feature `std` |
//! | `waker` | a task of any executor | feature `async` |
//!
//! Each makes the keys of its queues. A raiser is moved into the one queue that it is for, by `split_with`; the engine
//! copies it for the queue's other sides. A closure that raises by one raiser for two queues loses events. A wait for a queue on another one's channel fails with
//! [`WrongChannel`](crate::transport::WaitError::WrongChannel).
//!
//! [`route`] shares one channel between several queues. A channel with a descriptor, for event loops, is in cq-verbs. A
//! channel of your own is a [`Signal`](crate::transport::Signal) and its [`Events`](crate::transport::Events). A key and a
//! closure are a signal: one that writes to an eventfd in an `Arc`, for example.

#[doc(alias = "interrupt")]
pub mod flag;
pub mod route;
mod sides;
#[cfg(feature = "std")]
pub mod thread;
#[cfg(feature = "async")]
#[doc(alias = "embassy")]
pub mod waker;

pub use self::sides::{Raiser, Receiver, Share};
