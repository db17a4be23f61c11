//! cq-core without an operating system, for targets that rustup has core for. Firmware with it also runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::{artifacts, toolchain};
use crate::run::{self, Job, Stop, root};

mod cost;
mod firmware;

/// Boards, and in the second package those with RISC-V.
pub const PACKAGES: &[&str] = &["qemu-system-arm", "qemu-system-misc"];

/// For the libraries.
const TARGETS: [&str; 6] = [
    "thumbv7em-none-eabihf",
    "thumbv6m-none-eabi",
    "riscv32imac-unknown-none-elf",
    "riscv32imc-unknown-none-elf",
    "aarch64-unknown-none",
    "x86_64-unknown-none",
];
/// Where cargo has flags for the two that have no compare-and-swap.
const WITHOUT_CAS: [&str; 2] = [
    "CARGO_TARGET_THUMBV6M_NONE_EABI_RUSTFLAGS",
    "CARGO_TARGET_RISCV32IMC_UNKNOWN_NONE_ELF_RUSTFLAGS",
];
/// What firmware and its tests are made of.
const PACKAGES_OF_FIRMWARE: [&str; 6] = ["-p", "cq-core", "-p", "cq-verbs", "-p", "cq-testing"];
/// The sets of features that build for every target, and whether they need an allocator.
const FEATURES: [(&str, bool); 3] = [
    ("", false),
    ("cq-core/async,cq-verbs/defmt,cq-verbs/heapless,cq-verbs/serde", false),
    ("cq-core/portable-atomic,cq-core/async,cq-verbs/alloc,cq-verbs/defmt,cq-verbs/serde", true),
];

const TARGET: &str = "target/bare-metal";

/// Checks for every target with every set of features, and runs the firmware.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    toolchain::targets(job, &[&TARGETS[..], &[firmware::OF_RTIC]].concat())?;
    for (features, needs_alloc) in FEATURES {
        let what = format!("cargo check with {features:?}");
        let built = artifacts::build(job, &what, &mut check(features))?;
        for target in TARGETS {
            let has_alloc = reads(&built, target, "liballoc-")?;
            if !reads(&built, target, "libcore-")? || has_alloc != needs_alloc {
                let what = format!("{features:?} on {target} reads liballoc: {has_alloc}");
                return Err(Stop::Failed(what));
            }
        }
    }
    let (ran, cost) = (firmware::run(job)?, cost::run(job)?);
    let (targets, sets) = (TARGETS.join(", "), FEATURES.len());
    Ok(format!("{} targets: {targets}; {sets} sets of features; {ran}; {cost}", TARGETS.len()))
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

/// Checks what firmware and its tests are made of, for every target.
fn check(features: &str) -> Command {
    let mut check = cargo(&["env"], "check", &TARGETS);
    check.args(PACKAGES_OF_FIRMWARE).args(["--features", features]);
    // How `async` does without compare-and-swap is the program's choice; this is that of one core without threads.
    for flags in WITHOUT_CAS {
        check.env(flags, "--cfg=portable_atomic_unsafe_assume_single_core");
    }
    check
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
