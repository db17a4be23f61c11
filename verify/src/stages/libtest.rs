//! What libtest says of a program's tests. One that does not find what it needs prints `skipped: ` and the reason,
//! and passes: it is told from those that ran only where their output is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::guest::Program;
use crate::run::{Job, Stop, processors};

/// Has libtest show what tests printed that passed.
pub const SHOWING: &str = "--show-output";

/// How many tests there were.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tests {
    /// That ran, and passed.
    pub ran: u32,
    /// That were skipped, by the reason that they gave first.
    pub skipped: BTreeMap<String, u32>,
}

impl Tests {
    /// Those of a program that succeeded. An error where none ran, or one was skipped for a reason that is not among
    /// these.
    pub fn judge(output: &str, reasons: &[&str]) -> Result<Self, String> {
        let unknown = |reason: &&str| !reasons.contains(reason);
        if let Some(reason) = output.lines().filter_map(reason).find(unknown) {
            return Err(format!("a test was skipped that must not be: {reason}"));
        }
        let skipped = skipped(output);
        match passed(output).saturating_sub(skipped.values().sum()) {
            0 => Err("no test ran".into()),
            ran => Ok(Self { ran, skipped }),
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
    command.args(["--exact", test, SHOWING, "--test-threads=1"]).stdin(Stdio::null()).output()
}

/// The sum over all test binaries.
pub fn passed(output: &str) -> u32 {
    let results = output.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    results.filter_map(|rest| rest.split_once(" passed")?.0.parse::<u32>().ok()).sum()
}

/// Runs a command that runs tests, and counts those that passed; none is a failure.
pub fn run(what: &str, command: &mut Command, job: &mut Job) -> Result<u32, Stop> {
    match passed(&job.run(what, command)?) {
        0 => Err(Stop::Failed(format!("{what}: no test ran"))),
        count => Ok(count),
    }
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

fn reason(line: &str) -> Option<&str> {
    line.strip_prefix("skipped: ")
}

fn skipped(output: &str) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    let mut is_told = false;
    for line in output.lines() {
        if line.starts_with("---- ") {
            // Here begins what another test printed.
            is_told = false;
        } else if let (Some(reason), false) = (reason(line), is_told) {
            *all.entry(reason.to_owned()).or_default() += 1;
            is_told = true;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: &str = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured\n";

    fn said(test: &str, text: &str) -> String {
        format!("---- {test} stdout ----\n{text}\n\n")
    }

    #[test]
    fn tests_are_summed_over_binaries_and_none_counts_without_a_result() {
        let doc = "   Doc-tests cq_core\n";
        assert_eq!(passed(&["running 12 tests\n", THREE, doc, THREE].concat()), 6);
        assert_eq!(passed("running 0 tests\ntest result: FAILED. 4 passed; 1 failed"), 0);
        assert!(Tests::judge("running 0 tests\n", &[]).is_err());
    }

    #[test]
    fn tests_that_were_late_and_did_not_end_are_named() {
        let output = "test a ... ok\ntest b has been running for over 60 seconds\n\
                      test c has been running for over 60 seconds\ntest b ... FAILED\n";
        assert_eq!(unfinished(output), ["c"]);
        assert!(unfinished("test a ... ok\n").is_empty());
    }

    #[test]
    fn what_was_skipped_did_not_run() {
        let output = said("a", "skipped: no wire\nskipped: no wire") + &said("b", "words") + THREE;
        let tests = Tests::judge(&output, &["no wire"]).unwrap();
        assert_eq!(tests, Tests { ran: 2, skipped: [("no wire".to_owned(), 1)].into() });
        let all = ["a", "b", "c"].map(|test| said(test, "skipped: no wire")).concat() + THREE;
        assert_eq!(Tests::judge(&all, &["no wire"]), Err("no test ran".to_owned()));
    }

    #[test]
    fn a_reason_that_nobody_knows_is_a_fault_wherever_it_stands() {
        let behind = said("a", "skipped: no wire\nskipped: no time") + THREE;
        let alone = format!("skipped: no time\n{THREE}");
        for output in [behind, alone] {
            assert!(Tests::judge(&output, &["no wire"]).unwrap_err().ends_with("no time"));
        }
    }
}
