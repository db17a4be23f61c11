//! The C ABI under AddressSanitizer: its own tests, and its library under the programs of the stage `abi`, where LeakSanitizer
//! looks for what is lost when one ends. A process that is ended by a signal or by `_exit(2)` is asked for errors alone.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use super::cargo;
use crate::run::{Job, Stop};
use crate::stages::abi::{self, Round};
use crate::stages::{libtest, preload};

/// Where the reports of each process go, also of children and where its output is lost: a file with the program's name.
macro_rules! reports {
    () => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../target/verify/accusations")
    };
}

/// How a report begins that may be forgiven, and what stands before who allocated something that was lost.
const LOST: &str = "ERROR: LeakSanitizer: detected memory leaks";
const ALLOCATOR: &str = "    #1 ";

/// What programs lose: how the program's name begins, part of who allocated it, and why that is no fault of the library's.
const LEAKS: &str = include_str!("leaks.txt");

/// The library and its tests, in cargo's words.
const BUILT: [&str; 4] = ["--profile", "checker", "-p", preload::PACKAGE];

/// Tests of what the sanitizer has of its own: it reads /proc, and `dlopen(3)` is its own one.
const NOT_HERE: [&str; 2] =
    ["a_call_that_the_system_refuses_is_told", "all_else_is_left_to_the_c_library"];

/// The programs know nothing of the sanitizer, so its runtime is loaded first: gcc's, since the compiler's own one is only for
/// programs in Rust. How a program ends is left to it. Of those who allocated something the last one is known, by function and
/// file: what the library loses is not forgiven to the program that called it.
const ROUND: Round = Round {
    name: "under AddressSanitizer",
    all: false,
    prefix: &[],
    runtime: Some("libasan.so.8"),
    variables: &[(
        "ASAN_OPTIONS",
        concat!(
            "exitcode=0:malloc_context_size=2:stack_trace_format='    #%n %f %m':log_exe_name=1:log_path=",
            reports!(),
            "/of"
        ),
    )],
};

/// Runs the tests, and builds the library and runs the list: each program once, and with `--long` all of it.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let mut tests = cargo("address", "test");
    tests.args(BUILT).args(["--lib", "--"]);
    // What a process has where it ends is in memory that LeakSanitizer does not look at.
    tests.args(NOT_HERE.map(|name| ["--skip", name]).as_flattened());
    tests.env("ASAN_OPTIONS", "detect_leaks=0");
    let tests = libtest::run("cargo test of the C ABI", &mut tests, job)?;
    let mut build = cargo("address", "build");
    let library = preload::built(build.args(BUILT), job)?;
    if fs::exists(reports!())? {
        fs::remove_dir_all(reports!())?;
    }
    fs::create_dir_all(reports!())?;
    let ran = abi::with(&library, &[&Round { all: job.long, ..ROUND }], job);
    judge(&reports()?, job.long).map_err(Stop::Failed)?;
    Ok(format!("{} tests of the C ABI; {}", tests, ran?))
}

/// The names of all reports, and what they say.
fn reports() -> io::Result<Vec<(String, String)>> {
    let read = |file: io::Result<fs::DirEntry>| {
        let file = file?;
        let report = String::from_utf8_lossy(&fs::read(file.path())?).into_owned();
        Ok((file.file_name().to_string_lossy().into_owned(), report))
    };
    fs::read_dir(reports!())?.map(read).collect()
}

/// Nobody is accused of anything but what is forgiven; and all of that is of use, if all programs ran.
fn judge(reports: &[(String, String)], all: bool) -> Result<(), String> {
    let leaks: Vec<Vec<&str>> = LEAKS.lines().map(|line| line.split(" | ").collect()).collect();
    let mut used = BTreeSet::new();
    for (name, report) in reports {
        let is_forgiven = |allocator: &str, leak: &[&str]| {
            name.starts_with(&format!("of.{}", leak[0])) && allocator.contains(leak[1])
        };
        let allocators = report.lines().filter(|line| line.starts_with(ALLOCATOR));
        let forgiven: Option<Vec<_>> = allocators
            .map(|allocator| leaks.iter().position(|leak| is_forgiven(allocator, leak)))
            .collect();
        let is_leak = report.contains(LOST) && report.matches("ERROR: ").count() == 1;
        match forgiven {
            Some(all) if is_leak && all.len() == report.matches(" leak of ").count() => {
                used.extend(all);
            }
            _ => return Err(format!("{name}:{report}")),
        }
    }
    match (0..leaks.len()).find(|leak| all && !used.contains(leak)) {
        Some(leak) => Err(format!("nobody loses what leaks.txt forgives: {:?}", leaks[leak])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(program: &str, accusation: &str, allocators: &[&str]) -> Result<(), String> {
        let leak =
            |who| format!("Direct leak of 8 byte(s)\n    #0 malloc libasan.so\n    #1 {who}\n");
        let leaks: String = allocators.iter().map(leak).collect();
        judge(&[(format!("of.{program}.7"), format!("==7=={accusation}\n{leaks}"))], false)
    }

    #[test]
    fn only_leaks_are_forgiven_by_program_and_by_who_allocated_them() {
        let its_own = "<null> /usr/bin/ib_send_lat";
        assert_eq!(judged("ib_send_lat", LOST, &[its_own, "asprintf /lib/libc.so.6"]), Ok(()));
        assert!(judged("fio", LOST, &[its_own]).is_err(), "another program");
        let ours = "_RNvNtCs14rxe_loop_verbs2cq9create_cq /tmp/library.so";
        assert!(judged("ib_send_lat", LOST, &[its_own, ours]).is_err(), "the library");
        let error = "ERROR: AddressSanitizer: heap-use-after-free";
        assert!(judged("ib_send_lat", error, &[its_own]).is_err());
        assert!(judged("ib_send_lat", &format!("{LOST}\n{error}"), &[its_own]).is_err());
        assert!(
            judged("ib_send_lat", &format!("{LOST}\nIndirect leak of 8 byte(s)"), &[]).is_err(),
            "whose?"
        );
        assert!(judged("ib_send_lat", "ERROR: LeakSanitizer has failed", &[]).is_err());
    }

    #[test]
    fn what_nobody_loses_is_not_to_be_forgiven() {
        assert!(judge(&[], true).unwrap_err().contains("ib_"));
        assert_eq!(judge(&[], false), Ok(()));
        assert!(LEAKS.lines().all(|line| line.split(" | ").count() == 3), "reasons");
    }
}
