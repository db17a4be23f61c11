//! Faults that are planted one at a time, and what notices them, by the package `verify-mutate`.

use super::last_line;
use crate::run::{Job, Stop, cargo};

/// How long the share of every commit may run, once it is built.
const SECONDS: &str = "45";

/// Runs the share of this seed, or all of them.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let mut command =
        cargo(&["run", "--quiet", "--profile", "checker", "-p", "verify-mutate", "--"]);
    match job.effort.long {
        true => command.arg("--long"),
        false => command.args(["--seconds", SECONDS, "--seed", &job.effort.seed.to_string()]),
    };
    let output = job.run("planting faults", &mut command)?;
    let summary = last_line(&output)?.to_owned();
    Ok(if job.asked_for { format!("{summary}\n{}", output.trim_end()) } else { summary })
}
