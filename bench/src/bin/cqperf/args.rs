//! The command line.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};

use bench::transport::MemoryKind;
use bench::transport::loopback::Loopback;
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

use crate::exit::Exit;
use crate::help::{ABOUT, DETAILS};
use crate::host;
use crate::job::{BATCH, DEFAULT, Flow, Job, Op, SIZE, WORD, name};
use crate::report::Style;

/// What was asked for.
#[derive(Parser)]
#[command(name = "cqperf", version, about = ABOUT, after_help = DETAILS)]
#[command(disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    measure: Option<Measure>,

    /// The transport: loop is the loopback device in user space, verbs a device of libibverbs
    #[arg(long, global = true, display_order = LAST)]
    #[arg(value_enum, default_value_t = TransportName::Loop)]
    pub transport: TransportName,

    /// The device, instead of the first one
    #[arg(long, global = true, display_order = LAST, value_name = "NAME")]
    pub device: Option<String>,

    /// The index in the port's GID table, for verbs, instead of the most suitable one
    #[arg(long, global = true, display_order = LAST, value_name = "N")]
    pub gid: Option<u8>,

    /// Wait for another process, on port 18520 of all IPv4 addresses unless others are given
    #[arg(long, global = true, display_order = LAST, value_name = "[HOST:]PORT")]
    #[arg(num_args = 0..=1, default_missing_value = "")]
    #[arg(value_parser = host::to_listen, conflicts_with_all = ["connect", "json"])]
    listen: Option<String>,

    /// Measure with the process that listens there; the port is 18520 if none is given
    #[arg(long, global = true, display_order = LAST, value_name = "HOST[:PORT]")]
    #[arg(value_parser = host::to_connect)]
    connect: Option<String>,

    /// Measure with two processes: with 2, cqperf starts the other one
    #[arg(long, global = true, display_order = LAST, value_name = "N")]
    #[arg(default_value_t = 1, value_parser = value_parser!(u8).range(1..=2))]
    #[arg(conflicts_with_all = ["listen", "connect"])]
    processes: u8,

    /// Be the process that another cqperf has started
    #[arg(long, global = true, hide = true)]
    #[arg(conflicts_with_all = ["listen", "connect", "json"])]
    pub started: bool,

    /// Print JSON: an object, or an array without a command and for a sweep. Latencies are in nanoseconds
    #[arg(long, global = true, display_order = LAST)]
    pub json: bool,
}

/// The transports that there are. A variant with a docstring would make the help twice as long.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TransportName {
    Loop,
    Verbs,
}

/// Behind what the commands have of their own.
const LAST: usize = 100;

/// A job, or one for each size of a sweep.
#[derive(Subcommand)]
enum Measure {
    /// Exchange messages one at a time, and measure latency
    #[command(after_help = DETAILS)]
    Pingpong {
        #[command(flatten)]
        common: Common,
    },

    /// Move messages one way, and measure throughput
    #[command(after_help = DETAILS)]
    Stream {
        #[command(flatten)]
        common: Common,

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
struct Common {
    /// Round trips, messages or operations [default: 100000 of a pingpong, 2000000 of a stream; in a sweep fewer, the
    /// longer the messages]
    #[arg(long, value_name = "N")]
    iters: Option<NonZeroU64>,

    /// The operation that moves messages
    #[arg(long, value_enum, default_value_t = Op::Send)]
    op: Op,

    /// The memory of the messages: allocated by the transport, or by the program and registered
    #[arg(long, value_name = "WHOSE", value_enum, default_value_t = MemoryKind::Fabric)]
    memory: MemoryKind,

    /// Bytes of a message, at least one: in none, nothing could be checked [default: 64; 8 for atomics]
    #[arg(long, value_name = "BYTES")]
    size: Option<NonZeroU64>,

    /// Measure sizes 1, 2, 4, … up to --size, or to 1 MiB
    #[arg(long)]
    sweep: bool,

    /// Draw latency and bandwidth over size into this SVG file
    #[arg(long, value_name = "FILE", requires = "sweep")]
    plot: Option<PathBuf>,

    /// Sleep on completion channels, instead of polling all the time
    #[arg(long)]
    events: bool,
}

/// Where the two ends are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// Both are here.
    Here,
    /// This one serves one that connects.
    Listen(&'a str),
    /// The other one listens.
    Connect(&'a str),
    /// This one starts the other one.
    Start,
    /// The other one has started this one.
    Started,
}

impl Arguments {
    fn common(&self) -> Option<&Common> {
        let (Measure::Pingpong { common } | Measure::Stream { common, .. }) =
            self.measure.as_ref()?;
        Some(common)
    }

    /// What to measure.
    pub fn jobs(&self) -> Result<Vec<Job>, Exit> {
        let (flow, common, [batch, signal_every]) = match &self.measure {
            None => return Ok(DEFAULT.to_vec()),
            Some(Measure::Pingpong { common }) => (Flow::Pingpong, common, [BATCH; 2]),
            Some(Measure::Stream { common, batch, signal_every }) => {
                (Flow::Stream, common, [*batch, *signal_every])
            }
        };
        let &Common { op, memory, size, sweep, events, iters: given, .. } = common;
        let job = |size| {
            let iters = given.unwrap_or_else(|| iters(flow, sweep.then_some(size)));
            Job { flow, op, memory, events, size, iters, batch, signal_every }
        };
        let usual = if op.is_atomic() { WORD } else { SIZE };
        match size {
            _ if sweep && op.is_atomic() => {
                Err(Exit::usage(format!("--sweep with --op {}: an atomic has one size", name(op))))
            }
            largest if sweep => {
                Ok(sizes(largest.map_or(1 << 20, NonZeroU64::get)).map(job).collect())
            }
            size => Ok(vec![job(size.unwrap_or(usual))]),
        }
    }

    /// How it is reported.
    pub fn style(&self) -> Style {
        match self.common() {
            None => Style::Jobs,
            Some(common) if common.sweep => Style::Sizes,
            Some(_) => Style::One,
        }
    }

    /// Where the plot goes.
    pub fn plot(&self) -> Option<&Path> {
        self.common()?.plot.as_deref()
    }

    /// Where the two ends are.
    pub fn place(&self) -> Result<Place<'_>, Exit> {
        let looped = self.transport == TransportName::Loop;
        match (&self.listen, &self.connect) {
            (None, None) if self.started => Ok(Place::Started),
            (None, None) if self.processes == 2 => Ok(Place::Start),
            (None, None) => Ok(Place::Here),
            _ if looped => Err(Exit::usage(
                "--listen and --connect are for --transport verbs: the loopback reaches the \
                 processes of this machine, so choose --processes 2",
            )),
            (Some(_), _) if self.measure.is_some() => Err(Exit::usage(
                "--listen takes no command: the process that connects says what is measured",
            )),
            (Some(host), _) => Ok(Place::Listen(host)),
            (None, Some(host)) => Ok(Place::Connect(host)),
        }
    }

    /// How a process that is started reaches the same device.
    pub fn of_device(&self) -> Vec<String> {
        let transport = Some(format!("--transport={}", name(self.transport)));
        let device = self.device.as_ref().map(|device| format!("--device={device}"));
        let gid = self.gid.map(|gid| format!("--gid={gid}"));
        [transport, device, gid].into_iter().flatten().collect()
    }

    /// The loopback's device.
    pub fn loopback(&self) -> Result<&str, Exit> {
        match self.gid {
            Some(_) => Err(Exit::usage(
                "--gid is for --transport verbs: all GIDs of the loopback are one port",
            )),
            None => Ok(self.device.as_deref().unwrap_or(Loopback::DEVICE)),
        }
    }
}

/// How many, where it is not said: in a sweep, of messages of this size, what takes about a second or less.
fn iters(flow: Flow, swept: Option<NonZeroU64>) -> NonZeroU64 {
    let (alone, most, bytes) = match flow {
        Flow::Pingpong => (100_000, 20_000, 64 << 20),
        Flow::Stream => (2_000_000, 200_000, 512 << 20),
    };
    let count = swept.map_or(alone, |size| most.min(bytes / size).max(64));
    NonZeroU64::new(count).expect("there are 64 at least")
}

/// The powers of two that are not larger.
fn sizes(largest: u64) -> impl Iterator<Item = NonZeroU64> {
    let powers = (0..u64::BITS).filter_map(|exponent| NonZeroU64::new(1 << exponent));
    powers.take_while(move |size| size.get() <= largest)
}

/// clap's message up to its first blank line, without the prefix that all errors get here.
pub fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines: Vec<_> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(arguments: &str) -> Vec<Job> {
        let arguments = ["cqperf"].into_iter().chain(arguments.split_whitespace());
        Arguments::try_parse_from(arguments).unwrap().jobs().unwrap()
    }

    fn counts(jobs: &[Job]) -> Vec<u64> {
        jobs.iter().map(|job| job.iters.get()).collect()
    }

    #[test]
    fn in_a_sweep_long_messages_are_fewer() {
        for flow in ["pingpong", "stream"] {
            let sweep = jobs(&format!("{flow} --sweep --op write"));
            assert_eq!(sweep.len(), 21);
            assert!(counts(&sweep).is_sorted_by(|more, fewer| more >= fewer));
            assert!(sweep[0].iters > sweep[20].iters);
            assert!(sweep.iter().all(|job| job.op == Op::Write));
        }
        assert_eq!(sizes(u64::MAX).last().map(NonZeroU64::get), Some(1 << 63));
    }

    #[test]
    fn what_is_said_is_what_is_measured() {
        assert_eq!(counts(&jobs("stream --sweep --iters 7 --size 5")), [7, 7, 7]);
        let [alone] = jobs("pingpong --op faa --memory heap")[..] else { panic!("one job") };
        assert_eq!((alone.size.get(), alone.iters.get()), (8, 100_000));
        assert_eq!((alone.op, alone.memory), (Op::Faa, MemoryKind::Heap));
        assert_eq!(jobs(""), DEFAULT);
    }
}
