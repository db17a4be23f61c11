//! The conformance suite on every transport, each in a process of its own, and the table: on the terminal
//! for who asked for it, and as Markdown.

use std::env;
use std::fs;
use std::process::{Command, Stdio};

use verify::conformance::{Progress, Verdict, run_all};

use crate::run::{Job, Stop, root};

/// Where the table is written as Markdown, relative to the workspace's root.
const TABLE: &str = "target/verify/conformance.md";

/// Runs the cases and judges what came of them.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let program = env::current_exe()?;
    let process = |transport: &str, from: usize| {
        let mut command = Command::new(&program);
        command.args(["--cases", transport, "--from", &from.to_string()]).stderr(Stdio::null());
        command
    };
    let mut last = "";
    let outcomes = run_all(process, |Progress { transport, case, over, of }| {
        // Where progress is lines, one for each transport is enough.
        if job.shows_progress() || last != transport {
            job.announce(&format!("{transport}, {case} ({over} of {of} over)"));
        }
        last = transport;
    })?;
    let verdict = Verdict::of(&outcomes);
    fs::write(root().join(TABLE), verdict.markdown())?;
    let faults = verdict.faults().join("\n");
    job.log(&format!("{}\n{faults}", verdict.text()))?;
    let summary = format!("{}; the table is {TABLE}", verdict.summary());
    match verdict.faults() {
        [] if job.asked_for => Ok(format!("{summary}\n{}", verdict.text().trim_end())),
        [] => Ok(summary),
        _ => Err(Stop::Judged(summary)),
    }
}
