//! Running `cqperf`, and what its output must be.

// Each test file uses a part.
#![allow(dead_code)]

use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// What messages are moved by.
pub const OPS: [&str; 5] = ["send", "write", "read", "cas", "faa"];

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

/// Output as JSON.
pub fn records(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The record of a job that goes well.
#[track_caller]
pub fn verified(arguments: &str) -> Value {
    let output = run(&format!("{arguments} --json"));
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", text(&output.stderr));
    let record = records(&output);
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

/// What `look` finds, in the end.
pub fn wait_for<V>(mut look: impl FnMut() -> Option<V>) -> V {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "what is waited for never comes");
        thread::sleep(Duration::from_millis(1));
    }
}
