//! `cqperf`: the program to run first. Two queue pairs exchange messages through completion queues; every
//! byte is checked, and what it took is measured.
//!
//! Each module uses modules of its own row and of the rows below it.
//!
//! | module | owns |
//! |---|---|
//! | [`args`], [`measure`](mod@measure), [`usage`] | the command line |
//! | [`remote`] | one measurement of two processes, each with one end |
//! | [`run`] | one measurement from set-up to result: two ends, two threads |
//! | [`plot`], [`report`], [`progress`] | how counts and latencies are shown |
//! | [`job`] | what is measured, whether the device can do it, and the outcome |
//! | [`pingpong`], [`stream`], [`fetch`] | what the ends do, over the seams of cq-core |
//! | [`side`] | one end at work: waiting for completions, polling or asleep |
//! | [`control`] | what the ends share: clock, progress, failure |
//! | [`link`], [`message`] | the connection of two processes, and their messages |
//! | [`host`], [`started`] | how two processes connect: by an address, or one has started the other |
//! | [`command`], [`op`] | what can be measured, as data |
//! | [`shape`], [`sends`] | the depth of the queues, and which requests are signaled |
//! | [`payload`], [`stats`] | the contents of messages and their check, counts and latencies |
//! | [`interrupt`] | when to leave |

use std::error::Error as StdError;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;

use bench::transport::loopback::Loopback;
#[cfg(feature = "verbs")]
use bench::transport::verbs::Verbs;
use bench::transport::{SetUpError, Transport};
use clap::Parser;
use cq_core::causes::Causes;

use crate::args::{Arguments, Place, TransportName};
use crate::command::Command;
use crate::host::Unreachable;
use crate::interrupt::{INTERRUPTED, Stop};
use crate::job::{Job, Outcome};
use crate::plot::{Plot, PlotError};
use crate::remote::Peer;
use crate::report::Record;
use crate::started::Started;
use crate::usage::Usage;

mod args;
mod command;
mod control;
#[cfg(test)]
mod faulty;
mod fetch;
mod host;
mod interrupt;
mod job;
mod link;
mod measure;
mod message;
mod op;
mod payload;
mod pingpong;
mod plot;
mod progress;
mod remote;
mod report;
mod run;
mod sends;
mod shape;
mod side;
mod started;
mod stats;
mod stream;
mod usage;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Usage(#[from] Usage),
    #[error("the transport is not available")]
    NoDevice(#[source] Box<dyn StdError>),
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    #[error(transparent)]
    Remote(#[from] remote::Error),
    #[error("{0}")]
    Failed(String),
    #[error("cannot start the other process")]
    Start(#[source] io::Error),
    /// The process that has started this one knows why.
    #[error("exit status {0}")]
    Told(u8),
    #[error("interrupted: the report is of what was measured until then")]
    Interrupted,
    #[error("cannot watch for signals")]
    Signals(#[from] ctrlc::Error),
    #[error("cannot print")]
    Output(#[from] io::Error),
    #[error(transparent)]
    Plot(#[from] PlotError),
}

impl Error {
    const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Remote(remote::Error::Unfit(_)) => 2,
            Self::NoDevice(_) => 3,
            Self::Told(code) => *code,
            Self::Interrupted | Self::Remote(remote::Error::Interrupted) => INTERRUPTED,
            Self::SetUp(_)
            | Self::Unreachable(_)
            | Self::Remote(_)
            | Self::Failed(_)
            | Self::Start(_)
            | Self::Signals(_)
            | Self::Output(_)
            | Self::Plot(_) => 1,
        }
    }
}

fn main() -> ExitCode {
    match cqperf() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !matches!(error, Error::Told(_)) {
                // `eprintln!` would panic where stderr is closed as well.
                let _ = writeln!(io::stderr(), "error: {}", Causes(&error));
            }
            ExitCode::from(error.code())
        }
    }
}

fn cqperf() -> Result<(), Error> {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(help) if !help.use_stderr() => return Ok(print(&help.render().to_string())?),
        Err(wrong) => return Err(Usage::Syntax(wrong).into()),
    };
    let place = arguments.place()?;
    match arguments.transport {
        TransportName::Loop => {
            let device = arguments.loopback()?;
            let loopback = Loopback::named(device);
            start(&loopback.map_err(|why| no_device(place, why))?, &arguments, place)
        }
        #[cfg(feature = "verbs")]
        TransportName::Verbs => {
            let verbs = Verbs::open(arguments.device.as_deref(), arguments.gid);
            start(&verbs.map_err(|why| no_device(place, why))?, &arguments, place)
        }
        #[cfg(not(feature = "verbs"))]
        TransportName::Verbs => Err(Usage::NoVerbs.into()),
    }
}

fn no_device(place: Place<'_>, why: impl StdError + 'static) -> Error {
    let error = Error::NoDevice(Box::new(why));
    if !matches!(place, Place::Started) {
        return error;
    }
    if let Ok(connection) = started::connection() {
        remote::decline(connection, &Causes(&error));
    }
    Error::Told(error.code())
}

fn start<T: Transport>(
    transport: &T,
    arguments: &Arguments,
    place: Place<'_>,
) -> Result<(), Error> {
    let job = |command: &Command| Job::new(command, &transport.limits()).map_err(Usage::from);
    if !matches!(place, Place::Listen(_) | Place::Started) {
        // All, before one is begun, or anybody is bothered.
        arguments.commands()?.iter().try_for_each(|command| job(command).map(drop))?;
    }
    match place {
        Place::Here => {
            let stop = Stop::on_signals()?;
            measure(transport, arguments, 1, |command| Ok(job(command)?.run(transport, &stop)?))
        }
        Place::Listen(host) => {
            let stop = Stop::on_signals()?;
            let listener = host.listen()?;
            print(&format!("listening on {}\n", listener.local_addr()?))?;
            Ok(Peer::receive(transport, listener, &stop)?.serve()?)
        }
        Place::Connect(host) => {
            // Nobody could look for an interrupt while this waits: the signal's own action ends it.
            let socket = host.connect()?;
            measure_with(transport, arguments, socket, &Stop::on_signals()?)
        }
        Place::Start => {
            let stop = Stop::on_signals()?;
            let started = Started::new(&arguments.of_device(), transport.environment());
            let (started, socket) = started.map_err(Error::Start)?;
            let measured = measure_with(transport, arguments, socket, &stop);
            part(measured, started, &stop)
        }
        Place::Started => {
            let stop = Stop::on_signals()?;
            let connection = started::connection().map_err(Error::Start)?;
            let served = Peer::meet(transport, connection, &stop).and_then(|peer| peer.serve());
            served.map_err(|error| Error::Told(Error::from(error).code()))
        }
    }
}

/// Measures with the process at the other end of this connection.
fn measure_with<T: Transport>(
    transport: &T,
    arguments: &Arguments,
    socket: impl Into<OwnedFd>,
    stop: &Arc<Stop>,
) -> Result<(), Error> {
    let peer = Peer::meet(transport, socket, stop)?;
    let measured = measure(transport, arguments, 2, |command| Ok(peer.measure(command)?));
    peer.close(&measured);
    measured
}

/// Lets the process go that was started; what it died of is part of what went wrong.
fn part(measured: Result<(), Error>, started: Started, stop: &Stop) -> Result<(), Error> {
    let ended = started.end().map_err(Error::Start)?;
    let fault = |what| Error::Failed(format!("the process that was started {what}"));
    match measured {
        Ok(()) => ended.fault().map_or(Ok(()), |what| Err(fault(what))),
        // An interrupt reaches both processes: the other one may have been the first to leave.
        Err(Error::Remote(_)) if stop.interrupted() => Err(Error::Interrupted),
        Err(error @ (Error::Failed(_) | Error::Remote(_))) => Err(match ended.death() {
            Some(what) => {
                Error::Failed(format!("{}; the process that was started {what}", Causes(&error)))
            }
            None => error,
        }),
        Err(error) => Err(error),
    }
}

/// Measures one job after the other until one fails, and reports.
fn measure<T: Transport>(
    transport: &T,
    arguments: &Arguments,
    processes: u32,
    run: impl Fn(&Command) -> Result<Outcome, Error>,
) -> Result<(), Error> {
    let plot = arguments.plot().map(Plot::create).transpose()?;
    let mut records = Vec::new();
    let ended = arguments.commands()?.iter().try_for_each(|command| {
        let outcome = run(command)?;
        records.push(Record::new(transport, processes, &outcome));
        judge(&outcome)
    });
    let style = arguments.style();
    let shown = if arguments.json { report::json } else { report::table };
    print(&shown(&records, style))?;
    plot.map_or(Ok(()), |plot| plot.write(&records))?;
    ended
}

fn judge(outcome: &Outcome) -> Result<(), Error> {
    match outcome.error() {
        Some(failure) => Err(Error::Failed(format!("{}: {failure}", outcome.job))),
        None if outcome.partial() => Err(Error::Interrupted),
        None => Ok(()),
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use bench::transport::Attempt;
    use cq_core::cq::WaitError;
    use cq_core::transport::{PollError, PostError, Refused};
    use cq_core::wc::{Wc, WcStatus};

    use super::*;
    use crate::control::{EndFailure, Failure};
    use crate::host::HostError;
    use crate::link::LinkError;

    /// Whether each error says its own sentence only: what a cause says is said by the cause.
    fn says_its_own_only(error: &dyn StdError) -> bool {
        error.source().is_none_or(|cause| {
            !error.to_string().contains(&cause.to_string()) && says_its_own_only(cause)
        })
    }

    #[test]
    fn a_cause_is_told_once() {
        let refused = || PostError { posted: 0, why: Refused::QueueFull };
        let failed = Wc::new(1, WcStatus::REM_OP_ERR, 2);
        let io = || io::Error::other("no luck");
        let no_port = "x".parse::<u16>().unwrap_err();
        let failure = Failure::from(refused());
        let errors: [Box<dyn StdError>; 10] = [
            Box::new(failed.result().map_err(Failure::from).unwrap_err()),
            Box::new(Failure::from(WaitError::from(PollError::Device(5)))),
            Box::new(EndFailure { end: "client", why: failure }),
            Box::new(Err::<(), _>(refused()).attempt("post").unwrap_err()),
            Box::new(HostError::from(no_port)),
            Box::new(remote::Error::from(LinkError::Closed)),
            Box::new(Error::NoDevice(io().into())),
            Box::new(Error::Start(io())),
            Box::new(Error::from(io())),
            Box::new(Error::from(ctrlc::Error::System(io()))),
        ];
        for error in errors {
            let line = Causes(&*error).to_string();
            assert!(error.source().is_some() && says_its_own_only(&*error), "{line}");
        }
    }
}
