//! `cargo verify`: the one checker of this workspace.
//!
//! A stage runs the tools that show one thing, and says so in one line; what the tools printed is in
//! `target/verify/STAGE.log`, and on the terminal only where a stage failed.
//!
//! | module | owns |
//! |---|---|
//! | [`stages`] | the table of stages, and what each one runs and demands |
//! | [`run`] | one stage under way: its commands, its log, its spinner, and why it stopped |
//! | [`guest`] | a machine with an RDMA device, booted in QEMU |
//! | [`packages`] | the Debian packages that a stage needs |
//! | [`report`] | the line per stage, the verdicts, the summary |

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use verify::conformance::{named, run_here};
use verify::far;

use crate::packages::Packages;
use crate::report::{Report, is_ci};
use crate::run::Job;
use crate::stages::{STAGES, Stage, UnknownStage};

mod guest;
mod packages;
mod report;
mod run;
mod stages;

const DETAILS: &str = "\
Every stage runs, also after one has failed. What its commands print goes to target/verify/STAGE.log,
and is shown here where the stage fails. Missing Debian packages are installed by root or by a sudo
that asks no password; otherwise the stages that need them are skipped, and say what to install.
Where CI is set, a skipped stage counts as failed.

Exit status: 0 nothing failed, 1 a stage failed, 2 usage.";

/// Checks the whole workspace, or the named stages of it.
#[derive(Parser)]
#[command(name = "cargo verify", bin_name = "cargo verify")]
#[command(after_help = format!("Stages:\n{}\n{DETAILS}", stages::list()))]
struct Arguments {
    /// What to run, in this order; all of them where none is named
    #[arg(value_name = "STAGE")]
    stages: Vec<String>,

    /// How many processes the stage storms kills
    #[arg(long, value_name = "NUMBER", default_value_t = run::KILLS)]
    kills: u32,

    /// Name the stages, each with what it shows; with --cases, the cases
    #[arg(long)]
    list: bool,

    /// Run the conformance cases of a transport in this process, and nothing else
    #[arg(long, value_name = "TRANSPORT", conflicts_with = "stages")]
    cases: Option<String>,

    /// With --cases: only those with this in their names
    #[arg(long, value_name = "PART", requires = "cases", default_value = "")]
    only: String,

    /// With --cases and --only: only the one of this very name
    #[arg(long, requires = "cases")]
    exact: bool,

    /// With --cases: only those from this number on
    #[arg(long, value_name = "NUMBER", requires = "cases", default_value = "0")]
    from: usize,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Usage(#[from] UnknownStage),
    #[error("cannot report: {0}")]
    Output(#[from] io::Error),
    #[error("cannot run the cases: {0}")]
    Cases(io::Error),
    #[error("cannot be the far end of another process: {0}")]
    FarEnd(io::Error),
}

fn main() -> ExitCode {
    match far::serve_if_asked().map_err(Error::FarEnd) {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => return failed(&error),
    }
    match verify(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed(&error),
    }
}

fn failed(error: &Error) -> ExitCode {
    // `eprintln!` would panic where stderr is closed as well.
    let _ = writeln!(io::stderr(), "error: {error}");
    ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
}

/// Whether nothing failed.
fn verify(arguments: &Arguments) -> Result<bool, Error> {
    if let Some(transport) = &arguments.cases {
        return cases(transport, arguments).map_err(Error::Cases);
    }
    if arguments.list {
        io::stdout().write_all(stages::list().as_bytes())?;
        return Ok(true);
    }
    let chosen = choose(&arguments.stages)?;
    let asked_for = !arguments.stages.is_empty();
    let mut packages = Packages::default();
    let mut report = Report::new(is_ci(env::var_os("CI").as_deref()));
    for stage in chosen {
        let started = Instant::now();
        let result = Job::start(stage.name, asked_for).and_then(|mut job| {
            job.kills = arguments.kills;
            packages.ensure(&stage.packages.concat(), &mut job)?;
            (stage.run)(&mut job)
        });
        report.stage(stage.name, started.elapsed(), &result)?;
    }
    Ok(report.finish()?)
}

/// Names the cases of a transport, or runs them.
fn cases(transport: &str, arguments: &Arguments) -> io::Result<bool> {
    if arguments.list {
        let cases = (named(transport)?.cases)();
        cases.iter().try_for_each(|case| writeln!(io::stdout(), "{}", case.name))?;
        return Ok(true);
    }
    let Arguments { from, only, exact, .. } = arguments;
    run_here(
        transport,
        *from,
        |case| if *exact { case == only } else { case.contains(only) },
        &mut io::stdout(),
    )
}

fn choose(names: &[String]) -> Result<Vec<&'static Stage>, UnknownStage> {
    if names.is_empty() {
        return Ok(STAGES.iter().collect());
    }
    names.iter().map(|name| stages::named(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Result<Vec<&'static str>, UnknownStage> {
        let of: Vec<String> = of.iter().map(|name| (*name).to_owned()).collect();
        Ok(choose(&of)?.iter().map(|stage| stage.name).collect())
    }

    #[test]
    fn named_stages_run_in_the_order_given() {
        assert_eq!(names(&["test", "fmt"]).unwrap(), ["test", "fmt"]);
    }

    #[test]
    fn no_name_means_every_stage() {
        assert_eq!(names(&[]).unwrap(), STAGES.each_ref().map(|stage| stage.name));
    }

    #[test]
    fn an_unknown_stage_is_named_in_one_line_and_nothing_runs() {
        let said = names(&["fmt", "bogus"]).unwrap_err().to_string();
        assert!(said.contains("`bogus`") && said.contains("bare-metal"), "{said}");
        assert_eq!(said.lines().count(), 1);
    }
}
