//! The command line.

use std::slice;

use bench::transport::loopback::Loopback;
use clap::{Error as ClapError, Parser, ValueEnum};

use crate::command::{Command, DEFAULT, Unfit};
use crate::host::Host;

const ABOUT: &str = "\
Measures two queue pairs that exchange messages through completion queues, and checks every byte.

Without a command: a ping-pong of 64-byte messages, polled, then by events, then a stream.";

/// What all helps end with.
pub const DETAILS: &str = "\
Each end has a thread, and a core where there are two. Every byte of every message is checked against the
message's number and time stamp, so stale, torn and misplaced ones fail.

Latencies are of one way: half a round trip of the ping-pong, from posting to polling; for a stream, from
when the sender begins to write a batch to the poll that finds the message, so queueing counts. Messages
below 16 bytes have no room for a time stamp: streams of them have no latencies (null in JSON). Rates are
those of the whole loop, writing and checking included; a round trip counts as two messages.

Two processes: one listens, on its host, and serves one run; the other one connects to it by TCP, says what
is measured, and reports. It is the client of the ping-pong and receives the stream, since the receiver
measures. The latencies of a stream would compare two clocks, so there are none. Each process has its own
--transport, --device and --gid. Anybody who reaches the port can start the run: listen where you trust. What
connects and is no cqperf is turned away, in a line on stderr, and the listener waits on.

Exit status:
  0    every message was right
  1    a message was wrong, a request failed, the other process was lost, or the report could not be written
  2    usage
  3    the transport has no device
  130  interrupted: what was measured until then is reported, as partial (a second signal ends at once)

Examples:
  cqperf
  cqperf pingpong --size 4096 --events
  cqperf stream --iters 10000000 --batch 64 --signal-every 16 --json
  cqperf --transport verbs --device mlx5_0 --listen
  cqperf --transport verbs --connect 192.0.2.1 pingpong --size 4096";

/// What was asked for.
#[derive(Parser)]
#[command(name = "cqperf", version, about = ABOUT, after_help = DETAILS)]
#[command(disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// Over which transport; loop is the loopback device in user space, verbs a device of libibverbs
    #[arg(long, global = true, display_order = LAST)]
    #[arg(value_enum, default_value_t = TransportName::Loop)]
    pub transport: TransportName,

    /// On which device, instead of the first one
    #[arg(long, global = true, display_order = LAST, value_name = "NAME")]
    pub device: Option<String>,

    /// By which entry of the port's GID table, for verbs, instead of the one that suits best
    #[arg(long, global = true, display_order = LAST, value_name = "N")]
    pub gid: Option<u8>,

    /// Be one end for a process that connects, on port 18520 of all IPv4 addresses unless others are given
    #[arg(long, global = true, display_order = LAST, value_name = "[HOST:]PORT")]
    #[arg(num_args = 0..=1, default_missing_value = "")]
    #[arg(value_parser = Host::to_listen, conflicts_with_all = ["connect", "json"])]
    listen: Option<Host>,

    /// Measure with the process that listens there; the port is 18520 if none is given
    #[arg(long, global = true, display_order = LAST, value_name = "HOST[:PORT]")]
    #[arg(value_parser = Host::to_connect)]
    connect: Option<Host>,

    /// Print JSON: an object, or an array of three without a command. Latencies are in nanoseconds
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

/// Where the two ends are.
pub enum Place<'a> {
    /// Both are here.
    Here,
    /// This one serves one that connects.
    Listen(&'a Host),
    /// The other one listens.
    Connect(&'a Host),
}

impl Arguments {
    /// What to measure.
    pub fn commands(&self) -> &[Command] {
        self.command.as_ref().map_or(&DEFAULT, slice::from_ref)
    }

    /// Whether several jobs are reported.
    pub const fn several(&self) -> bool {
        self.command.is_none()
    }

    /// Where the two ends are.
    pub fn place(&self) -> Result<Place<'_>, Usage> {
        let looped = self.transport == TransportName::Loop;
        match (&self.listen, &self.connect) {
            (None, None) => Ok(Place::Here),
            _ if looped => Err(Usage::OneProcess),
            (Some(_), _) if self.command.is_some() => Err(Usage::Told),
            (Some(host), _) => Ok(Place::Listen(host)),
            (None, Some(host)) => Ok(Place::Connect(host)),
        }
    }

    /// The loopback's device.
    pub fn loopback(&self) -> Result<&str, Usage> {
        match self.gid {
            Some(_) => Err(Usage::NoGids),
            None => Ok(self.device.as_deref().unwrap_or(Loopback::DEVICE)),
        }
    }
}

/// What can't be measured.
#[derive(Debug, thiserror::Error)]
pub enum Usage {
    /// clap says no.
    #[error("{}", one_line(.0))]
    Syntax(#[from] ClapError),
    /// Nor does the device.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The loopback is asked for more than it has.
    #[error(
        "--listen and --connect need a device that another process can reach: the loopback's is \
         of one process, so choose --transport verbs"
    )]
    OneProcess,
    /// The loopback is asked for a GID.
    #[error("--gid is for --transport verbs: the loopback has no GIDs")]
    NoGids,
    /// A listener was given a job.
    #[error("--listen takes no command: the process that connects says what is measured")]
    Told,
    /// The program was built without verbs.
    #[cfg(not(feature = "verbs"))]
    #[error(
        "this cqperf was built without verbs: build it by \
         `cargo run --release -p bench --features verbs --bin cqperf -- --transport verbs`"
    )]
    NoVerbs,
}

/// clap's message up to its first blank line, without the prefix that all errors get here.
fn one_line(error: &ClapError) -> String {
    let text = error.render().to_string();
    let lines: Vec<&str> =
        text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}
