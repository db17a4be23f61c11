//! The C ABI of the loopback, against the real header and the real library: structures and numbers, by a C
//! compiler, and the names that `librxe_loop_verbs.so` exports. No program runs here.

use std::path::PathBuf;
use std::process::Command;

use super::exports::{Exports, judge};
use super::libtest::passed;
use super::preload;
use crate::run::{Job, Stop, cargo};

/// What brings the header, and the library itself.
pub const PACKAGES: &[&str] = &["libibverbs-dev"];

/// Compares both.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let compared = layouts(job)?;
    let names = exports(job)?;
    Ok(format!("{compared}; {names} names are libibverbs'"))
}

/// The tests that compile; they are ignored elsewhere, since the header is not there.
fn layouts(job: &mut Job) -> Result<String, Stop> {
    let mut tests = cargo(&["test", "--lib", "-p", preload::PACKAGE]);
    tests.args(["--", "--ignored", "--show-output", "sys::layout"]);
    let output = job.run("cargo test of the layouts", &mut tests)?;
    let compared = output.lines().find(|line| line.starts_with("compared "));
    match (passed(&output), compared) {
        (2.., Some(compared)) => Ok(compared.to_owned()),
        _ => Err(Stop::Unshown("not both the comparison and its negative control ran")),
    }
}

/// How many names there are, all as they should be.
fn exports(job: &mut Job) -> Result<usize, Stop> {
    let ours = preload::build(job)?;
    let found = job.ask("cc", Command::new("cc").arg("-print-file-name=libibverbs.so.1"))?;
    let theirs = PathBuf::from(found.trim());
    judge(&Exports::of(&ours)?, &Exports::of(&theirs)?)
}
