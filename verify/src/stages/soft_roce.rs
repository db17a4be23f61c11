//! Everything on real verbs: libibverbs and Linux's Soft-RoCE driver, in a [guest](crate::guest), or on this machine's own
//! [kernel](crate::guest::machine). And [connecting](cells) there and on the loopback, compared.

use serde_json::Value;

use super::libtest::Tests;
use super::verbs::WITHOUT_CM;
use super::{last_words, libibverbs};
use crate::guest::machine::Machine;
use crate::guest::tasks::{End, Ran, Task};
use crate::guest::{Guest, Load, Program};
use crate::run::{Job, Stop};

mod cells;
mod machine;

/// What is to be seen on one host, or between two.
type Check = (Task, Judge);

/// What the output of a task that succeeded shows, in words, or why it does not show what it must.
type Judge = fn(&str) -> Result<String, String>;

/// What cqperf measures: the name, and what it is told.
type Measured = (&'static str, &'static str);

/// What it measures on one host, beside the tests.
const ALONE: [Measured; 7] = [
    ("ping-pong", "pingpong --iters 500"),
    ("ping-pong by events", "pingpong --events --iters 500"),
    ("stream by a GID", "--gid 1 stream --iters 2000"),
    ("ping-pong of WRITEs in the heap", "pingpong --op write --memory heap --iters 500"),
    ("stream of READs", "stream --op read --iters 2000"),
    ("atomics by events", "stream --op faa --events --iters 2000"),
    ("two processes", "pingpong --op cas --processes 2 --iters 500"),
];

/// What it measures from the second of two hosts to the first.
const WIRED: [Measured; 2] = [
    ("two hosts", "--connect 10.0.0.1 pingpong --iters 500"),
    ("two hosts, stream by events", "--connect 10.0.0.1 stream --events --iters 2000"),
];

/// Another check: name, seconds, command, judge.
type Row = (&'static str, u32, &'static str, Judge);

/// What else runs on one host.
const OTHERS: [Row; 7] = [
    ("no such device", 10, "cqperf --transport verbs --device none pingpong; [ $? = 3 ]", one_line),
    ("differential", 200, "differential --transport verbs", said),
    ("replicated log", 60, "replicated_log verbs", said),
    ("instructions of a poll", 180, "poll_cost", all_said),
    // Each once: times under emulation say nothing.
    ("bench transport", 60, "transport --bench --test", succeeded),
    ("devices", 10, "rdma link", said),
    // It leaves processes behind that the driver keeps for a while.
    (CELLS, 180, cells::COMMAND, succeeded),
];
/// What is compared with the loopback.
const CELLS: &str = "connecting";

/// What the first of two hosts runs.
const LISTENS: [Row; 3] = [
    ("listener", 60, "cqperf --transport verbs --device $WIRED_DEVICE --listen", succeeded),
    ("listener again", 60, "cqperf --transport verbs --device $WIRED_DEVICE --listen", succeeded),
    ("rdma_cm listener", 60, "cm_echo --listen 10.0.0.1:7471", succeeded),
];
const CONNECTS: Row =
    ("two hosts by rdma_cm", 60, "until cm_echo --connect 10.0.0.1:7471; do sleep 1; done", said);

/// What each test binary and each measurement may take, in seconds.
const PATIENCE: u32 = 60;

/// What it needs beside that: the tool that counts instructions.
pub const PACKAGES: &[&str] = &["valgrind"];

/// callgrind, which counts instructions.
const VALGRIND: &[&str] = &[
    "/usr/bin/valgrind",
    "/usr/bin/valgrind.bin",
    "/usr/libexec/valgrind/callgrind-amd64-linux",
    "/usr/libexec/valgrind/default.supp",
    "/usr/libexec/valgrind/vgpreload_core-amd64-linux.so",
];

/// Builds, runs, judges.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let tests = libibverbs::build(job, libibverbs::TESTS)?;
    let programs = libibverbs::programs(job)?;
    let connecting = cells::build(job)?;
    let here = cells::here(&connecting, job)?;
    let checks = checks(&tests);
    let tasks = |checks: &Vec<Check>| checks.iter().map(|(task, _)| task.clone()).collect();
    let lists = ["alone", "first", "second"].into_iter().zip(checks.iter().map(tasks));
    let load = Load {
        files: VALGRIND,
        lists: lists.chain([(machine::LIST, machine::tasks())]).collect(),
        programs: [tests, programs, vec![connecting]].concat(),
    };
    let guest = Guest::prepare("soft-roce", &load, job)?;
    let (ran, place) = match Machine::find(job)? {
        Some(machine) => (machine.run("alone", &load, job)?, format!("on {machine}")),
        None => (guest.run("alone", job)?, "in a guest".to_owned()),
    };
    let [first, second] = guest.run_wired(["first", "second"], job)?;
    let words = judge(checks.iter().flatten().zip(ran.iter().chain(&first).chain(&second)))?;
    let linux = ran.iter().find(|ran| ran.name == CELLS).map_or("", |ran| &ran.output);
    let compared = cells::compare(&here, linux).map_err(Stop::Failed)?;
    Ok(format!(
        "{} checks {place}, and between two guests; connecting: {compared}\n{}",
        words.len(),
        words.join("\n")
    ))
}

/// What one host does, and what the first and the second of two do.
fn checks(tests: &[Program]) -> [Vec<Check>; 3] {
    let alone = ALONE.map(|(name, told)| {
        (name, format!("cqperf --transport verbs --device $VERBS_DEVICE {told} --json"))
    });
    let connects = WIRED.map(|(name, told)| {
        let cqperf = format!("cqperf --transport verbs --device $WIRED_DEVICE {told} --json");
        (name, format!("until {cqperf}; do sleep 1; done"))
    });
    let connects = connects.into_iter().map(measured).chain([check(CONNECTS)]);
    [
        tests.iter().map(tests_of).chain(alone.map(measured)).chain(OTHERS.map(check)).collect(),
        LISTENS.map(check).into(),
        connects.chain(machine::TRIED.map(check)).collect(),
    ]
}

fn measured((name, command): (&str, String)) -> Check {
    (Task { name: name.to_owned(), seconds: PATIENCE, command }, verified)
}

fn check((name, seconds, command, judge): Row) -> Check {
    (Task { name: name.to_owned(), seconds, command: command.to_owned() }, judge)
}

/// The check that the tests of this binary pass.
fn tests_of(binary: &Program) -> Check {
    let left_out = LEFT_OUT.map(|test| format!(" --skip {test}")).concat();
    let command = format!("exec {} --include-ignored{left_out}", binary.name);
    (Task { name: format!("tests: {}", binary.name), seconds: PATIENCE, command }, tests_ran)
}

/// What each check showed, or everything that was not as it should be.
fn judge<'a>(ran: impl Iterator<Item = (&'a Check, &'a Ran)>) -> Result<Vec<String>, Stop> {
    let (mut words, mut faults) = (Vec::new(), Vec::new());
    for ((_, judge), Ran { name, output, end }) in ran {
        let judged = match end {
            End::Status(0) => judge(output),
            _ => Err(end.to_string()),
        };
        match judged {
            Ok(shown) => words.push(format!("{name}: {shown}")),
            Err(why) => faults.push(format!("{name}: {why}{}", last_words(output))),
        }
    }
    if faults.is_empty() { Ok(words) } else { Err(Stop::Failed(faults.join("\n"))) }
}

/// Something was printed: its last line.
fn said(output: &str) -> Result<String, String> {
    output.lines().last().map(str::to_owned).ok_or_else(|| "it printed nothing".to_owned())
}

/// Something was printed: all of it.
fn all_said(output: &str) -> Result<String, String> {
    said(output).map(|_| output.replace('\n', "\n  "))
}

/// What went wrong was said in one line: that.
fn one_line(output: &str) -> Result<String, String> {
    match output.lines().count() {
        1 => Ok(output.to_owned()),
        lines => Err(format!("it said {lines} lines instead of one")),
    }
}

/// Nothing more is asked than that it succeeded.
fn succeeded(_: &str) -> Result<String, String> {
    Ok("done".into())
}

/// The tests that a guest can't run: there is no C compiler, and librdmacm can be used.
const LEFT_OUT: [&str; 2] = ["sys::layout::tests", WITHOUT_CM];

/// libtest's tests ran.
fn tests_ran(output: &str) -> Result<String, String> {
    Tests::of(output).map(|tests| format!("{} passed", tests.passed))
}

/// cqperf's reports, one or several, say that every byte was right.
fn verified(output: &str) -> Result<String, String> {
    let json = output.find(['{', '[']).map_or("", |start| &output[start..]);
    let report: Value =
        serde_json::from_str(json).map_err(|error| format!("no report: {error}"))?;
    let reports = report.as_array().map_or(std::slice::from_ref(&report), Vec::as_slice);
    match reports.iter().all(|report| report["verified"] == true) {
        true if !reports.is_empty() => Ok("verified".into()),
        _ => Err("not verified".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(judge: Judge, end: End, output: &str) -> Result<Vec<String>, String> {
        let check = check(("it", 1, "it", judge));
        let ran = Ran { name: "it".into(), output: output.into(), end };
        super::judge([(&check, &ran)].into_iter()).map_err(|stop| stop.to_string())
    }

    #[test]
    fn a_report_must_say_that_every_byte_was_right() {
        let report = |text: &str| judged(verified, End::Status(0), text);
        let retried = "cqperf: cannot connect\n{\"verified\":true}";
        assert_eq!(report(retried), Ok(vec!["it: verified".to_owned()]));
        assert!(report(r#"[{"verified":true},{"verified":true}]"#).is_ok());
        for wrong in ["", "[]", r#"{"done":5}"#, r#"{"verified":"true"}"#, r#"{"verified":tr"#] {
            assert!(report(wrong).is_err(), "{wrong}");
        }
        assert!(report(r#"[{"verified":true},{"verified":false}]"#).is_err());
    }

    #[test]
    fn tests_must_have_run() {
        let tests = |text: &str| judged(tests_ran, End::Status(0), text);
        const TWO: &str = "test result: ok. 2 passed; 0 failed;\n";
        assert_eq!(tests(TWO), Ok(vec!["it: 2 passed".to_owned()]));
        assert!(tests("running 0 tests\n").is_err());
    }

    #[test]
    fn what_did_not_succeed_is_not_judged_by_what_it_printed() {
        for (end, why) in [(End::Status(3), "exit status 3"), (End::Killed, "its time was over")] {
            let fault = judged(succeeded, end, "all is well\nso far").unwrap_err();
            assert!(fault.starts_with("it: ") && fault.contains(why), "{fault}");
            assert!(fault.ends_with("\n  all is well\n  so far"), "{fault}");
        }
    }
}
