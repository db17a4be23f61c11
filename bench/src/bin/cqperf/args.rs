//! The command line.

use std::slice;

use bench::transport::Limits;
use clap::{Args, Error as ClapError, Parser, Subcommand, ValueEnum, value_parser};

use crate::job::{Job, Kind};
use crate::stream::{Shape, TooDeep};

const ABOUT: &str = "\
Measures two queue pairs that exchange messages through completion queues, and checks every byte.

Without a command: a ping-pong of 64-byte messages, polled, then by events, then a stream.";

const DETAILS: &str = "\
Each end has a thread, and a core where there are two. Every byte of every message is checked against the
message's number and time stamp, so stale, torn and misplaced ones fail.

Latencies are of one way: half a round trip of the ping-pong, from posting to polling; for a stream, from
when the sender begins to write a batch to the poll that finds the message, so queueing counts. Messages
below 16 bytes have no room for a time stamp: streams of them have no latencies (null in JSON). Rates are
those of the whole loop, writing and checking included; a round trip counts as two messages.

Exit status:
  0    every message was right
  1    a message was wrong, a request failed, or the report could not be written
  2    usage
  3    the transport has no device
  130  interrupted: what was measured until then is reported, as partial (a second signal ends at once)

Examples:
  cqperf
  cqperf pingpong --size 4096 --events
  cqperf stream --iters 10000000 --batch 64 --signal-every 16 --json";

/// What was asked for.
#[derive(Parser)]
#[command(name = "cqperf", version, about = ABOUT, after_help = DETAILS)]
#[command(disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// Over which transport; loop is the loopback device in user space
    #[arg(long, global = true, display_order = LAST)]
    #[arg(value_enum, default_value_t = TransportName::Loop)]
    pub transport: TransportName,

    /// Print JSON: an object, or an array of three without a command. Latencies are in nanoseconds
    #[arg(long, global = true, display_order = LAST)]
    pub json: bool,
}

/// The transports that there are. A variant with a docstring would make the help twice as long.
#[derive(Clone, Copy, ValueEnum)]
pub enum TransportName {
    Loop,
}

#[derive(Subcommand)]
enum Command {
    /// Send a message to and fro, and take the time
    #[command(after_help = DETAILS)]
    Pingpong {
        #[command(flatten)]
        common: Common,

        /// Round trips
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        #[arg(value_parser = value_parser!(u64).range(1..))]
        iters: u64,
    },

    /// Send messages one way, as fast as they are received and checked
    #[command(after_help = DETAILS)]
    Stream {
        #[command(flatten)]
        common: Common,

        /// Messages
        #[arg(long, value_name = "N", default_value_t = 2_000_000)]
        #[arg(value_parser = value_parser!(u64).range(1..))]
        iters: u64,

        /// Sends posted, and completions polled, at a time
        #[arg(long, value_name = "N", default_value_t = BATCH)]
        #[arg(value_parser = value_parser!(u32).range(1..))]
        batch: u32,

        /// Signal each Nth send, and the last one; the others complete only if they fail
        #[arg(long, value_name = "N", default_value_t = BATCH)]
        #[arg(value_parser = value_parser!(u32).range(1..))]
        signal_every: u32,
    },
}

/// What every command takes.
#[derive(Args)]
struct Common {
    /// Bytes of a message, at least one: in none, nothing could be checked
    #[arg(long, value_name = "BYTES", default_value_t = SIZE)]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    size: u64,

    /// Sleep on completion channels, instead of polling all the time
    #[arg(long)]
    events: bool,
}

/// Behind what the commands have of their own.
const LAST: usize = 100;

const SIZE: u64 = 64;
const BATCH: u32 = 32;

/// What is measured without a command: a few seconds in all, also on a slow machine with one core.
const DEFAULT: [Command; 3] = [
    Command::Pingpong { common: Common { size: SIZE, events: false }, iters: 200_000 },
    Command::Pingpong { common: Common { size: SIZE, events: true }, iters: 20_000 },
    Command::Stream {
        common: Common { size: SIZE, events: false },
        iters: 1_000_000,
        batch: BATCH,
        signal_every: BATCH,
    },
];

impl Arguments {
    /// What to measure on a device with these limits.
    pub fn jobs(&self, limits: &Limits) -> Result<Vec<Job>, Usage> {
        let commands = self.command.as_ref().map_or(&DEFAULT[..], slice::from_ref);
        commands.iter().map(|command| command.job(limits)).collect()
    }

    /// Whether several jobs are reported.
    pub const fn several(&self) -> bool {
        self.command.is_none()
    }
}

/// The memory that messages may take, so that a large number meets an explanation and not the kernel's
/// out-of-memory killer. Enough for a ping-pong of 1 GiB.
const MEMORY: u64 = 4 << 30;

impl Command {
    fn job(&self, limits: &Limits) -> Result<Job, Usage> {
        let (Self::Pingpong { common, iters } | Self::Stream { common, iters, .. }) = self;
        let size = common.size(limits)?;
        let kind = match *self {
            Self::Pingpong { .. } => Kind::PingPong,
            Self::Stream { batch, signal_every, .. } => {
                Kind::Stream(Shape::new(size, batch, signal_every, limits)?)
            }
        };
        let job = Job { kind, events: common.events, size, iters: *iters };
        match job.memory() {
            bytes if bytes > MEMORY => Err(Usage::TooLarge { bytes }),
            _ => Ok(job),
        }
    }
}

impl Common {
    fn size(&self, limits: &Limits) -> Result<u32, Usage> {
        u32::try_from(self.size)
            .ok()
            .filter(|&size| u64::from(size) <= limits.message)
            .ok_or(Usage::TooLong { size: self.size, most: limits.message })
    }
}

/// What can't be measured, whatever the device.
#[derive(Debug, thiserror::Error)]
pub enum Usage {
    /// clap says no.
    #[error("{}", one_line(.0))]
    Syntax(#[from] ClapError),
    /// A message is too long for the device.
    #[error("--size {size}: the device's messages have at most {most} bytes")]
    TooLong {
        /// What was asked for.
        size: u64,
        /// What the device can.
        most: u64,
    },
    /// The queues would be too deep.
    #[error(transparent)]
    TooDeep(#[from] TooDeep),
    /// The messages would take too much memory.
    #[error(
        "the messages would take {bytes} bytes of memory, more than the {MEMORY} that they may: \
         choose a smaller --size, or for a stream a smaller --batch or --signal-every"
    )]
    TooLarge {
        /// What they would take.
        bytes: u64,
    },
}

/// clap's message up to its first blank line, without the prefix that all errors get here.
fn one_line(error: &ClapError) -> String {
    let text = error.render().to_string();
    let lines: Vec<&str> =
        text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}
