//! Compilers beside the one that built this program, by rustup: found, installed where that was asked for, or named.

use std::env;
use std::process::Command;

use crate::packages;
use crate::run::{self, Job, Stop};

/// The nightly compiler, of a fixed day: what Miri, sanitizers and fuzz targets find depends on the commit alone.
pub const NIGHTLY: &str = "nightly-2026-05-20";
/// What is needed of it beside the compiler.
const COMPONENTS: [&str; 2] = ["miri", "rust-src"];

/// How many seconds an installation may take, where the network neither answers nor refuses.
const PATIENCE: &str = "200";

/// Sees to it that a toolchain is there with these components: what its compiler calls itself. Otherwise the stage is skipped,
/// and says what is missing.
pub fn ensure(job: &mut Job, name: &str, components: &[&str]) -> Result<String, Stop> {
    // Stages run side by side, and rustup expects to be alone.
    let _lock = packages::lock()?;
    let mut list = Command::new("rustup");
    list.args(["component", "list", "--installed", "--toolchain", name]);
    let there = job.ask("rustup component list", &mut list).unwrap_or_default();
    if there.is_empty() || components.iter().any(|&component| !there.contains(component)) {
        let components = components.iter().flat_map(|component| ["--component", component]);
        let words = ["toolchain", "install", name, "--profile", "minimal", "--no-self-update"];
        rustup(job, &words.into_iter().chain(components).collect::<Vec<_>>())?;
    }
    let mut version = Command::new("rustup");
    let version = job.ask("rustc --version", version.args(["run", name, "rustc", "--version"]))?;
    Ok(version.trim().to_owned())
}

/// Has rustup install something, if that was asked for.
fn rustup(job: &mut Job, words: &[&str]) -> Result<(), Stop> {
    let words = words.join(" ");
    if packages::program("rustup").is_none() {
        return Err(Stop::Skipped(format!("missing: rustup, and then `rustup {words}`")));
    }
    let by = format!("missing: rustup {words}");
    if !job.install {
        return Err(Stop::Skipped(by));
    }
    let mut rustup = Command::new("timeout");
    rustup.args([PATIENCE, "rustup"]).args(words.split(' '));
    let ran = job.run(&format!("rustup {words}"), &mut rustup);
    ran.map(drop).map_err(|why| Stop::Skipped(format!("{why}; {by}")))
}

/// Sees to it that the subcommand of cargo is there that this component of the compiler is.
pub fn component(job: &mut Job, name: &str) -> Result<(), Stop> {
    let _lock = packages::lock()?;
    let subcommand = name.trim_start_matches("rust");
    match job.attempt(
        &format!("cargo {subcommand} --version"),
        &mut run::cargo(&[subcommand, "--version"]),
    )? {
        (status, _) if status.success() => Ok(()),
        _ => rustup(job, &["component", "add", name]),
    }
}

/// Sees to it that the nightly compiler is there.
pub fn nightly(job: &mut Job) -> Result<(), Stop> {
    ensure(job, NIGHTLY, &COMPONENTS).map(drop)
}

/// Sees to it that what the compiler that built this program needs for other targets is there.
pub fn targets(job: &mut Job, wanted: &[&str]) -> Result<(), Stop> {
    let _lock = packages::lock()?;
    let mut list = Command::new("rustup");
    let there = job.ask("rustup target list", list.args(["target", "list", "--installed"]));
    let there = there.unwrap_or_default();
    let is_missing = |target: &&&str| there.lines().all(|line| line != **target);
    let missing: Vec<_> = wanted.iter().filter(is_missing).copied().collect();
    match &missing[..] {
        [] => Ok(()),
        missing => rustup(job, &[&["target", "add"], missing].concat()),
    }
}

/// This machine, as Rust names it.
pub fn host() -> String {
    format!("{}-unknown-linux-gnu", env::consts::ARCH)
}

/// The cargo of a toolchain that is installed.
pub fn cargo(name: &str) -> Command {
    let mut cargo = Command::new("rustup");
    run::plain(cargo.args(["run", name, "cargo"]));
    cargo
}
