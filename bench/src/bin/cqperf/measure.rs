//! What to measure, as the command line says it.

use std::iter;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use bench::transport::MemoryKind;
use clap::{Args, Subcommand, ValueEnum};

use crate::command::{BATCH, Command, Flow, SIZE, number};
use crate::op::{Op, WORD};
use crate::usage::{DETAILS, Usage};

/// A job, or one for each size of a sweep.
#[derive(Subcommand)]
pub enum Measure {
    /// Exchange messages one at a time, and take the time
    #[command(after_help = DETAILS)]
    Pingpong {
        #[command(flatten)]
        common: Common,

        /// Round trips, or operations [default: 100000; in a sweep fewer, the longer the messages]
        #[arg(long, value_name = "N")]
        iters: Option<NonZeroU64>,
    },

    /// Move messages one way, as fast as they are checked
    #[command(after_help = DETAILS)]
    Stream {
        #[command(flatten)]
        common: Common,

        /// Messages, or operations [default: 2000000; in a sweep fewer, the longer the messages]
        #[arg(long, value_name = "N")]
        iters: Option<NonZeroU64>,

        /// Requests posted, and completions polled, at a time
        #[arg(long, value_name = "N", default_value_t = BATCH)]
        batch: NonZeroU32,

        /// Signal each Nth request, and the last one; the others complete only if they fail
        #[arg(long, value_name = "N", default_value_t = BATCH)]
        signal_every: NonZeroU32,
    },
}

/// What every command takes.
#[derive(Args)]
pub struct Common {
    /// What messages are moved by
    #[arg(long, value_enum, default_value_t = Op::Send)]
    op: Op,

    /// Whose memory they lie in: the transport's, or the program's own, registered
    #[arg(long, value_name = "WHOSE", value_enum, default_value_t = Whose::Fabric)]
    memory: Whose,

    /// Bytes of a message, at least one: in none, nothing could be checked [default: 64; 8 for atomics]
    #[arg(long, value_name = "BYTES")]
    size: Option<NonZeroU64>,

    /// Measure sizes 1, 2, 4, … up to --size, or to 1 MiB
    #[arg(long)]
    pub sweep: bool,

    /// Draw latency and bandwidth over size into this SVG file
    #[arg(long, value_name = "FILE", requires = "sweep")]
    pub plot: Option<PathBuf>,

    /// Sleep on completion channels, instead of polling all the time
    #[arg(long)]
    events: bool,
}

/// [`MemoryKind`], as the command line has it.
#[derive(Clone, Copy, ValueEnum)]
enum Whose {
    Fabric,
    Heap,
}

/// How far a sweep goes, where it is not said.
const FAR: u64 = 1 << 20;

impl Measure {
    /// What every command takes.
    pub const fn common(&self) -> &Common {
        let (Self::Pingpong { common, .. } | Self::Stream { common, .. }) = self;
        common
    }

    /// The jobs.
    pub fn commands(&self) -> Result<Vec<Command>, Usage> {
        let common = self.common();
        let &Common { op, events, sweep, .. } = common;
        let memory = match common.memory {
            Whose::Fabric => MemoryKind::Fabric,
            Whose::Heap => MemoryKind::Heap,
        };
        let command = |size| Command {
            flow: self.flow(),
            op,
            memory,
            events,
            size: number(size),
            iters: self.iters(size),
        };
        let alone = if op.is_atomic() { WORD.into() } else { SIZE.get() };
        match common.size.map(NonZeroU64::get) {
            _ if sweep && op.is_atomic() => Err(Usage::OneSize { op: op.name() }),
            largest if sweep => Ok(sizes(largest.unwrap_or(FAR)).map(command).collect()),
            size => Ok(vec![command(size.unwrap_or(alone))]),
        }
    }

    const fn flow(&self) -> Flow {
        match *self {
            Self::Pingpong { .. } => Flow::Pingpong,
            Self::Stream { batch, signal_every, .. } => Flow::Stream { batch, signal_every },
        }
    }

    /// How many of messages of this size: in a sweep, what takes about a second or less.
    fn iters(&self, size: u64) -> NonZeroU64 {
        let (&given, alone, most, bytes) = match self {
            Self::Pingpong { iters, .. } => (iters, 100_000, 20_000, 64 << 20),
            Self::Stream { iters, .. } => (iters, 2_000_000, 200_000, 512 << 20),
        };
        let sweep = self.common().sweep;
        given.unwrap_or_else(|| number(if sweep { most.min(bytes / size).max(64) } else { alone }))
    }
}

/// The powers of two that are not larger.
fn sizes(largest: u64) -> impl Iterator<Item = u64> {
    iter::successors(Some(1), |size: &u64| size.checked_mul(2))
        .take_while(move |&size| size <= largest)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Arguments;

    fn commands(arguments: &str) -> Vec<Command> {
        let arguments = ["cqperf"].into_iter().chain(arguments.split_whitespace());
        Arguments::try_parse_from(arguments).unwrap().commands().unwrap()
    }

    fn iters(commands: &[Command]) -> Vec<u64> {
        commands.iter().map(|command| command.iters.get()).collect()
    }

    #[test]
    fn in_a_sweep_long_messages_are_fewer() {
        for flow in ["pingpong", "stream"] {
            let sweep = commands(&format!("{flow} --sweep --op write"));
            assert_eq!(sweep.len(), 21);
            assert!(iters(&sweep).is_sorted_by(|more, fewer| more >= fewer));
            assert!(sweep[0].iters > sweep[20].iters);
            assert!(sweep.iter().all(|command| command.op == Op::Write));
        }
    }

    #[test]
    fn what_is_said_is_what_is_measured() {
        assert_eq!(iters(&commands("stream --sweep --iters 7 --size 5")), [7, 7, 7]);
        let [alone] = commands("pingpong --op faa --memory heap")[..] else { panic!("one job") };
        assert_eq!((alone.size.get(), alone.iters.get()), (8, 100_000));
        assert_eq!((alone.op, alone.memory), (Op::Faa, MemoryKind::Heap));
        assert_eq!(commands("").len(), 3);
    }

    #[test]
    fn the_largest_size_has_powers_of_two_below() {
        assert_eq!(sizes(u64::MAX).last(), Some(1 << 63));
        assert_eq!(sizes(1).collect::<Vec<_>>(), [1]);
    }
}
