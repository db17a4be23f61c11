//! What cqperf asks of a transport beyond the seams of cq-core: two connected ends, and memory.

use std::error::Error;

use cq_core::transport::{Arm, Block, Post};
use cq_core::wr::Sge;

/// A device under measurement.
pub trait Transport {
    /// A completion queue.
    type Queue: Arm + Send;
    /// A completion channel.
    type Channel: Block + Send;
    /// A queue pair.
    type Pair: Post + Send;
    /// Registered memory.
    type Memory: Memory + Send;

    /// As `--transport` names it.
    const NAME: &'static str;

    /// The name of the device.
    fn device(&self) -> &str;

    /// What the device can't exceed.
    fn limits(&self) -> Limits;

    /// Two ends, connected to each other and ready to send.
    fn connect(&self, needs: &[Needs; 2]) -> Result<[End<Self>; 2], SetUpError>;
}

/// Registered memory of one end, addressed by offsets.
pub trait Memory {
    /// Copies `bytes` in.
    fn write(&mut self, at: usize, bytes: &[u8]);
    /// Copies bytes out.
    fn read(&self, at: usize, bytes: &mut [u8]);
    /// Names a piece of it in a request.
    fn sge(&self, at: usize, len: u32) -> Sge;
}

/// What a device can't exceed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes in a message.
    pub message: u64,
    /// Requests in a send or a receive queue.
    pub requests: u32,
}

/// What one end is made for.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Sends outstanding at once.
    pub sends: u32,
    /// Receives outstanding at once.
    pub receives: u32,
    /// Bytes of registered memory.
    pub bytes: usize,
    /// Whether the end sleeps on a completion channel.
    pub events: bool,
}

impl Needs {
    /// The size of a completion queue that can't overrun: everything outstanding.
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

/// Why two ends can't be had: what was attempted, and what the device said.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt}: {why}")]
pub struct SetUpError {
    attempt: &'static str,
    why: Box<dyn Error>,
}

/// Says what was attempted when it fails.
pub trait Attempt<V> {
    /// `attempt` completes the sentence "cannot …".
    fn attempt(self, attempt: &'static str) -> Result<V, SetUpError>;
}

impl<V, E: Error + 'static> Attempt<V> for Result<V, E> {
    fn attempt(self, attempt: &'static str) -> Result<V, SetUpError> {
        self.map_err(|why| SetUpError { attempt, why: Box::new(why) })
    }
}
