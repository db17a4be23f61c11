//! ThreadSanitizer: the threads of the engine's tests, and of the device's within one process.

use super::cargo;
use crate::run::{Job, Stop, root};
use crate::stages::libtest;

/// What it is not to say, each with the reason.
const SUPPRESSIONS: &str = "verify/src/stages/sanitizers/races.txt";

/// Of a package, the program of tests, and which of them run on a commit: those with threads. With `--long` all of them
/// do.
const PROGRAMS: [(&str, &str, &[&str]); 2] = [
    (
        "cq-core",
        "engine",
        &["queue::", "channel::", "cq::", "shared_cq::", "counters::p08", "ends::"],
    ),
    ("transport-rxe-loop", "device", &["threads", "events::", "srq::"]),
];

/// How many cases a property has then: each takes ten times as long as without.
const CASES: &str = "16";

/// Runs the tests of both packages: how many that were.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let suppressions = root().join(SUPPRESSIONS);
    let mut counts = Vec::new();
    for (package, program, tests) in PROGRAMS {
        let mut test = cargo("thread", "test");
        // The standard library, too: of one without, it would not see what its locks order.
        test.args(["-Zbuild-std", "-p", package, "--test", program, "--"]);
        if !job.long {
            test.args(tests).env("PROPTEST_CASES", CASES);
        }
        test.env("TSAN_OPTIONS", format!("suppressions={}", suppressions.display()));
        let count = libtest::run(&format!("{program} under ThreadSanitizer"), &mut test, job)?;
        counts.push(format!("{count} of {package}"));
    }
    Ok(format!("{} under ThreadSanitizer", counts.join(" and ")))
}
