//! Compilers beside the one that built this program, by rustup, which installs them where they are missing.

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

/// Has rustup install a toolchain where it or one of these components is missing: what its compiler calls itself.
pub fn install(job: &mut Job, name: &str, components: &[&str]) -> Result<String, Stop> {
    // Stages run side by side, and rustup expects to be alone.
    let _lock = packages::lock()?;
    let mut list = Command::new("rustup");
    list.args(["component", "list", "--installed", "--toolchain", name]);
    let there = job.ask("rustup component list", &mut list).unwrap_or_default();
    if there.is_empty() || components.iter().any(|&component| !there.contains(component)) {
        let mut install = Command::new("timeout");
        install.args([PATIENCE, "rustup", "toolchain", "install", name]);
        install.args(["--profile", "minimal", "--no-self-update"]);
        install.args(components.iter().flat_map(|component| ["--component", component]));
        job.run(&format!("installing Rust {name}"), &mut install)?;
    }
    let mut version = Command::new("rustup");
    let version = job.ask("rustc --version", version.args(["run", name, "rustc", "--version"]))?;
    Ok(version.trim().to_owned())
}

/// Has rustup install the nightly compiler where it is missing; where it can't be had, the stage is skipped.
pub fn nightly(job: &mut Job) -> Result<(), Stop> {
    install(job, NIGHTLY, &COMPONENTS).map(drop).map_err(|why| {
        let components = COMPONENTS.join(",");
        let by_hand = format!("rustup toolchain install {NIGHTLY} --component {components}");
        Stop::Skipped(format!("{why}; by hand: {by_hand}"))
    })
}

/// Has rustup add what the compiler that built this program needs for other targets; where that can't be had, the stage is
/// skipped.
pub fn add_targets(job: &mut Job, targets: &[&str]) -> Result<(), Stop> {
    // Stages run side by side, and rustup expects to be alone.
    let _lock = packages::lock()?;
    let mut add = Command::new("rustup");
    let added = job.run("rustup target add", add.args(["target", "add"]).args(targets));
    added.map(drop).map_err(|why| {
        Stop::Skipped(format!("{why}; by hand: rustup target add {}", targets.join(" ")))
    })
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
