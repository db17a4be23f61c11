//! The tests of what needs libibverbs. No device is needed here: tests that want one say so and pass, and then run on
//! the loopback, by its C ABI: that device is there on every machine.

use super::last_words;
use super::libibverbs::{self, ADDR, SELECTION, TESTS, cargo};
use super::libtest::{self, SHOWING, Tests};
use super::preload::Tools;
use crate::run::{Job, Stop};

/// The tests that the stage `test` has not run: those of the transport, and the one that `bench` has with it, which is
/// built with what other stages build.
const ONLY_HERE: [(&str, &str); 2] = [
    ("-p transport-verbs -p transport-verbs-requirements", ""),
    (SELECTION, "--test cqperf -- without_a_device_of_verbs"),
];

/// Builds and runs the tests.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let mut tests = 0;
    for (packages, which) in ONLY_HERE {
        let words = format!("test --profile checker {packages} {which}");
        tests += libtest::run(&format!("cargo {words}"), &mut cargo(&words), job)?;
    }
    let preloaded = preloaded(job)?;
    Ok(format!("{tests} tests without a device, {preloaded}"))
}

/// Why tests are skipped on the loopback, in their words, and why that is so.
const SKIPPED: [(&str, &str); 3] = [
    ("librdmacm can be used", "a test sees what is said where it can't"),
    ("the device is not Soft-RoCE", "its identifiers are InfiniBand's"),
    ("there is no second device", "a fabric has loop0 alone"),
];

/// Runs the transport's own tests there, one program after the other: how many ran, and how many did not.
fn preloaded(job: &mut Job) -> Result<String, Stop> {
    let programs = libibverbs::build(job, TESTS)?;
    let names: Vec<_> = programs.iter().map(|program| program.name.clone()).collect();
    let tools = Tools::of(programs, job)?;
    let mut all = Tests::default();
    for name in names {
        let tests = one(&tools, &name, job)?;
        all.ran += tests.ran;
        for (reason, count) in tests.skipped {
            *all.skipped.entry(reason).or_default() += count;
        }
    }
    in_words(&all).map_err(Stop::Failed)
}

/// Runs the tests of the program of this name.
fn one(tools: &Tools, name: &str, job: &mut Job) -> Result<Tests, Stop> {
    let mut command = tools.command(name)?;
    command.env(ADDR, "127.0.0.1");
    let output = job.run(&format!("{name} by the C ABI"), command.arg(SHOWING))?;
    let tests = Tests::judge(&output, &SKIPPED.map(|(reason, _)| reason));
    tests
        .and_then(|tests| tools.fabric().check_gone().map(|()| tests))
        .map_err(|why| Stop::Failed(format!("{name} by the C ABI: {why}{}", last_words(&output))))
}

/// What came of them, with the reasons; an error where one of these is none any more.
fn in_words(Tests { ran, skipped }: &Tests) -> Result<String, String> {
    if let Some((gone, _)) = SKIPPED.iter().find(|(reason, _)| !skipped.contains_key(*reason)) {
        return Err(format!("no test is skipped any more by the C ABI because {gone}"));
    }
    let count: u32 = skipped.values().sum();
    let line = |(reason, why)| {
        let count = skipped.get(reason)?;
        Some(format!("\n{count} skipped: {reason} ({why})"))
    };
    let lines: String = SKIPPED.into_iter().filter_map(line).collect();
    Ok(format!("{ran} by the C ABI, where {count} are skipped{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_nobody_gives_any_more_is_a_fault() {
        let skipped = SKIPPED.map(|(reason, _)| (reason.to_owned(), 2)).into();
        let mut tests = Tests { ran: 7, skipped };
        let said = in_words(&tests).unwrap();
        assert!(said.starts_with("7 by the C ABI, where 6 are skipped\n"), "{said}");
        assert_eq!(said.lines().count(), 1 + SKIPPED.len());
        tests.skipped.pop_first();
        assert!(in_words(&tests).is_err());
    }
}
