//! The tests of what needs libibverbs: those that need no device, and, on the loopback by its C ABI, those that need one, which
//! libtest ignores: that device is there on every machine.

use std::path::Path;

use super::last_words;
use super::libibverbs::{self, ADDR, SELECTION, TESTS, cargo};
use super::libtest::{self, Tests};
use super::preload::Tools;
use crate::run::{Job, Stop};

/// The tests that the stage `test` has not run: those of the transport, and the one that `bench` has with it, which is
/// built with what other stages build.
const ONLY_HERE: [(&str, &str); 2] = [
    ("-p transport-verbs -p transport-verbs-requirements", ""),
    (SELECTION, "--test cqperf -- without_a_device_of_verbs"),
];

/// The test of a system whose librdmacm can't be used.
pub const WITHOUT_CM: &str = "without_its_module_it_says_so";
/// What is there where librdmacm can be used.
const CM: &str = "/dev/infiniband/rdma_cm";

/// Builds and runs the tests.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let without_cm = format!("--test cm -- --ignored {WITHOUT_CM}");
    let has_cm = Path::new(CM).exists();
    let without_cm = (!has_cm).then_some(("-p transport-verbs", without_cm.as_str()));
    let mut tests = 0;
    for (packages, which) in ONLY_HERE.into_iter().chain(without_cm) {
        let words = format!("test --profile checker {packages} {which}");
        tests += libtest::run(&format!("cargo {words}"), &mut cargo(&words), job)?;
    }
    let lacks =
        if has_cm { format!(" but {WITHOUT_CM}, since {CM} is there") } else { String::new() };
    Ok(format!("{tests} tests without a device{lacks}, {}", preloaded(job)?))
}

/// The tests that are left out on the loopback, and why.
const LEFT_OUT: [(&str, &str); 3] = [
    (WITHOUT_CM, "librdmacm can be used"),
    ("the_best_gid_of_soft_roce_is_the_one_of_its_ipv4_address", "loop0 is not Soft-RoCE"),
    ("a_queue_pair_of_another_device_is_refused", "a fabric has loop0 alone"),
];

/// Runs the transport's own tests there, one program after the other: how many ran, and which did not.
fn preloaded(job: &mut Job) -> Result<String, Stop> {
    let programs = libibverbs::build(job, TESTS)?;
    let names: Vec<_> = programs.iter().map(|program| program.name.clone()).collect();
    let tools = Tools::of(programs, job)?;
    let mut all = Tests::default();
    for name in names {
        let tests = one(&tools, &name, job)?;
        all.passed += tests.passed;
        all.left_out += tests.left_out;
    }
    in_words(&all).map_err(Stop::Failed)
}

/// Runs the tests of the program of this name.
fn one(tools: &Tools, name: &str, job: &mut Job) -> Result<Tests, Stop> {
    let mut command = tools.command(name)?;
    command.env(ADDR, "127.0.0.1").arg("--include-ignored");
    command.args(LEFT_OUT.iter().flat_map(|(test, _)| ["--skip", test]));
    let output = job.run(&format!("{name} by the C ABI"), &mut command)?;
    Tests::of(&output)
        .and_then(|tests| tools.fabric().check_gone().map(|()| tests))
        .map_err(|why| Stop::Failed(format!("{name} by the C ABI: {why}{}", last_words(&output))))
}

/// What came of them; an error where one that is left out is none any more.
fn in_words(Tests { passed, left_out }: &Tests) -> Result<String, String> {
    let listed = LEFT_OUT.len();
    if usize::try_from(*left_out) != Ok(listed) {
        return Err(format!("{left_out} tests are left out by the C ABI, and {listed} are listed"));
    }
    let line = |(test, why)| format!("\n{test} is left out: {why}");
    let lines: String = LEFT_OUT.into_iter().map(line).collect();
    Ok(format!("{passed} by the C ABI, where {left_out} are left out{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_left_out_and_not_there_is_a_fault() {
        let tests = |left_out| Tests { passed: 7, left_out };
        let said = in_words(&tests(3)).unwrap();
        assert!(said.starts_with("7 by the C ABI, where 3 are left out\n"), "{said}");
        assert_eq!(said.lines().count(), 1 + LEFT_OUT.len());
        assert!(in_words(&tests(2)).is_err());
    }
}
