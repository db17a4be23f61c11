//! The command line.

use std::path::Path;

use bench::transport::loopback::Loopback;
use clap::{Parser, ValueEnum, value_parser};

use crate::command::{Command, DEFAULT};
use crate::host::Host;
use crate::measure::Measure;
use crate::report::Style;
use crate::started::OPTION;
use crate::usage::{ABOUT, DETAILS, Usage};

/// What was asked for.
#[derive(Parser)]
#[command(name = "cqperf", version, about = ABOUT, after_help = DETAILS)]
#[command(disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    measure: Option<Measure>,

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

    /// Measure with two processes: with 2, cqperf starts the other one
    #[arg(long, global = true, display_order = LAST, value_name = "N")]
    #[arg(default_value_t = 1, value_parser = value_parser!(u8).range(1..=2))]
    #[arg(conflicts_with_all = ["listen", "connect"])]
    processes: u8,

    /// Be the process that another cqperf has started
    #[arg(long = &OPTION[2..], global = true, hide = true)]
    #[arg(conflicts_with_all = ["listen", "connect", "json"])]
    started: bool,

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

/// Where the two ends are.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// Both are here.
    Here,
    /// This one serves one that connects.
    Listen(&'a Host),
    /// The other one listens.
    Connect(&'a Host),
    /// This one starts the other one.
    Start,
    /// The other one has started this one.
    Started,
}

impl Arguments {
    /// What to measure.
    pub fn commands(&self) -> Result<Vec<Command>, Usage> {
        self.measure.as_ref().map_or_else(|| Ok(DEFAULT.to_vec()), Measure::commands)
    }

    /// How it is reported.
    pub fn style(&self) -> Style {
        match &self.measure {
            None => Style::Jobs,
            Some(measure) if measure.common().sweep => Style::Sizes,
            Some(_) => Style::One,
        }
    }

    /// Where the plot goes.
    pub fn plot(&self) -> Option<&Path> {
        self.measure.as_ref().and_then(|measure| measure.common().plot.as_deref())
    }

    /// Where the two ends are.
    pub fn place(&self) -> Result<Place<'_>, Usage> {
        let looped = self.transport == TransportName::Loop;
        match (&self.listen, &self.connect) {
            (None, None) if self.started => Ok(Place::Started),
            (None, None) if self.processes == 2 => Ok(Place::Start),
            (None, None) => Ok(Place::Here),
            _ if looped => Err(Usage::NoHosts),
            (Some(_), _) if self.measure.is_some() => Err(Usage::Told),
            (Some(host), _) => Ok(Place::Listen(host)),
            (None, Some(host)) => Ok(Place::Connect(host)),
        }
    }

    /// How a process that is started reaches the same device.
    pub fn of_device(&self) -> Vec<String> {
        let transport = self.transport.to_possible_value();
        let transport = transport.map(|name| ("--transport", name.get_name().to_owned()));
        let device = self.device.as_ref().map(|device| ("--device", device.clone()));
        let gid = self.gid.map(|gid| ("--gid", gid.to_string()));
        let options = [transport, device, gid].into_iter().flatten();
        options.map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// The loopback's device.
    pub fn loopback(&self) -> Result<&str, Usage> {
        match self.gid {
            Some(_) => Err(Usage::NoGids),
            None => Ok(self.device.as_deref().unwrap_or(Loopback::DEVICE)),
        }
    }
}
