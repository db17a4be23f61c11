//! The engine's tests in Miri, an interpreter that knows which memory is initialised, who may access it through which
//! pointer, and which accesses race; and that delivers old values of atomics where the orderings allow them.

use super::{libtest, toolchain};
use crate::run::{Job, Stop};

/// Tree borrows, and no integer that becomes a pointer. Time is counted in steps and nothing comes from outside, so that a
/// seed says what happens; system calls that would reach outside fail.
const FLAGS: &str = "-Zmiri-tree-borrows -Zmiri-strict-provenance -Zmiri-isolation-error=hide \
                     -Zmiri-env-set=PROPTEST_CASES=1";

/// The programs of tests, in cargo's words.
const PROGRAMS: &str = "-p cq-core -p cq-verbs --test engine --test verbs";
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

/// Runs the tests with the one seed, or with many.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    toolchain::nightly(job)?;
    let seeds = if job.long { SEEDS } else { 1 };
    let mut miri = toolchain::cargo(toolchain::NIGHTLY);
    miri.args(["miri", "test", "--locked"]).args(PROGRAMS.split_whitespace());
    miri.args(MORE_PROGRAMS.split_whitespace().filter(|_| job.long));
    miri.arg("--").args(MODULES).args(MORE.iter().filter(|_| job.long));
    let seeded = match job.long {
        true => format!("-Zmiri-many-seeds={}..{}", job.seed, job.seed + seeds),
        false => format!("-Zmiri-seed={}", job.seed),
    };
    miri.env("MIRIFLAGS", format!("{FLAGS} {seeded}")).env("CARGO_TARGET_DIR", "target/miri");
    let tests = libtest::run("cargo miri test", &mut miri, job)?;
    Ok(format!("{tests} tests, {seeds} seeds; each that is not for Miri says why in its source"))
}
