//! Connected ends, each with a queue pair, a completion queue and memory for its messages, on any transport that
//! implements [`cq_core::device`]. What runs on them is generic, and names the transport once.
//!
//! ```
//! use bench::transport::loopback::Loopback;
//! use bench::transport::{Memory, Needs, SetUpError, Transport};
//! use cq_core::cq::CompletionQueue;
//! use cq_core::transport::Post;
//! use cq_core::wc::Wc;
//! use cq_core::wr::{RecvWr, SendWr};
//!
//! fn greet<T: Transport>(transport: &T) -> Result<(), Box<dyn std::error::Error>> {
//!     let needs = Needs { sends: 1, receives: 1, bytes: 64, ..Needs::default() };
//!     let [mut alice, mut bob] = transport.pair(&[needs; 2])?;
//!     alice.memory.write(0, b"hello");
//!     bob.pair.post_recv(&[RecvWr::new(1, &[bob.memory.sge(0, 64)])])?;
//!     alice.pair.post_send(&[SendWr::send(2, &[alice.memory.sge(0, 5)])])?;
//!
//!     let mut queue = CompletionQueue::new(bob.queue);
//!     let mut room = [Wc::default()];
//!     while queue.poll(&mut room)?.is_empty() {}
//!     assert_eq!(room[0].result()?.byte_len(), 5);
//!     Ok(())
//! }
//!
//! greet(&Loopback::open()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod heap;
pub mod loopback;
pub mod opened;
#[cfg(feature = "verbs")]
pub mod verbs;

use std::error::Error;
use std::time::Instant;

use cq_core::setup::Access;
use cq_core::transport::{Arm, Block, Post};
use cq_core::wr::{RemoteAddr, Sge};
use serde::{Deserialize, Serialize};

/// A device to run on.
pub trait Transport {
    /// A completion queue.
    type Queue: Arm + Send;
    /// A completion channel.
    type Channel: Block<Instant = Instant> + Send;
    /// A queue pair.
    type Pair: Post + Send;
    /// Registered memory.
    type Memory: Memory + Send;

    /// What the transport is called.
    const NAME: &'static str;

    /// The name of the device.
    fn device(&self) -> &str;

    /// What a process that this one starts needs in its environment, beside what is there, to reach the same
    /// device.
    fn environment(&self) -> Option<(&'static str, String)> {
        None
    }

    /// The device's limits.
    fn limits(&self) -> Limits;

    /// Creates an end, not connected.
    ///
    /// # Errors
    /// The device refused.
    fn end(&self, needs: &Needs) -> Result<End<Self>, SetUpError>;

    /// The endpoint of a queue pair, for the peer, which may be another process.
    ///
    /// # Errors
    /// The device refused.
    fn address(&self, pair: &Self::Pair) -> Result<Vec<u8>, SetUpError>;

    /// Connects a queue pair to the one with this endpoint, so that it is ready to send. The bytes may be invalid, since a
    /// peer sent them.
    ///
    /// # Errors
    /// The bytes are not an endpoint, or the device refused.
    fn connect(&self, pair: &mut Self::Pair, peer: &[u8]) -> Result<(), SetUpError>;

    /// Creates two ends, connected to each other.
    ///
    /// # Errors
    /// The device refused.
    fn pair(&self, [one, other]: &[Needs; 2]) -> Result<[End<Self>; 2], SetUpError> {
        let mut ends = [self.end(one)?, self.end(other)?];
        let addresses = [self.address(&ends[0].pair)?, self.address(&ends[1].pair)?];
        for (end, peer) in ends.iter_mut().zip(addresses.iter().rev()) {
            self.connect(&mut end.pair, peer)?;
        }
        Ok(ends)
    }
}

/// Registered memory of one end, addressed by offsets. Its peer may write it, by RDMA.
///
/// Offsets and lengths are the caller's own: outside the memory, all methods panic.
pub trait Memory {
    /// Copies `bytes` in.
    fn write(&mut self, at: usize, bytes: &[u8]);
    /// Copies bytes out.
    fn read(&self, at: usize, bytes: &mut [u8]);
    /// The SGE of a range.
    fn sge(&self, at: usize, len: u32) -> Sge;
    /// The remote address of an offset, for requests of the peer.
    fn remote(&self, at: usize) -> RemoteAddr;
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

/// What an end is created for. Requests have one SGE each, and none is inline.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Sends outstanding at once.
    pub sends: u32,
    /// Receives outstanding at once.
    pub receives: u32,
    /// Bytes of registered memory, which the peer may write and read.
    pub bytes: usize,
    /// Whose memory that is.
    pub memory: MemoryKind,
    /// Whether the peer uses atomics on it.
    pub atomics: bool,
    /// Whether the end waits on a completion channel.
    pub events: bool,
}

/// Whose memory messages lie in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// The transport's, which comes registered.
    #[default]
    Fabric,
    /// The program's own, from its heap, which is registered.
    Heap,
}

impl MemoryKind {
    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fabric => "fabric",
            Self::Heap => "heap",
        }
    }
}

impl Needs {
    /// What may be done with the memory.
    #[must_use]
    pub fn access(&self) -> Access {
        let atomic = if self.atomics { Access::REMOTE_ATOMIC } else { Access::empty() };
        Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | atomic
    }

    /// The size of a completion queue that can't overrun: everything outstanding.
    #[must_use]
    pub const fn completions(&self) -> u32 {
        self.sends + self.receives
    }
}

/// One end of a connection: both queues of its queue pair complete on the one completion queue.
pub struct End<T: Transport + ?Sized> {
    /// Where its requests complete.
    pub queue: T::Queue,
    /// What the queue raises its events on, where that was asked for.
    pub channel: Option<T::Channel>,
    /// Where its requests are posted.
    pub pair: T::Pair,
    /// Where its messages lie.
    pub memory: T::Memory,
}

/// Why an end could not be created or connected: what was attempted, and the device's error.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt}")]
pub struct SetUpError {
    attempt: &'static str,
    #[source]
    why: Box<dyn Error + Send + Sync>,
}

/// Says what was attempted when it fails.
pub trait Attempt<V> {
    /// `attempt` completes the sentence "cannot …".
    ///
    /// # Errors
    /// What it is called on, with the attempt.
    fn attempt(self, attempt: &'static str) -> Result<V, SetUpError>;
}

impl<V, E: Into<Box<dyn Error + Send + Sync>>> Attempt<V> for Result<V, E> {
    fn attempt(self, attempt: &'static str) -> Result<V, SetUpError> {
        self.map_err(|why| SetUpError { attempt, why: why.into() })
    }
}
