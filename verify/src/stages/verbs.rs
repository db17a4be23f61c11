//! The tests of what needs libibverbs. No device is needed here: tests that want one say so and pass, and then run on
//! the loopback (`preloaded`).

use super::libibverbs::cargo;
use super::libtest::passed;
use crate::run::{Job, Stop};

mod preloaded;

/// The tests that the stage `test` has not run: those of the transport, and the one that `bench` has with it.
const ONLY_HERE: [&str; 2] = [
    "test --profile checker -p transport-verbs -p transport-verbs-requirements",
    "test --profile checker -p bench --features=bench/verbs --test cqperf -- without_a_device_of_verbs",
];

/// Builds and runs the tests.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let mut tests = 0;
    for words in ONLY_HERE {
        match passed(&job.run(&format!("cargo {words}"), &mut cargo(words))?) {
            0 => return Err(Stop::Failed("no test ran".into())),
            passed => tests += passed,
        }
    }
    let preloaded = preloaded::run(job)?;
    Ok(format!("{tests} tests without a device, {preloaded}"))
}
