//! What can be measured, as one process tells the other.

use std::num::{NonZeroU32, NonZeroU64};

use bench::transport::MemoryKind;
use serde::{Deserialize, Serialize};

use crate::op::Op;

/// A job, before it is known what the device can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Which way messages go.
    pub flow: Flow,
    /// What they are moved by.
    pub op: Op,
    /// Whose memory they lie in.
    pub memory: MemoryKind,
    /// Whether to sleep on completion channels.
    pub events: bool,
    /// Bytes of a message.
    pub size: NonZeroU64,
    /// How many.
    pub iters: NonZeroU64,
}

/// Which way messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Flow {
    /// To and fro.
    Pingpong,
    /// One way.
    Stream {
        /// Requests posted at a time.
        batch: NonZeroU32,
        /// How far apart signaled ones are.
        signal_every: NonZeroU32,
    },
}

/// Bytes of a message, where none are said.
pub const SIZE: NonZeroU64 = number(64);

/// Requests posted at a time, where it is not said.
pub const BATCH: NonZeroU32 = NonZeroU32::new(32).expect("it is not zero");

/// A number that is not zero.
pub const fn number(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).expect("numbers of this program are not zero")
}

const fn messages(flow: Flow, events: bool, iters: u64) -> Command {
    let (op, memory) = (Op::Send, MemoryKind::Fabric);
    Command { flow, op, memory, events, size: SIZE, iters: number(iters) }
}

/// What is measured without a command: a few seconds in all, also on a slow machine with one core.
pub const DEFAULT: [Command; 3] = [
    messages(Flow::Pingpong, false, 200_000),
    messages(Flow::Pingpong, true, 20_000),
    messages(Flow::Stream { batch: BATCH, signal_every: BATCH }, false, 1_000_000),
];
