//! cq-core without an operating system, for targets that rustup has core for. Firmware with it also runs.

use std::process::Command;
use std::{fs, io};

use super::toolchain;
use crate::run::{self, Job, Stop, root};

mod firmware;

/// A board.
pub const PACKAGES: &[&str] = &["qemu-system-arm"];

const TARGETS: [&str; 4] =
    ["thumbv7em-none-eabihf", "thumbv6m-none-eabi", "aarch64-unknown-none", "x86_64-unknown-none"];
/// Has neither a compare-and-swap nor, with an allocator, `Arc`.
const SMALL: &str = TARGETS[1];
/// Tasks, logs, handlers and the tests of firmware have what they need without an operating system, too.
const FEATURES: &str = "defmt,heapless,log,portable-atomic,stream,test-util";

/// Where all is built; with an allocator, elsewhere: what was read for one of them is not to be taken for the other's.
const TARGET: &str = "target/bare-metal";
const ALLOC: &str = "target/bare-metal/alloc";

/// Builds for every target, and runs the firmware.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    toolchain::add_targets(job, &TARGETS)?;
    let mut build = cargo(&["env"], "build", &TARGETS, TARGET);
    job.run("cargo build for all targets", build.args(["-p", "cq-core", "--features", FEATURES]))?;
    let mut build = cargo(&["env"], "build", &[SMALL], ALLOC);
    job.run("cargo build with alloc", build.args(["-p", "cq-core", "--features", "alloc"]))?;
    if !reads(ALLOC, SMALL, "liballoc-")? {
        return Err(Stop::Failed("what is built with alloc does not read it".into()));
    }
    for target in TARGETS {
        if !reads(TARGET, target, "libcore-")? || reads(TARGET, target, "liballoc-")? {
            return Err(Stop::Failed(format!("cq-core needs an allocator on {target}")));
        }
    }
    let ran = firmware::run(job)?;
    Ok(format!("{} targets: {}; {ran}", TARGETS.len(), TARGETS.join(", ")))
}

/// Whether the compiler has read a library of this name for a target, by its notes.
fn reads(folder: &str, target: &str, library: &str) -> io::Result<bool> {
    for entry in fs::read_dir(root().join(folder).join(target).join("debug/deps"))? {
        let path = entry?.path();
        let is_note = path.extension().is_some_and(|extension| extension == "d");
        if is_note && fs::read_to_string(path)?.contains(library) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Our cargo, started by this.
fn cargo(launcher: &[&str], subcommand: &str, targets: &[&str], folder: &str) -> Command {
    let cargo = run::cargo(&[subcommand, "--locked"]);
    let mut command = Command::new(launcher[0]);
    command.args(&launcher[1..]).arg(cargo.get_program()).args(cargo.get_args());
    // At once, so that no processor waits.
    command.args(targets.iter().flat_map(|target| ["--target", target]));
    // What tunes builds for this machine is not for others.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    // How `async` does without compare-and-swap is the program's choice; this is that of one core without threads.
    command.env(
        "CARGO_TARGET_THUMBV6M_NONE_EABI_RUSTFLAGS",
        "--cfg=portable_atomic_unsafe_assume_single_core",
    );
    // The flag lets a stable compiler take -Z. Each target compiles code that clippy, which sees this machine's, does not.
    command.env("RUSTC_BOOTSTRAP", "1").args(["-Zbinary-dep-depinfo", "-Zwarnings"]);
    command.args(["--config", "build.warnings='deny'", "--config", "profile.dev.debug=0"]);
    command.arg("--target-dir").arg(root().join(folder));
    command
}
