//! Faults that are planted one at a time, mechanically or by hand, and what notices them, by the package
//! `verify-mutate`: the controls of the loom models, and with `--long` all mutants.

use std::process::Command;

use super::{artifacts, last_line};
use crate::run::{Job, Stop, cargo};

/// What plants them.
const MUTATE: &str = "verify-mutate";

/// Plants them.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    // With this package, so that what both are made of is built once.
    let words = ["--profile", "checker", "-p", "verify", "-p", MUTATE, "--bin", MUTATE];
    let built = artifacts::build(job, "cargo build", cargo(&["build"]).args(words))?;
    let program = artifacts::executables(&built).into_iter().find(|it| it.name == MUTATE);
    let program = program.ok_or(Stop::Failed("cargo built no tool".into()))?;
    let tool = || Command::new(&program.path);
    let controls = job.run("planting controls", tool().arg("--controls"))?;
    let summary = last_line(&controls)?.to_owned();
    if !job.long {
        return Ok([&summary, controls.trim_end()].join("\n"));
    }
    let mutants = job.run("planting mutants", tool().arg("--long"))?;
    let summary = format!("{}; {summary}", last_line(&mutants)?);
    Ok([&summary, controls.trim_end(), mutants.trim_end()].join("\n"))
}
