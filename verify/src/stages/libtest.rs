//! What libtest reports of a program's tests.

use std::collections::BTreeSet;
use std::io;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::guest::Program;
use crate::run::{Job, Stop, processors};

/// What a program of tests came to that has succeeded.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tests {
    /// Those that ran, and passed.
    pub passed: u32,
    /// Those that were left out by their names.
    pub left_out: u32,
}

impl Tests {
    /// Those that `output` reports, of one program or several; none is an error.
    pub fn of(output: &str) -> Result<Self, String> {
        match passed(output) {
            0 => Err("no test ran".into()),
            passed => Ok(Self { passed, left_out: sum(output, " filtered out") }),
        }
    }
}

/// Runs the tests of these programs, each in a process of its own, as many side by side as there are processors, and
/// shows what they printed.
pub fn one_by_one(job: &mut Job, programs: &[Program]) -> Result<String, Stop> {
    let mut tests = Vec::new();
    for program in programs {
        let mut list = Command::new(&program.path);
        let list = list.args(["--list", "--format", "terse"]);
        let list = job.ask(&format!("the tests of {}", program.name), list)?;
        let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
        tests.extend(names.map(|name| (program, name.to_owned())));
    }
    let (of, mut said, mut failed) = (tests.len(), String::new(), Vec::new());
    let left = Mutex::new(tests.into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        // The name alone when a test begins, with its result when it is over.
        let (tells, told) = channel::<(String, Option<io::Result<Output>>)>();
        for _ in 0..processors() {
            let tells = tells.clone();
            scope.spawn(move || {
                while let Some((program, name)) = next() {
                    let _nobody_asks_any_more = tells.send((name.clone(), None));
                    let result = alone(program, &name);
                    let _nobody_asks_any_more = tells.send((name, Some(result)));
                }
            });
        }
        drop(tells);
        let (mut over, mut under_way) = (0, BTreeSet::new());
        for (name, result) in told {
            match result {
                None => drop(under_way.insert(name)),
                Some(result) => {
                    let Output { status, stdout, stderr } = result?;
                    for text in [stdout, stderr] {
                        let text = String::from_utf8_lossy(&text);
                        said.push_str(&text);
                        job.log(&text)?;
                    }
                    over += 1;
                    under_way.remove(&name);
                    if !status.success() {
                        failed.push(name);
                    }
                }
            }
            // What hangs is what was under way when this was last said.
            let names: Vec<_> = under_way.iter().map(String::as_str).collect();
            job.progress(&format!("{} ({over} of {of} over)", names.join(", ")));
        }
        match &failed[..] {
            [] => Ok(said),
            failed => Err(Stop::Failed(format!("of {of} tests fail: {}", failed.join(", ")))),
        }
    })
}

fn alone(program: &Program, test: &str) -> io::Result<Output> {
    let mut command = Command::new(&program.path);
    command
        .args(["--exact", test, "--show-output", "--test-threads=1"])
        .stdin(Stdio::null())
        .output()
}

/// How many passed, of all programs.
pub fn passed(output: &str) -> u32 {
    sum(output, " passed")
}

/// The sum of the numbers before this word, in the results of all programs that succeeded.
fn sum(output: &str, word: &str) -> u32 {
    let results = output.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    let parts = results.flat_map(|result| result.split("; "));
    parts.filter_map(|part| part.strip_suffix(word)?.parse::<u32>().ok()).sum()
}

/// Runs a command that runs tests, and counts those that passed; none is a failure.
pub fn run(what: &str, command: &mut Command, job: &mut Job) -> Result<u32, Stop> {
    let tests = Tests::of(&job.run(what, command)?);
    tests.map(|tests| tests.passed).map_err(|why| Stop::Failed(format!("{what}: {why}")))
}

/// The tests that were under way where the output ends, of those that libtest has named since they took long.
pub fn unfinished(output: &str) -> Vec<String> {
    let mut late = Vec::new();
    for line in output.lines().filter_map(|line| line.strip_prefix("test ")) {
        if let Some((name, _)) = line.split_once(" has been running for over") {
            late.push(name.to_owned());
        } else if let Some((over, _)) = line.split_once(" ... ") {
            late.retain(|name| name != over);
        }
    }
    late
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: &str = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured\n";

    #[test]
    fn tests_are_summed_over_binaries_and_none_counts_without_a_result() {
        let doc = "   Doc-tests cq_core\n";
        assert_eq!(passed(&["running 12 tests\n", THREE, doc, THREE].concat()), 6);
        assert_eq!(passed("running 0 tests\ntest result: FAILED. 4 passed; 1 failed"), 0);
        assert!(Tests::of("running 0 tests\n").is_err());
    }

    #[test]
    fn tests_that_were_late_and_did_not_end_are_named() {
        let output = "test a ... ok\ntest b has been running for over 60 seconds\n\
                      test c has been running for over 60 seconds\ntest b ... FAILED\n";
        assert_eq!(unfinished(output), ["c"]);
        assert!(unfinished("test a ... ok\n").is_empty());
    }

    #[test]
    fn what_was_left_out_is_counted() {
        let output = "test a ... ignored, needs a wire\ntest b ... ok\ntest c ... ignored, needs a wire\n\
                      test d ... ignored, takes long\n\
                      test result: ok. 1 passed; 0 failed; 3 ignored; 0 measured; 2 filtered out; finished in 0.1s\n";
        assert_eq!(Tests::of(output), Ok(Tests { passed: 1, left_out: 2 }));
    }
}
