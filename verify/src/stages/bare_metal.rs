//! cq-core without an operating system, for targets that rustup has core for. Firmware with it also runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::{artifacts, toolchain};
use crate::run::{self, Job, Stop, root};

mod firmware;

/// Boards, and in the second package those with RISC-V.
pub const PACKAGES: &[&str] = &["qemu-system-arm", "qemu-system-misc"];

const TARGETS: [&str; 6] = [
    "thumbv7em-none-eabihf",
    "thumbv6m-none-eabi",
    "thumbv7m-none-eabi",
    "riscv32imac-unknown-none-elf",
    "aarch64-unknown-none",
    "x86_64-unknown-none",
];
/// Has neither a compare-and-swap nor, with an allocator, `Arc`.
const SMALL: &str = TARGETS[1];
/// What firmware and its tests are made of.
const PACKAGES_OF_FIRMWARE: [&str; 6] = ["-p", "cq-core", "-p", "cq-verbs", "-p", "cq-testing"];
/// Tasks, logs, handlers and the tests of firmware have what they need without an operating system, too.
const FEATURES: &str = "cq-core/async,cq-core/portable-atomic,cq-verbs/defmt,cq-verbs/heapless";

const TARGET: &str = "target/bare-metal";

/// Builds for every target, and runs the firmware.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    toolchain::add_targets(job, &TARGETS)?;
    let mut for_all = build(&TARGETS, FEATURES);
    let without = artifacts::build(job, "cargo build for all targets", &mut for_all)?;
    let mut for_small = build(&[SMALL], "cq-verbs/alloc");
    let with = artifacts::build(job, "cargo build with alloc", &mut for_small)?;
    if !reads(&with, SMALL, "liballoc-")? {
        return Err(Stop::Failed("what is built with alloc does not read it".into()));
    }
    for target in TARGETS {
        if !reads(&without, target, "libcore-")? || reads(&without, target, "liballoc-")? {
            return Err(Stop::Failed(format!("cq-core needs an allocator on {target}")));
        }
    }
    let ran = firmware::run(job)?;
    Ok(format!("{} targets: {}; {ran}", TARGETS.len(), TARGETS.join(", ")))
}

/// Whether the compiler has read a library of this name for a target in the build that cargo told of, by the note that it
/// leaves beside each of ours.
fn reads(messages: &str, target: &str, library: &str) -> io::Result<bool> {
    for built in artifacts::metadata(messages) {
        let is_for_it = built.iter().any(|folder| folder == target);
        if is_for_it && fs::read_to_string(note(&built))?.contains(library) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `deps/libNAME-HASH.rmeta` has its note in `deps/NAME-HASH.d`.
fn note(metadata: &Path) -> PathBuf {
    let name = metadata.file_name().unwrap_or_default().to_string_lossy();
    metadata.with_file_name(name.trim_start_matches("lib")).with_extension("d")
}

/// Builds what firmware and its tests are made of.
fn build(targets: &[&str], features: &str) -> Command {
    let mut build = cargo(&["env"], "build", targets);
    build.args(PACKAGES_OF_FIRMWARE).args(["--features", features]);
    // How `async` does without compare-and-swap is the program's choice; this is that of one core without threads.
    build.env(
        "CARGO_TARGET_THUMBV6M_NONE_EABI_RUSTFLAGS",
        "--cfg=portable_atomic_unsafe_assume_single_core",
    );
    build
}

/// Our cargo, started by this.
fn cargo(launcher: &[&str], subcommand: &str, targets: &[&str]) -> Command {
    let cargo = run::cargo(&[subcommand, "--locked"]);
    let mut command = Command::new(launcher[0]);
    command.args(&launcher[1..]).arg(cargo.get_program()).args(cargo.get_args());
    // At once, so that no processor waits.
    command.args(targets.iter().flat_map(|target| ["--target", target]));
    // What tunes builds for this machine is not for others.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    // The flag lets a stable compiler take -Z. Each target compiles code that clippy, which sees this machine's, does not.
    command.env("RUSTC_BOOTSTRAP", "1").args(["-Zbinary-dep-depinfo", "-Zwarnings"]);
    command.args(["--config", "build.warnings='deny'", "--config", "profile.dev.debug=0"]);
    command.arg("--target-dir").arg(root().join(TARGET));
    command
}
