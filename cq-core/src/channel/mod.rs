//! Event channels for software queues.
//!
//! ```
//! use cq_core::channel::flag::Flag;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::SoftCq;
//! use cq_core::transport::{CqKey, Events, Notify};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! const KEY: CqKey = CqKey { index: 0, generation: 1 };
//! let (mut storage, mut flag) = (SoftCq::<16>::new(), Flag::new());
//! let (raiser, mut events) = flag.split();
//! let (mut producer, consumer) = storage.split_with(KEY, raiser);
//! let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
//!
//! assert!(cq.poll_or_arm(&mut batch, Notify::Next)?.is_empty()); // armed: sleep until the event
//! producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?; // in an interrupt handler, say
//! assert_eq!(events.take_event(), Ok(Some(KEY)));
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
//! [`route`] shares one channel between several queues. A channel with a descriptor, for event loops, is in cq-verbs. A
//! closure is a [`Signal`](crate::transport::Signal), too: one
//! that writes to an eventfd in an `Arc`, for example. A queue's consumer gets a clone of the signal.

pub mod flag;
pub mod route;
#[cfg(feature = "std")]
pub mod thread;
#[cfg(feature = "async")]
pub mod waker;
