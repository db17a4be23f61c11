//! Running `cqperf`, and what its output must be.

// Each test file uses a part.
#![allow(dead_code)]

use std::process::{Command, Output};

use serde_json::Value;

/// The command with these arguments.
pub fn cqperf(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cqperf"));
    command.args(arguments.split_whitespace());
    command
}

/// What it prints, and how it ends.
pub fn run(arguments: &str) -> Output {
    cqperf(arguments).output().unwrap()
}

/// Output as text.
pub fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

/// The record of a job that goes well.
#[track_caller]
pub fn verified(arguments: &str) -> Value {
    let output = run(&format!("{arguments} --json"));
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", text(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&record["verified"], &record["partial"]), (&true.into(), &false.into()));
    assert_eq!(record["done"], record["iters"]);
    record
}

/// The line that says why it failed, with this exit status.
#[track_caller]
pub fn refused(output: &Output, code: i32) -> &str {
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{line}");
    assert!(line.starts_with("error: ") && line.lines().count() == 1, "{line:?}");
    line
}
