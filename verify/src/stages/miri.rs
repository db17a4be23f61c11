//! The engine's tests in Miri, an interpreter that knows which memory is initialised, who may access it through which
//! pointer, and which accesses race; and that delivers old values of atomics where the orderings allow them.

use std::process::Command;

use super::{libtest, toolchain};
use crate::run::{Job, Stop};

/// Tree borrows, and no integer that becomes a pointer. Time is counted in steps and nothing comes from outside, so that a
/// seed says what happens; system calls that would reach outside fail.
const FLAGS: &str = "-Zmiri-tree-borrows -Zmiri-strict-provenance -Zmiri-isolation-error=hide \
                     -Zmiri-env-set=PROPTEST_CASES=1";

/// The programs of tests, in cargo's words.
const PROGRAMS: &str = "-p cq-core -p cq-verbs --test engine --test verbs";
/// Those of the engine alone.
const ENGINE: &str = "-p cq-core --test engine --features async,std";
/// Those that `--long` has beside them.
const MORE_PROGRAMS: &str = "-p cq-testing --test testing";

/// The modules of the engine's tests that are run: on a commit those of what has unsafe code or is built on it.
const MODULES: [&str; 7] =
    ["queue::", "channel::", "cq::", "shared_cq::", "ledger::", "budget::", "tracked::"];
/// Those that `--long` runs beside them.
const MORE: [&str; 7] =
    ["counters::", "ends::", "fake::", "handlers::", "observe::", "wc::", "wr::"];
/// With how many seeds that is.
const SEEDS: u64 = 64;

/// A target whose words are aligned to half of their size.
const HALF_ALIGNED: [&str; 2] = ["--target", "i686-unknown-linux-gnu"];
/// Where there are no 64-bit atomics, polls and pushes go other ways.
const SMALL: &str = "--cfg cq_core_word32";

/// Runs the tests with the one seed, or with many; and what copies entries, on the other targets.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    toolchain::nightly(job)?;
    let seeds = if job.long { SEEDS } else { 1 };
    let mut all = miri(PROGRAMS);
    all.args(MORE_PROGRAMS.split_whitespace().filter(|_| job.long));
    all.arg("--").args(MODULES).args(MORE.iter().filter(|_| job.long));
    let seeded = match job.long {
        true => format!("-Zmiri-many-seeds={}..{}", job.seed, job.seed + seeds),
        false => format!("-Zmiri-seed={}", job.seed),
    };
    all.env("MIRIFLAGS", format!("{FLAGS} {seeded}"));
    let mut tests = libtest::run("cargo miri test", &mut all, job)?;
    let mut half_aligned = miri(ENGINE);
    half_aligned.args(HALF_ALIGNED).args(["--", "queue::entries::"]);
    tests += libtest::run("cargo miri test for i686", &mut half_aligned, job)?;
    let mut small = miri(ENGINE);
    small.args(["--", "queue::one::"]);
    small.env("RUSTFLAGS", SMALL).env("CARGO_TARGET_DIR", "target/miri/small");
    tests += libtest::run("cargo miri test without 64-bit atomics", &mut small, job)?;
    Ok(format!("{tests} tests, {seeds} seeds; each that is not for Miri says why in its source"))
}

fn miri(programs: &str) -> Command {
    let mut miri = toolchain::cargo(toolchain::NIGHTLY);
    miri.args(["miri", "test", "--locked"]).args(programs.split_whitespace());
    miri.env("MIRIFLAGS", FLAGS).env("CARGO_TARGET_DIR", "target/miri");
    miri
}
