//! The arithmetic of positions, by properties: more cases than the stage `test` has of them.

use super::libtest;
use crate::run::{Job, Stop, cargo};

/// How many cases a property has here, and with `--long`.
const CASES: [&str; 2] = ["3000", "300000"];

/// Runs the properties, of both widths of a position.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let cases = CASES[usize::from(job.long)];
    // Of the whole workspace, as the stage `test` builds it.
    let mut test = cargo(&["test", "--test", "engine", "--", "queue::positions"]);
    let tests = libtest::run("cargo test of positions", test.env("PROPTEST_CASES", cases), job)?;
    Ok(format!("{tests} properties, {cases} cases each"))
}
