//! cq-core without an operating system, built with Debian's toolchain: it ships the source of core for
//! its compiler, and so needs no precompiled target. Firmware with it also runs.

use std::env;
use std::ffi::OsStr;
use std::process::Command;

use crate::run::{Job, Stop, root};

mod firmware;

/// What brings the compiler, its cargo and the source of core; a linker, which that compiler lacks for other targets;
/// and a board.
pub const PACKAGES: &[&str] = &["rustc-web", "cargo-web", "rust-web-src", "lld", "qemu-system-arm"];

const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";

const TARGETS: [&str; 4] =
    ["thumbv7em-none-eabihf", "thumbv6m-none-eabi", "aarch64-unknown-none", "x86_64-unknown-none"];

/// Builds for every target, and runs the firmware.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let version = job.run("rustc --version", Command::new(RUSTC).arg("--version"))?;
    let version = version.trim();
    let needed = env!("CARGO_PKG_RUST_VERSION");
    if release(version) < release(needed) {
        return Err(Stop::Skipped(format!(
            "{RUSTC} is {version}, {needed} is needed: Debian's security archive has a newer one"
        )));
    }
    job.run("cargo build for all targets", &mut build(&TARGETS))?;
    job.run("cargo build with alloc", &mut build_with_alloc())?;
    let ran = firmware::run(job)?;
    Ok(format!("{} targets: {}; {ran}", TARGETS.len(), TARGETS.join(", ")))
}

/// Builds cq-core.
fn build(targets: &[&str]) -> Command {
    let mut command = cargo(&["env"], "build", targets);
    // Tasks, logs, handlers and the tests of firmware have what they need without an operating system, too.
    command.args([
        "-p",
        "cq-core",
        "--features",
        "defmt,heapless,log,portable-atomic,stream,test-util",
    ]);
    command
}

/// Builds cq-core with an allocator for a target without compare-and-swap, which has no `Arc`.
fn build_with_alloc() -> Command {
    let mut command = cargo(&["env"], "build", &["thumbv6m-none-eabi"]);
    command.args(["-Zbuild-std=core,alloc", "-p", "cq-core", "--features", "alloc"]);
    command
}

/// Debian's cargo, started by this. Nothing but core is built for the targets, and `extern crate alloc` finds no crate
/// unless that is asked for, too: that a build without it passes shows that there is no allocation. All that it builds has
/// the same settings, so that core is built once.
fn cargo(launcher: &[&str], subcommand: &str, targets: &[&str]) -> Command {
    let mut command = Command::new(launcher[0]);
    for (name, _) in env::vars_os().filter(|(name, _)| belongs_to_the_toolchain(name)) {
        command.env_remove(name);
    }
    // The bootstrap flag lets a stable compiler take -Z; the path keeps rustup's proxies away.
    command.env("PATH", "/usr/bin:/bin").env("RUSTC", RUSTC).env("RUSTC_BOOTSTRAP", "1");
    command.args(&launcher[1..]).args([CARGO, subcommand, "--locked", "-Zbuild-std=core"]);
    // At once, so that no processor waits for the one that compiles core.
    command.args(targets.iter().flat_map(|target| ["--target", target]));
    for target in ["THUMBV7EM_NONE_EABIHF", "THUMBV6M_NONE_EABI"] {
        command.env(format!("CARGO_TARGET_{target}_LINKER"), "ld.lld");
    }
    // How `async` does without compare-and-swap is the program's choice; this is that of one core without threads.
    command.env(
        "CARGO_TARGET_THUMBV6M_NONE_EABI_RUSTFLAGS",
        "--cfg=portable_atomic_unsafe_assume_single_core",
    );
    // Each target compiles code that clippy, which sees this machine's, does not.
    command.args(["-Zwarnings", "--config", "build.warnings='deny'"]);
    command.args(["--config", "profile.dev.debug=0", "--target-dir"]);
    command.arg(root().join("target/bare-metal"));
    command
}

/// Whether the variable comes from the cargo around us, or tunes builds for this machine: neither may
/// reach the other toolchain. How to reach the registry may.
fn belongs_to_the_toolchain(name: &OsStr) -> bool {
    const REGISTRY: [&str; 4] = ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR"];
    let name = name.to_string_lossy();
    let is = |prefix: &&str| name.starts_with(*prefix);
    ["CARGO", "RUST", "LD_LIBRARY_PATH"].iter().any(is) && !REGISTRY.iter().any(is)
}

/// The first version number in `text`, as far as it is ordered here: major and minor.
fn release(text: &str) -> Option<(u32, u32)> {
    let number =
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = number.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers_and_one_that_cannot_be_read_is_too_old() {
        let debian = release("rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)");
        assert_eq!(debian, Some((1, 96)));
        assert!(release("rustc 1.100.0") > release("1.87"));
        for old in ["rustc 1.85.1 (Debian)", "rustc: cannot open shared object file"] {
            assert!(release(old) < release("1.87"));
        }
    }

    #[test]
    fn the_outer_toolchain_does_not_leak_and_the_registry_stays_reachable() {
        for name in ["CARGO", "CARGO_PKG_NAME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "LD_LIBRARY_PATH"]
        {
            assert!(belongs_to_the_toolchain(OsStr::new(name)), "{name}");
        }
        for name in ["CARGO_HOME", "CARGO_NET_OFFLINE", "HOME", "https_proxy"] {
            assert!(!belongs_to_the_toolchain(OsStr::new(name)), "{name}");
        }
    }
}
