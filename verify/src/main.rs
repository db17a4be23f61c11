//! `cargo verify`: the one checker of this workspace.
//!
//! A stage runs the tools that show one thing, and says so in one line; what the tools printed is in
//! `target/verify/STAGE.log`, and on the terminal only where a stage failed.
//!
//! | module | owns |
//! |---|---|
//! | [`stages`] | the table of stages, and what each one runs and demands |
//! | [`schedule`] | which stage runs when, side by side, each in a process of its own, and for how long |
//! | [`processes`] | the processes of a stage: found, shown with their stacks, ended |
//! | [`message`] | what the process of a stage tells the checker |
//! | [`run`] | a stage in its own process: its commands, its log, and why it stopped |
//! | [`changes`] | what differs from a commit |
//! | [`guest`] | a machine with an RDMA device, booted in QEMU |
//! | [`packages`] | what a stage needs beside Rust, and the packages that bring it |
//! | [`report`] | what is shown meanwhile, the line per stage, the verdicts, the summary |

use std::env;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use cq_verbs::causes::Causes;
use verify::conformance::{Part, named, run_here};
use verify::far;

use crate::changes::Changes;
use crate::message::{Message, tell};
use crate::report::Report;
use crate::run::{Asked, Job, is_ci};
use crate::stages::{Quick, STAGES, Stage};

mod changes;
mod guest;
mod message;
#[cfg(test)]
#[path = "../../transport-rxe-loop/tests/inside/name_space.rs"]
mod name_space;
mod packages;
mod processes;
mod report;
mod run;
mod schedule;
mod stages;

/// The random ones of every commit.
const SEED: u64 = 1;

const DETAILS: &str = "\
Stages run side by side as far as they share nothing, each in a process of its own; all run, also after one
has failed. One that takes longer than its limit is ended, with what hung: its line names the test or the
program, its log has the stacks, where gdb is there. What its commands print goes to target/verify/STAGE.log,
whose end is shown where the stage fails. Stages that miss something are skipped, and say what and which of
Debian's packages brings it. Nothing is installed outside of target/, unless --install is given: then by
apt-get, as root or by a sudo that asks no password, and by rustup. Where CI is set, a skipped stage counts as
failed.

verify/CHECKS.md says what runs on every commit, and why.

Exit status: 0 nothing failed, 1 a stage failed, 2 usage.";

/// Checks the whole workspace, or the named stages of it.
#[derive(Parser)]
#[command(name = "cargo verify", bin_name = "cargo verify")]
#[command(after_help = format!("Stages:\n{}\n{DETAILS}", stages::list()))]
struct Arguments {
    /// What to run, the first ones first; where none is named, all but those that say so
    #[arg(value_name = "STAGE", value_parser = stages::named)]
    stages: Vec<&'static Stage>,

    /// Many of what every commit runs few of: mutants, random programs, kills, sweeps
    #[arg(long)]
    long: bool,

    /// Which random ones: any number; the same one runs the same
    #[arg(long, value_name = "NUMBER", default_value_t = SEED)]
    seed: u64,

    /// Run what takes two minutes after a change: the quick stages that depend on files that differ from COMMIT, two of
    /// them on what changed alone; and name the stages that are left to be run as a whole
    #[arg(long, value_name = "COMMIT", num_args = 0..=1, require_equals = true, default_missing_value = "HEAD")]
    #[arg(conflicts_with = "long")]
    changed: Option<String>,

    /// Install what is missing: packages by apt-get, compilers by rustup; and let soft-roce load modules of this kernel
    #[arg(long)]
    install: bool,

    /// Run one stage in this process, and tell of it in lines of JSON
    #[arg(long, value_name = "STAGE", value_parser = stages::named, hide = true)]
    alone: Option<&'static Stage>,

    /// With --alone: show what it found
    #[arg(long, requires = "alone", hide = true)]
    show: bool,

    /// Name the stages, each with what it shows, why it runs on every commit, and its times; with --cases, the cases
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

    /// With --cases: of these, only the first of each NUMBER
    #[arg(long, value_name = "NUMBER", requires = "cases", default_value = "1")]
    every: NonZeroUsize,
}

impl Arguments {
    /// What every stage is told, as it is told on the command line.
    fn options(&self) -> Vec<String> {
        let seed = (self.seed != SEED).then(|| format!("--seed={}", self.seed));
        let flags = [("--long", self.long), ("--install", self.install)];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
        let changed = self.changed.as_ref().map(|commit| format!("--changed={commit}"));
        flags.map(|(flag, _)| flag.to_owned()).chain(seed).chain(changed).collect()
    }
}

fn main() -> ExitCode {
    let nothing_failed = match far::serve_if_asked() {
        Ok(true) => Ok(true),
        Ok(false) => asked(&Arguments::parse()),
        Err(error) => Err(cannot("be the far end of another process")(error)),
    };
    match nothing_failed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // `eprintln!` would panic where stderr is closed as well.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn cannot(what: &str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::other(format!("cannot {what}: {}", Causes(&error)))
}

fn asked(arguments: &Arguments) -> io::Result<bool> {
    match &arguments.cases {
        Some(transport) => cases(transport, arguments).map_err(cannot("run the cases")),
        None => verify(arguments).map_err(cannot("report")),
    }
}

/// Whether nothing failed.
fn verify(arguments: &Arguments) -> io::Result<bool> {
    if arguments.list {
        io::stdout().write_all(stages::details().as_bytes())?;
        return Ok(true);
    }
    if let Some(stage) = arguments.alone {
        return alone(stage, arguments);
    }
    let started = Instant::now();
    let options: Vec<_> = arguments.options().iter().map(|option| format!(" {option}")).collect();
    let mut report = Report::new(is_ci(), format!("cargo verify{}", options.concat()));
    let program = env::current_exe()?;
    let (stages, left) = selected(arguments)?;
    if stages.is_empty() && left.is_empty() {
        writeln!(io::stdout(), "no stage depends on a file that has changed")?;
        return Ok(true);
    }
    let command = |stage: &Stage| process_of(stage, &program, arguments);
    schedule::run(
        &stages,
        command,
        |stage| stage.limit(arguments.long, arguments.install),
        &mut report,
    )?;
    report.finish(started.elapsed(), &left)
}

/// The stages that are to run, and those that are left to be run as a whole.
fn selected(arguments: &Arguments) -> io::Result<(Vec<&'static Stage>, Vec<&'static Stage>)> {
    let Arguments { stages, changed, .. } = arguments;
    match changed {
        _ if !stages.is_empty() => Ok((stages.clone(), Vec::new())),
        None => {
            let all = STAGES.iter().filter(|stage| stage.only_by_name.is_empty());
            Ok((all.collect(), Vec::new()))
        }
        Some(commit) => {
            let changes = Changes::since(commit)?;
            let concerned = STAGES.iter().filter(|stage| stage.is_concerned(&changes));
            let quick = concerned.clone().filter(|stage| stage.quick != Quick::No).collect();
            Ok((quick, concerned.filter(|stage| stage.quick != Quick::Whole).collect()))
        }
    }
}

/// The command that runs a stage in a process of its own.
fn process_of(stage: &Stage, program: &Path, arguments: &Arguments) -> Command {
    let mut command = Command::new(program);
    command.args(["--alone", stage.name]).args(arguments.options());
    if arguments.long {
        command.env(run::LONG, "1");
    }
    if !arguments.stages.is_empty() {
        command.arg("--show");
    }
    command
}

/// Runs a stage in this process: whether it passed.
fn alone(stage: &'static Stage, arguments: &Arguments) -> io::Result<bool> {
    let &Arguments { long, seed, install, ref changed, .. } = arguments;
    let asked = Asked { long, seed, install, changed: changed.clone() };
    let result = Job::start(stage.name, asked).and_then(|mut job| {
        packages::ensure(&stage.packages.concat(), &mut job)?;
        (stage.run)(&mut job)
    });
    let passed = result.is_ok();
    let summary = |words: String| words.lines().next().unwrap_or_default().to_owned();
    tell(&Message::Over(if arguments.show { result } else { result.map(summary) }))?;
    Ok(passed)
}

/// Names the cases of a transport, or runs them.
fn cases(transport: &str, arguments: &Arguments) -> io::Result<bool> {
    if arguments.list {
        let cases = (named(transport)?.cases)();
        cases.iter().try_for_each(|case| writeln!(io::stdout(), "{}", case.name))?;
        return Ok(true);
    }
    let Arguments { from, only, exact, .. } = arguments;
    let wanted = |case: &str| if *exact { case == only } else { case.contains(only) };
    let part = Part { from: *from, every: arguments.every.get() };
    run_here(transport, part, wanted, &mut io::stdout())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_run_in_the_order_given_and_of_an_unknown_one_is_said_which_there_are() {
        let parse = |names: &[&str]| Arguments::try_parse_from([&["verify"], names].concat());
        let names = parse(&["test", "fmt"]).ok().unwrap().stages;
        assert_eq!(names.iter().map(|stage| stage.name).collect::<Vec<_>>(), ["test", "fmt"]);
        let said = parse(&["fmt", "bogus"]).err().unwrap();
        assert_eq!(said.exit_code(), 2);
        let said = said.to_string();
        assert!(said.contains("`bogus`") && said.contains("bare-metal"), "{said}");
    }
}
