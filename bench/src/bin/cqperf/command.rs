//! What can be measured, as the command line says it, and as one process tells the other.

use std::num::{NonZeroU32, NonZeroU64};

use bench::transport::Limits;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::args::DETAILS;
use crate::job::{Job, Kind};
use crate::stream::{Shape, TooDeep};

/// A job, before it is known what the device can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Send a message to and fro, and take the time
    #[command(after_help = DETAILS)]
    Pingpong {
        #[command(flatten)]
        common: Common,

        /// Round trips
        #[arg(long, value_name = "N", default_value_t = number(100_000))]
        iters: NonZeroU64,
    },

    /// Send messages one way, as fast as they are received and checked
    #[command(after_help = DETAILS)]
    Stream {
        #[command(flatten)]
        common: Common,

        /// Messages
        #[arg(long, value_name = "N", default_value_t = number(2_000_000))]
        iters: NonZeroU64,

        /// Sends posted, and completions polled, at a time
        #[arg(long, value_name = "N", default_value_t = BATCH)]
        batch: NonZeroU32,

        /// Signal each Nth send, and the last one; the others complete only if they fail
        #[arg(long, value_name = "N", default_value_t = BATCH)]
        signal_every: NonZeroU32,
    },
}

/// What every command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Common {
    /// Bytes of a message, at least one: in none, nothing could be checked
    #[arg(long, value_name = "BYTES", default_value_t = SIZE)]
    size: NonZeroU64,

    /// Sleep on completion channels, instead of polling all the time
    #[arg(long)]
    events: bool,
}

const SIZE: NonZeroU64 = number(64);
const BATCH: NonZeroU32 = NonZeroU32::new(32).expect("it is not zero");

const fn number(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).expect("numbers of this file are not zero")
}

/// What is measured without a command: a few seconds in all, also on a slow machine with one core.
pub const DEFAULT: [Command; 3] = [
    Command::Pingpong { common: Common { size: SIZE, events: false }, iters: number(200_000) },
    Command::Pingpong { common: Common { size: SIZE, events: true }, iters: number(20_000) },
    Command::Stream {
        common: Common { size: SIZE, events: false },
        iters: number(1_000_000),
        batch: BATCH,
        signal_every: BATCH,
    },
];

/// The memory that messages may take, so that a large number meets an explanation and not the kernel's
/// out-of-memory killer. Enough for a ping-pong of 1 GiB.
const MEMORY: u64 = 4 << 30;

impl Command {
    /// The job, on a device with these limits.
    pub fn job(&self, limits: &Limits) -> Result<Job, Unfit> {
        let (Self::Pingpong { common, iters } | Self::Stream { common, iters, .. }) = self;
        let size = common.size(limits)?;
        let kind = match *self {
            Self::Pingpong { .. } => Kind::PingPong,
            Self::Stream { batch, signal_every, .. } => {
                Kind::Stream(Shape::new(size, batch.get(), signal_every.get(), limits)?)
            }
        };
        let job = Job { kind, events: common.events, size, iters: iters.get() };
        match job.memory() {
            bytes if bytes > MEMORY => Err(Unfit::Memory { bytes }),
            _ => Ok(job),
        }
    }
}

impl Common {
    fn size(&self, limits: &Limits) -> Result<u32, Unfit> {
        let size = self.size.get();
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
