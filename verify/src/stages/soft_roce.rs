//! Everything on real verbs: libibverbs and Linux's Soft-RoCE driver, in a [guest](crate::guest).

use std::path::PathBuf;

use serde_json::Value;

use super::libtest::{SHOWING, Tests};
use super::{last_words, libibverbs};
use crate::guest::tasks::{End, Ran, Task};
use crate::guest::{Guest, Load, Program};
use crate::run::{Job, Stop};

/// What is to be seen in the guest, or between two of them.
struct Check {
    task: Task,
    judge: Judge,
}

/// What the output of a task that succeeded shows, in words, or why it does not show what it must.
type Judge = fn(&str) -> Result<String, String>;

/// What makes the other programs, in cargo's words.
const PROGRAMS: &str = "build --profile checker --bins --examples --bench=transport";

/// A row of a table of checks: name, seconds, command, judge.
type Row = (&'static str, u32, &'static str, Judge);

/// What runs beside the tests.
const ALONE: &[Row] = &[
    ("devices", 10, "rdma link", said),
    ("ping-pong", 60, "cqperf --transport verbs pingpong --iters 500 --json", verified),
    (
        "ping-pong by events",
        60,
        "cqperf --transport verbs pingpong --events --iters 500 --json",
        verified,
    ),
    (
        "stream by a GID",
        60,
        "cqperf --transport verbs --device rxe0 --gid 1 stream --iters 2000 --json",
        verified,
    ),
    (
        "ping-pong of WRITEs in the heap",
        60,
        "cqperf --transport verbs pingpong --op write --memory heap --iters 500 --json",
        verified,
    ),
    (
        "stream of READs",
        60,
        "cqperf --transport verbs stream --op read --iters 2000 --json",
        verified,
    ),
    (
        "atomics by events",
        60,
        "cqperf --transport verbs stream --op faa --events --iters 2000 --json",
        verified,
    ),
    (
        "two processes",
        60,
        "cqperf --transport verbs pingpong --op cas --processes 2 --iters 500 --json",
        verified,
    ),
    ("no such device", 10, "cqperf --transport verbs --device none pingpong; [ $? = 3 ]", one_line),
    ("differential", 200, "differential --transport verbs", said),
    ("replicated log", 60, "replicated_log verbs", said),
    ("instructions of a poll", 180, "poll_cost", all_said),
    // It is seen to work; times under emulation say nothing.
    ("bench transport", 180, "transport --bench --quick", succeeded),
];

/// What the first of two hosts runs, and what the second runs at the same time.
const WIRED: [&[Row]; 2] = [
    &[
        ("listener", 60, "cqperf --transport verbs --device rxe1 --listen", succeeded),
        ("listener again", 60, "cqperf --transport verbs --device rxe1 --listen", succeeded),
        ("rdma_cm listener", 60, "cm_echo --listen 10.0.0.1:7471", succeeded),
    ],
    &[
        (
            "two hosts",
            60,
            "until cqperf --transport verbs --device rxe1 --connect 10.0.0.1 pingpong --iters 500 --json; \
             do sleep 1; done",
            verified,
        ),
        (
            "two hosts, stream by events",
            60,
            "until cqperf --transport verbs --device rxe1 --connect 10.0.0.1 \
             stream --events --iters 2000 --json; do sleep 1; done",
            verified,
        ),
        (
            "two hosts by rdma_cm",
            60,
            "until cm_echo --connect 10.0.0.1:7471; do sleep 1; done",
            said,
        ),
    ],
];

/// What each test binary may take, in seconds.
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

/// Builds, boots, judges.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let tests = libibverbs::build(job, libibverbs::TESTS)?;
    let programs = libibverbs::build(job, &format!("{PROGRAMS} {}", libibverbs::SELECTION))?;
    let alone: Vec<Check> = tests.iter().map(tests_of).chain(table(ALONE)).collect();
    let wired = WIRED.map(|rows| table(rows).collect::<Vec<_>>());
    let lists = [("alone", &alone), ("first", &wired[0]), ("second", &wired[1])];
    let load = Load {
        files: VALGRIND.iter().map(PathBuf::from).collect(),
        programs: [tests, programs].concat(),
        lists: lists.map(|(name, checks)| (name, tasks(checks))).to_vec(),
    };
    let guest = Guest::prepare("soft-roce", &load, job)?;
    let ran = guest.run("alone", job)?;
    let [first, second] = guest.run_wired(["first", "second"], job)?;
    let checks = alone.iter().chain(wired.iter().flatten());
    let words = judge(checks.zip(ran.iter().chain(&first).chain(&second)))?;
    let all = format!("{} checks in a guest and between two", words.len());
    Ok(if job.asked_for { format!("{all}\n{}", words.join("\n")) } else { all })
}

fn tasks(checks: &[Check]) -> Vec<Task> {
    checks.iter().map(|check| check.task.clone()).collect()
}

fn table(rows: &'static [Row]) -> impl Iterator<Item = Check> {
    rows.iter().map(|&(name, seconds, command, judge)| Check {
        task: Task { name: name.to_owned(), seconds, command: command.to_owned() },
        judge,
    })
}

/// The check that the tests of this binary pass.
fn tests_of(binary: &Program) -> Check {
    let command = format!("exec {} {SHOWING}", binary.name);
    let task = Task { name: format!("tests: {}", binary.name), seconds: PATIENCE, command };
    Check { task, judge: tests_ran }
}

/// What each check showed, or everything that was not as it should be.
fn judge<'a>(ran: impl Iterator<Item = (&'a Check, &'a Ran)>) -> Result<Vec<String>, Stop> {
    let mut words = Vec::new();
    let mut faults = Vec::new();
    for (check, Ran { name, output, end }) in ran {
        let judged = match end {
            End::Status(0) => (check.judge)(output),
            _ => Err(end.to_string()),
        };
        match judged {
            Ok(shown) => words.push(format!("{name}: {shown}")),
            Err(why) => faults.push(format!("{name}: {why}{}", last_words(output))),
        }
    }
    if faults.is_empty() { Ok(words) } else { Err(Stop::Judged(faults.join("\n"))) }
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

/// libtest's tests ran, but for those that the guest has not what they need, or more than they can bear.
fn tests_ran(output: &str) -> Result<String, String> {
    const SKIPPED: [&str; 2] =
        ["there is no C compiler where the device is", "librdmacm has its module"];
    Tests::judge(output, &SKIPPED).map(|tests| format!("{} passed", tests.ran))
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
        let task = Task { name: "it".into(), seconds: 1, command: "it".into() };
        let ran = Ran { name: task.name.clone(), output: output.into(), end };
        super::judge([(&Check { task, judge }, &ran)].into_iter()).map_err(|stop| stop.to_string())
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
    fn tests_must_have_run_and_none_been_skipped_for_want_of_a_device() {
        let tests = |text: &str| judged(tests_ran, End::Status(0), text);
        const TWO: &str = "test result: ok. 2 passed; 0 failed;\n";
        assert_eq!(tests(TWO), Ok(vec!["it: 2 passed".to_owned()]));
        assert!(tests("running 0 tests\n").is_err());
        let skipped = tests(&format!("skipped: VERBS_DEVICE names no device\n{TWO}"));
        assert!(skipped.unwrap_err().contains("VERBS_DEVICE"));
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
