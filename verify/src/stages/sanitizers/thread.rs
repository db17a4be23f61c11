//! ThreadSanitizer: the threads of the engine's tests, and of the device's within one process.

use super::cargo;
use crate::run::{Job, Stop, root};
use crate::stages::libtest;

/// What it is not to say, each with the reason.
const SUPPRESSIONS: &str = "verify/src/stages/sanitizers/races.txt";

/// The programs of tests of the engine and of the device, in cargo's words. At once, so that what they are made of is built
/// once.
const PROGRAMS: &str =
    "-p cq-core -p cq-verbs -p transport-rxe-loop --test engine --test verbs --test device";

/// Which of these tests run: those with threads. Of the others, many of the device's have messages race for memory, as
/// programs may and ThreadSanitizer accuses.
const TESTS: [&str; 9] = [
    "queue::",
    "channel::",
    "descriptor::",
    "cq::",
    "ends::",
    "threads::",
    "events::",
    "srq::",
    "counters::p08",
];

/// How many cases a property has on a commit: each takes ten times as long as without.
const CASES: &str = "16";

/// Runs the tests of both packages: how many that were.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let mut test = cargo("thread", "test");
    // The standard library, too: of one without, it would not see what its locks order.
    test.arg("-Zbuild-std").args(PROGRAMS.split_whitespace()).arg("--").args(TESTS);
    if !job.long {
        test.env("PROPTEST_CASES", CASES);
    }
    let suppressions = root().join(SUPPRESSIONS);
    test.env("TSAN_OPTIONS", format!("suppressions={}", suppressions.display()));
    let count = libtest::run("engine and device under ThreadSanitizer", &mut test, job)?;
    Ok(format!("{count} tests of engine and device under ThreadSanitizer"))
}
