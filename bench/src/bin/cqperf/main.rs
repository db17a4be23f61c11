//! `cqperf`: the program to run first. Two queue pairs exchange messages through completion queues; every
//! byte is checked, and what it took is measured.
//!
//! Each module uses modules of its own row and of the rows below it.
//!
//! | module | owns |
//! |---|---|
//! | [`args`], [`help`] | the command line |
//! | [`remote`] | one measurement of two ends, each with a thread, or a process, of its own |
//! | [`plot`], [`report`], [`progress`] | how counts and latencies are shown |
//! | [`pingpong`], [`requester`], [`receiver`] | what the ends do, over the seams of cq-core |
//! | [`side`] | one end at work: waiting for completions, polling or asleep |
//! | [`control`] | what an end shares with the rest of its process: clock, progress |
//! | [`link`] | the connection of two ends, and their messages |
//! | [`host`], [`started`] | how two processes connect: by an address, or one has started the other |
//! | [`job`] | what can be measured, whether a device can do it, and the outcome |
//! | [`sends`] | which requests are signaled |
//! | [`payload`], [`stats`] | the contents of messages and their check, counts and latencies |
//! | [`exit`], [`interrupt`] | how cqperf ends, and when to leave |

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::thread;

use bench::Failure;
use bench::transport::loopback::{self, Loopback};
#[cfg(feature = "verbs")]
use bench::transport::verbs::Verbs;
use bench::transport::{Attempt, Transport};
use clap::Parser;
use cq_verbs::causes::Causes;

use crate::args::{Arguments, Place, TransportName};
use crate::exit::{Exit, NO_DEVICE};
use crate::interrupt::Stop;
use crate::job::Outcome;
use crate::link::{LinkError, SILENCE};
use crate::plot::Plot;
use crate::remote::Peer;
use crate::report::Report;
use crate::started::Started;

mod args;
mod control;
mod exit;
#[cfg(test)]
mod faulty;
mod help;
mod host;
mod interrupt;
mod job;
mod link;
mod payload;
mod pingpong;
mod plot;
mod progress;
mod receiver;
mod remote;
mod report;
mod requester;
mod sends;
mod side;
mod started;
mod stats;

fn main() -> ExitCode {
    let (is_heard, ended) = match Arguments::try_parse() {
        // The process that has started this one says why.
        Ok(arguments) => (!arguments.started, run(&arguments)),
        Err(help) if !help.use_stderr() => (true, print(&help.render().to_string())),
        Err(wrong) => (true, Err(Exit::usage(args::one_line(&wrong)))),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => {
            if is_heard {
                // `eprintln!` would panic where stderr is closed as well.
                let _ = writeln!(io::stderr(), "error: {exit}");
            }
            ExitCode::from(exit.code)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Exit> {
    let place = arguments.place()?;
    match arguments.transport {
        TransportName::Loop => {
            let loopback = Loopback::named(arguments.loopback()?);
            start(&loopback.map_err(|why| no_device(place, why))?, arguments, place)
        }
        #[cfg(feature = "verbs")]
        TransportName::Verbs => {
            let verbs = Verbs::open(arguments.device.as_deref(), arguments.gid);
            start(&verbs.map_err(|why| no_device(place, why))?, arguments, place)
        }
        #[cfg(not(feature = "verbs"))]
        TransportName::Verbs => Err(Exit::usage(
            "this cqperf was built without verbs: build it by \
             `cargo run --release -p bench --features verbs --bin cqperf -- --transport verbs`",
        )),
    }
}

fn no_device(place: Place<'_>, why: impl Into<Failure>) -> Exit {
    let why = format!("the transport is not available: {}", Causes(&*why.into()));
    let exit = Exit { code: NO_DEVICE, why: why.into() };
    if place == Place::Started {
        // If it can't be told, the other process will miss this one.
        let _ = started::connection().map(|connection| remote::decline(connection, &exit));
    }
    exit
}

fn start<T: Transport>(transport: &T, arguments: &Arguments, place: Place<'_>) -> Result<(), Exit> {
    if !matches!(place, Place::Listen(_) | Place::Started) {
        // All, before one is begun, or anybody is bothered.
        arguments.jobs()?.iter().try_for_each(|job| job.fit(&transport.about().limits))?;
    }
    match place {
        Place::Connect(host) => {
            // Nobody could look for an interrupt while this waits: the signal's own action ends it.
            let socket = host::connect(host)?;
            measure(transport, arguments, socket.into(), 2, &signals()?)
        }
        Place::Here => {
            let stop = signals()?;
            let (here, there) = UnixStream::pair()?;
            thread::scope(|scope| {
                // Why it fails, it tells the one that measures.
                scope.spawn(|| {
                    Peer::meet(transport, there, &stop, SILENCE).and_then(|peer| peer.serve())
                });
                measure(transport, arguments, here.into(), 1, &stop)
            })
        }
        Place::Listen(host) => {
            let stop = signals()?;
            let listener = host::listen(host)?;
            print(&format!("listening on {}\n", listener.local_addr()?))?;
            Peer::receive(transport, listener, &stop)?.serve()
        }
        Place::Start => {
            let stop = signals()?;
            let looped = arguments.transport == TransportName::Loop;
            let environment = looped.then(loopback::environment).flatten();
            let started = Started::new(&arguments.of_device(), environment);
            let (started, socket) = started.attempt("start the other process")?;
            let measured = measure(transport, arguments, socket.into(), 2, &stop);
            part(measured, started.end()?, &stop)
        }
        Place::Started => {
            let stop = signals()?;
            Peer::meet(transport, started::connection()?, &stop, SILENCE)?.serve()
        }
    }
}

fn signals() -> Result<Arc<Stop>, Exit> {
    Ok(Stop::on_signals().attempt("watch for signals")?)
}

/// What the process died of that was started is part of what went wrong.
fn part(measured: Result<(), Exit>, ended: Option<ExitStatus>, stop: &Stop) -> Result<(), Exit> {
    let (is_death, how) = match ended {
        None => (true, "did not leave, and was killed".to_owned()),
        Some(status) if status.signal().is_some() => (true, format!("died: {status}")),
        Some(status) => (false, format!("ended: {status}")),
    };
    let how = format!("the process that was started {how}");
    match measured {
        Ok(()) if ended.is_some_and(|status| status.success()) => Ok(()),
        Ok(()) => Err(Exit::failed(how)),
        // An interrupt reaches both processes: the other one may have been the first to leave.
        Err(exit) if exit.why.is::<LinkError>() && stop.interrupted() => Err(Exit::interrupted()),
        Err(exit) if exit.code == 1 && is_death => Err(Exit::failed(format!("{exit}; {how}"))),
        Err(exit) => Err(exit),
    }
}

/// Measures one job after the other, with the process or thread at the other end of this connection, until one fails;
/// reports.
fn measure<T: Transport>(
    transport: &T,
    arguments: &Arguments,
    socket: OwnedFd,
    processes: u32,
    stop: &Arc<Stop>,
) -> Result<(), Exit> {
    let peer = Peer::meet(transport, socket, stop, SILENCE)?;
    let plot = arguments.plot().map(Plot::create).transpose();
    let mut report = Report {
        about: transport.about(),
        processes,
        style: arguments.style(),
        outcomes: Vec::new(),
    };
    peer.close(plot.and_then(|plot| {
        let ended = arguments.jobs()?.iter().try_for_each(|job| {
            report.outcomes.push(peer.measure(job, processes == 1)?);
            report.outcomes.last().map_or(Ok(()), judge)
        });
        let shown = print(&if arguments.json { report.json() } else { report.table() });
        let shown = shown.and_then(|()| plot.map_or(Ok(()), |plot| plot.write(&report)));
        // What went wrong with a job comes first.
        ended.and(shown)
    }))
}

fn judge(outcome: &Outcome) -> Result<(), Exit> {
    match outcome.error() {
        Some(failure) => Err(Exit::failed(format!("{}: {failure}", outcome.job))),
        None if outcome.partial() => Err(Exit::interrupted()),
        None => Ok(()),
    }
}

fn print(text: &str) -> Result<(), Exit> {
    let mut stdout = io::stdout().lock();
    let printed = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    Ok(printed.attempt("print")?)
}
