//! What can be measured, as one process tells the other.

use std::num::{NonZeroU32, NonZeroU64};

use bench::transport::{Limits, MemoryKind};
use serde::{Deserialize, Serialize};

use crate::job::{Job, Kind};
use crate::op::{Op, WORD};
use crate::shape::{Shape, TooDeep};

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

/// The memory that messages may take, so that a large number meets an explanation and not the kernel's
/// out-of-memory killer. Enough for a ping-pong of 1 GiB.
const MEMORY: u64 = 4 << 30;

impl Command {
    /// The job, on a device with these limits.
    pub fn job(&self, limits: &Limits) -> Result<Job, Unfit> {
        let &Self { flow, op, memory, events, iters, .. } = self;
        let size = self.size(limits)?;
        if op == Op::Write && events {
            return Err(Unfit::Silent);
        }
        let kind = match flow {
            Flow::Pingpong => Kind::PingPong,
            Flow::Stream { batch, signal_every } => {
                Kind::Stream(Shape::new(size, batch.get(), signal_every.get(), limits)?)
            }
        };
        let job = Job { kind, op, memory, events, size, iters: iters.get() };
        match job.memory() {
            bytes if bytes > MEMORY => Err(Unfit::Memory { bytes }),
            _ => Ok(job),
        }
    }

    fn size(&self, limits: &Limits) -> Result<u32, Unfit> {
        let (size, op) = (self.size.get(), self.op.name());
        if self.op.is_atomic() {
            return match limits.atomics {
                true if size == u64::from(WORD) => Ok(WORD),
                true => Err(Unfit::Word { size, op }),
                false => Err(Unfit::Atomics { op }),
            };
        }
        u32::try_from(size)
            .ok()
            .filter(|&size| u64::from(size) <= limits.message)
            .ok_or(Unfit::Message { size, most: limits.message })
    }
}

/// What can't be measured on this device.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// A message is too long for the device.
    #[error("--size {size}: the device's messages have at most {most} bytes")]
    Message {
        /// What was asked for.
        size: u64,
        /// What the device can.
        most: u64,
    },
    /// An atomic is asked to be of another size.
    #[error("--size {size}: --op {op} is about {WORD} bytes, always")]
    Word {
        /// What was asked for.
        size: u64,
        /// Which one.
        op: &'static str,
    },
    /// There are no atomics.
    #[error("--op {op}: the device has no atomics")]
    Atomics {
        /// Which one.
        op: &'static str,
    },
    /// Nobody would be woken.
    #[error("--events with --op write: who is written to is not told, so it polls its memory")]
    Silent,
    /// The queues would be too deep.
    #[error(transparent)]
    Queues(#[from] TooDeep),
    /// The messages would take too much memory.
    #[error(
        "the messages would take {bytes} bytes of memory, more than the {MEMORY} that they may: \
         choose a smaller --size, or for a stream a smaller --batch or --signal-every"
    )]
    Memory {
        /// What they would take.
        bytes: u64,
    },
}
