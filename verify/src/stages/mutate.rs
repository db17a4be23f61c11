//! Faults that are planted one at a time, mechanically or by hand, and what notices them, by the package `verify-mutate`.

use std::process::Command;

use super::last_line;
use crate::run::{Job, Stop, cargo};

/// How long the share of every commit may run, once it is built.
const SECONDS: &str = "45";

/// Runs the controls of the loom models, and the share of this seed, or all faults.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let controls = job.run("planting controls", tool().arg("--controls"))?;
    let mut faults = tool();
    match job.long {
        true => faults.arg("--long"),
        false => faults.args(["--seconds", SECONDS, "--seed", &job.seed.to_string()]),
    };
    let faults = job.run("planting faults", &mut faults)?;
    let summary = format!("{}; {}", last_line(&faults)?, last_line(&controls)?);
    Ok([&summary, controls.trim_end(), faults.trim_end()].join("\n"))
}

fn tool() -> Command {
    cargo(&["run", "--quiet", "--profile", "checker", "-p", "verify-mutate", "--"])
}
