//! Connected ends, each with a queue pair, a completion queue and memory for its messages, on any transport that
//! implements [`cq_verbs::device`]. What runs on them is generic, and names the transport once.
//!
//! ```
//! use bench::transport::{Needs, Transport};
//! use bench::transport::loopback::Loopback;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::wc::Wc;
//! use cq_verbs::post::Post;
//! use cq_verbs::wr::{RecvWr, SendWr};
//!
//! fn greet<T: Transport>(transport: &T) -> Result<(), Box<dyn std::error::Error>> {
//!     let needs = Needs { sends: 1, receives: 1, bytes: 64, ..Needs::default() };
//!     let [mut alice, mut bob] = transport.pair(&[needs; 2])?;
//!     alice.memory.write(0, b"hello")?;
//!     bob.pair.post_recv(&[RecvWr::new(1, &[bob.memory.registered().sge(..64)?])])?;
//!     alice.pair.post_send(&[SendWr::send(2, &[alice.memory.registered().sge(..5)?])])?;
//!
//!     let mut queue = CompletionQueue::new(bob.queue);
//!     let mut buffer = [Wc::default()];
//!     while queue.poll(&mut buffer)?.is_empty() {}
//!     assert_eq!(buffer[0].result()?.byte_len(), 5);
//!     Ok(())
//! }
//!
//! greet(&Loopback::open()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod heap;
pub mod loopback;
#[cfg(feature = "verbs")]
pub mod verbs;

use std::time::Instant;

use clap::ValueEnum;
use cq_core::transport::Block;
use cq_verbs::device::{Device, DevicePd, DeviceQp, Memory};
use cq_verbs::polling::ArmWc;
use cq_verbs::setup::{Access, AtomicCap, CreateError, Port, QpCaps};
use serde::{Deserialize, Serialize};

use self::heap::Heap;
use crate::failure::Failure;

/// A device to run on.
pub trait Transport: Sync {
    /// A completion queue.
    type Queue: ArmWc + Send;
    /// A completion channel.
    type Channel: Block<Instant = Instant> + Send;
    /// A queue pair.
    type Pair: DeviceQp;

    /// What is known of the device.
    fn about(&self) -> &About;

    /// Creates an end, not connected.
    ///
    /// # Errors
    /// The device refused.
    fn end(&self, needs: &Needs) -> Result<End<Self>, SetUpError>;

    /// Creates two ends, connected to each other.
    ///
    /// # Errors
    /// The device refused.
    fn pair(&self, [one, other]: &[Needs; 2]) -> Result<[End<Self>; 2], SetUpError> {
        let mut ends = [self.end(one)?, self.end(other)?];
        let [there, here] = [&ends[0], &ends[1]].map(|end| end.pair.endpoint(&self.about().port));
        for (end, peer) in ends.iter_mut().zip([here, there]) {
            end.pair.connect(&self.about().port, &peer).attempt(CONNECT)?;
        }
        Ok(ends)
    }
}

/// What is attempted when a peer's endpoint is used.
pub const CONNECT: &str = "connect to the peer";

/// What is known of an open device.
#[derive(Debug)]
pub struct About {
    /// What the transport is called.
    pub name: &'static str,
    /// The name of the device.
    pub device: String,
    /// The port that its queue pairs are connected by.
    pub port: Port,
    /// The device's limits.
    pub limits: Limits,
}

/// The limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bytes in a message.
    pub message: u64,
    /// Requests in a send or a receive queue.
    pub requests: u32,
    /// Whether it has atomics.
    pub atomics: bool,
}

impl Limits {
    /// The limits that two devices have in common.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self {
            message: self.message.min(other.message),
            requests: self.requests.min(other.requests),
            atomics: self.atomics && other.atomics,
        }
    }
}

/// What an end is created for. Requests have one SGE each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Sends outstanding at once.
    pub sends: u32,
    /// Receives outstanding at once.
    pub receives: u32,
    /// Bytes that a send may have inline.
    pub inline: u32,
    /// Bytes of registered memory, which the peer may write and read.
    pub bytes: usize,
    /// Whose memory that is.
    pub memory: MemoryKind,
    /// Whether the peer uses atomics on it.
    pub atomics: bool,
    /// Whether the end waits on a completion channel.
    pub events: bool,
}

/// Whose memory messages lie in. A variant with a docstring would make cqperf's help twice as long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum MemoryKind {
    // The transport's, which comes registered.
    #[default]
    Fabric,
    // The program's own, from its heap, which is registered.
    Heap,
}

/// One end of a connection: both queues of its queue pair complete on the one completion queue.
pub struct End<T: Transport + ?Sized> {
    /// Where its requests complete.
    pub queue: T::Queue,
    /// What the queue raises its events on, where that was asked for.
    pub channel: Option<T::Channel>,
    /// Where its requests are posted.
    pub pair: T::Pair,
    /// Where its messages lie. Its peer may write it, by RDMA.
    pub memory: Box<dyn Memory>,
}

/// An open device, one of its ports, and a protection domain.
pub struct Opened<D: Device> {
    about: About,
    context: D,
    domain: D::Pd,
}

impl<D: Device> Opened<D> {
    /// This device of the transport of this name, on this port.
    fn new(name: &'static str, context: D, port: Port) -> Result<Self, CreateError> {
        let (device, domain) = (context.attributes(), context.alloc_pd()?);
        let limits = Limits {
            message: port.max_msg_size,
            requests: device.max_qp_wr.min(device.max_cqe / 2),
            atomics: device.atomic_cap != AtomicCap::NONE,
        };
        let about = About { name, device: context.name().to_owned(), port, limits };
        Ok(Self { about, context, domain })
    }
}

impl<D> Transport for Opened<D>
where
    D: Device<Instant = Instant>,
{
    type Queue = D::Cq;
    type Channel = D::Channel;
    type Pair = D::Qp;

    fn about(&self) -> &About {
        &self.about
    }

    fn end(&self, needs: &Needs) -> Result<End<Self>, SetUpError> {
        let &Needs { sends, receives, bytes, .. } = needs;
        let channel = needs.events.then(|| self.context.create_channel());
        let channel = channel.transpose().attempt("create a completion channel")?;
        // It can't overrun: there is space for everything outstanding.
        let queue = self.context.cq(sends + receives).channel(channel.as_ref()).create();
        let queue = queue.attempt("create a completion queue")?;
        let caps = QpCaps::USUAL
            .max_send_wr(sends)
            .max_recv_wr(receives)
            .max_send_sge(1)
            .max_recv_sge(1)
            .max_inline(needs.inline);
        let pair = self.domain.qp(&queue).caps(caps).create();
        let pair = pair.attempt("create a queue pair")?;
        let mut access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
        access.set(Access::REMOTE_ATOMIC, needs.atomics);
        let memory = match needs.memory {
            MemoryKind::Fabric => {
                self.domain.allocate(bytes, access).map(|memory| Box::new(memory) as Box<_>)
            }
            MemoryKind::Heap => {
                Heap::register(&self.domain, bytes, access).map(|memory| Box::new(memory) as Box<_>)
            }
        };
        let memory = memory.attempt("register memory for the messages")?;
        Ok(End { queue, channel, pair, memory })
    }
}

/// Why an end could not be created or connected: what was attempted, and the device's error.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt}")]
pub struct SetUpError {
    attempt: &'static str,
    #[source]
    why: Failure,
}

/// Says what was attempted when it fails.
pub trait Attempt<V> {
    /// `attempt` completes the sentence "cannot …".
    ///
    /// # Errors
    /// What it is called on, with the attempt.
    fn attempt(self, attempt: &'static str) -> Result<V, SetUpError>;
}

impl<V, E: Into<Failure>> Attempt<V> for Result<V, E> {
    fn attempt(self, attempt: &'static str) -> Result<V, SetUpError> {
        self.map_err(|why| SetUpError { attempt, why: why.into() })
    }
}
