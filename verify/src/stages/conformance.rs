//! The conformance suite on every transport, each in a process of its own, and the table: on the terminal
//! for who asked for it, and as Markdown.

use std::env;
use std::fs;
use std::io;
use std::process::{Command, Stdio};

use verify::conformance::{self, Outcome, Progress, Runs, TRANSPORTS, Transport, Verdict};

use super::preload::Tools;
use super::verbs;
use crate::guest::tasks::Task;
use crate::guest::{self, Guest, Load};
use crate::packages::Packages;
use crate::report::is_ci;
use crate::run::{Job, Stop, root};

/// Where the table is written as Markdown, relative to the workspace's root.
const TABLE: &str = "target/verify/conformance.md";

/// The guest, and the one list that it can be booted for.
const LIST: &str = "conformance";
/// What all cases may take in the guest, in seconds.
const CASES: u32 = 600;

/// Runs the cases and judges what came of them.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let mut outcomes = Vec::new();
    let mut missing = Vec::new();
    for transport in TRANSPORTS {
        match on(transport, job) {
            Ok(cases) => outcomes.extend(cases),
            Err(Stop::Skipped(why)) => missing.push((transport.name, why)),
            Err(stop) => return Err(stop),
        }
    }
    let verdict = Verdict::of(&outcomes, &missing);
    fs::write(root().join(TABLE), verdict.markdown())?;
    let faults = verdict.faults().join("\n");
    job.log(&format!("{}\n{faults}", verdict.text()))?;
    let summary = format!("{}; the table is {TABLE}", verdict.summary());
    let lacks = !missing.is_empty() && is_ci(env::var_os("CI").as_deref());
    match verdict.faults() {
        [] if lacks => Err(Stop::Judged(summary)),
        [] if job.asked_for => Ok(format!("{summary}\n{}", verdict.text().trim_end())),
        [] => Ok(summary),
        _ => Err(Stop::Judged(summary)),
    }
}

/// Runs the cases of one transport: in processes of their own, or in guests.
fn on(transport: &Transport, job: &mut Job) -> Result<Vec<Outcome>, Stop> {
    match transport.runs {
        Runs::Anywhere => {
            let program = env::current_exe()?;
            cases(transport, |from| Ok(of(transport, from, Command::new(&program))), job)
        }
        Runs::Preloaded => {
            let tools = Tools::build(job)?;
            cases(transport, |from| Ok(of(transport, from, tools.command("verify")?)), job)
        }
        Runs::OnADevice => in_a_guest(transport, job),
    }
}

/// The command of a program of this package that runs the cases from this number on.
fn of(transport: &Transport, from: usize, mut program: Command) -> Command {
    program.args(["--cases", transport.name, "--from", &from.to_string()]).stderr(Stdio::null());
    program
}

/// Runs the cases on the transports that need a device, and judges these alone.
pub fn on_devices(job: &mut Job) -> Result<String, Stop> {
    let mut outcomes = Vec::new();
    let mut others = Vec::new();
    for transport in TRANSPORTS {
        match transport.runs {
            Runs::OnADevice => outcomes.extend(in_a_guest(transport, job)?),
            Runs::Anywhere | Runs::Preloaded => {
                others.push((transport.name, "it needs no device".to_owned()))
            }
        }
    }
    match Verdict::of(&outcomes, &others).faults() {
        [] => Ok(format!("{} cases as they must be", outcomes.len())),
        faults => Err(Stop::Judged(format!("conformance: {}", faults.join("; ")))),
    }
}

/// Runs the cases of a transport that needs a device. A case that takes the guest along costs a reboot.
fn in_a_guest(transport: &Transport, job: &mut Job) -> Result<Vec<Outcome>, Stop> {
    Packages::default().ensure(&[verbs::PACKAGES, guest::PACKAGES].concat(), job)?;
    let programs = verbs::tools(job)?;
    let command = r#"exec verify --cases "$transport" --from "$from""#.to_owned();
    let task = Task { name: LIST.to_owned(), seconds: CASES, command };
    let lists = vec![(LIST, vec![task])];
    let guest = Guest::prepare(LIST, &Load { programs, lists, ..Load::default() }, job)?;
    let mut consoles = Vec::new();
    let process = |from: usize| {
        // The next boot writes over what the guest said that a case took along.
        if from > 0 {
            consoles.push(guest.last_words(LIST));
        }
        guest.command(LIST, &[("transport", transport.name), ("from", &from.to_string())])
    };
    let outcomes = cases(transport, process, job)?;
    consoles.push(guest.last_words(LIST));
    job.log(&consoles.join("\n"))?;
    Ok(outcomes)
}

fn cases(
    transport: &Transport,
    process: impl FnMut(usize) -> io::Result<Command>,
    job: &Job,
) -> Result<Vec<Outcome>, Stop> {
    let mut told = false;
    Ok(conformance::run(transport, process, |Progress { transport, case, over, of }| {
        // Where progress is lines, one for each transport is enough.
        if job.shows_progress() || !told {
            job.announce(&format!("{transport}, {case} ({over} of {of} over)"));
        }
        told = true;
    })?)
}
