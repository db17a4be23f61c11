//! The conformance suite on every transport, each in a process of its own, and the table: on the terminal
//! for who asked for it, and as Markdown.

use std::env;
use std::fs;
use std::process::{Command, Stdio};

use verify::conformance::{self, Outcome, Progress, Runs, TRANSPORTS, Transport, Verdict};

use crate::report::is_ci;
use crate::run::{Job, Stop, root};

/// Where the table is written as Markdown, relative to the workspace's root.
const TABLE: &str = "target/verify/conformance.md";

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

/// Runs the cases of one transport, in processes of their own.
fn on(transport: &Transport, job: &mut Job) -> Result<Vec<Outcome>, Stop> {
    if transport.runs == Runs::OnADevice {
        return Err(Stop::Skipped("there is no guest yet".to_owned()));
    }
    let program = env::current_exe()?;
    let process = |from: usize| {
        let mut command = Command::new(&program);
        command.args(["--cases", transport.name, "--from", &from.to_string()]);
        command.stderr(Stdio::null());
        Ok(command)
    };
    let mut told = false;
    Ok(conformance::run(transport, process, |Progress { transport, case, over, of }| {
        // Where progress is lines, one for each transport is enough.
        if job.shows_progress() || !told {
            job.announce(&format!("{transport}, {case} ({over} of {of} over)"));
        }
        told = true;
    })?)
}
