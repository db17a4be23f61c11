//! `cqperf`: the program to run first. Two queue pairs exchange messages through completion queues; every
//! byte is checked, and what it took is measured.
//!
//! | module | owns |
//! |---|---|
//! | [`args`] | the command line, and what can be measured on a device |
//! | [`job`] | one measurement from set-up to result: two ends, two threads |
//! | [`pingpong`], [`stream`] | what the ends do, over the seams of cq-core |
//! | [`side`] | one end at work: waiting for completions, awake or asleep |
//! | [`payload`] | what messages carry, and whether it has arrived |
//! | [`control`], [`interrupt`] | what the ends share: clock, progress, failure, when to leave |
//! | [`stats`], [`progress`], [`report`] | counts and latencies, and how they are shown |

use std::io::{self, Write};
use std::process::ExitCode;

use bench::transport::loopback::Loopback;
use bench::transport::{SetUpError, Transport};
use clap::Parser;

use crate::args::{Arguments, TransportName, Usage};
use crate::interrupt::{INTERRUPTED, Stop};
use crate::job::Outcome;
use crate::report::Record;

mod args;
mod control;
#[cfg(test)]
mod faulty;
mod interrupt;
mod job;
mod payload;
mod pingpong;
mod progress;
mod report;
mod side;
mod stats;
mod stream;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Usage(#[from] Usage),
    #[error("the transport is not available: {0}")]
    NoDevice(#[from] transport_rxe_loop::OpenError),
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    #[error("{0}")]
    Failed(String),
    #[error("interrupted: the report is of what was measured until then")]
    Interrupted,
    #[error("cannot watch for signals: {0}")]
    Signals(#[from] ctrlc::Error),
    #[error("cannot print the report: {0}")]
    Output(#[from] io::Error),
}

impl Error {
    const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NoDevice(_) => 3,
            Self::Interrupted => INTERRUPTED,
            Self::SetUp(_) | Self::Failed(_) | Self::Signals(_) | Self::Output(_) => 1,
        }
    }
}

fn main() -> ExitCode {
    match cqperf() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // `eprintln!` would panic where stderr is closed as well.
            let _ = writeln!(io::stderr(), "error: {error}");
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
    match arguments.transport {
        TransportName::Loop => measure(&Loopback::open()?, &arguments),
    }
}

fn measure<T: Transport>(transport: &T, arguments: &Arguments) -> Result<(), Error> {
    let jobs = arguments.jobs(&transport.limits())?;
    let stop = Stop::on_signals()?;
    let mut records = Vec::new();
    let ended = jobs.iter().try_for_each(|job| {
        let outcome = job.run(transport, &stop)?;
        records.push(Record::new(transport, &outcome));
        judge(&outcome)
    });
    print(&if arguments.json {
        report::json(&records, arguments.several())
    } else {
        report::table(&records)
    })?;
    ended
}

fn judge(outcome: &Outcome) -> Result<(), Error> {
    match &outcome.failure {
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
