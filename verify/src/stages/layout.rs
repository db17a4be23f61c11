//! The C ABI of the loopback, against the real header and the real library: structures and numbers, by a C
//! compiler, and the names that `librxe_loop_verbs.so` exports. No program runs here.

use std::path::PathBuf;
use std::process::Command;

use super::exports::{Exports, judge};
use super::tests_passed;
use super::verbs::messages;
use crate::run::{Job, Stop, cargo};

/// What brings the header, and the library itself.
pub const PACKAGES: &[&str] = &["libibverbs-dev"];

/// In cargo's words.
const PACKAGE: [&str; 2] = ["-p", "rxe-loop-verbs"];

/// Compares both.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let compared = layouts(job)?;
    let names = exports(job)?;
    Ok(format!("{compared}; {names} names are libibverbs'"))
}

/// The tests that compile; they are ignored elsewhere, since the header is not there.
fn layouts(job: &mut Job) -> Result<String, Stop> {
    let mut tests = cargo(&["test", "--lib"]);
    tests.args(PACKAGE).args(["--", "--ignored", "--show-output", "sys::layout"]);
    let output = job.run("cargo test of the layouts", &mut tests)?;
    let compared = output.lines().find(|line| line.starts_with("compared "));
    match (tests_passed(&output), compared) {
        (2.., Some(compared)) => Ok(compared.to_owned()),
        _ => Err(Stop::Unshown("not both the comparison and its negative control ran")),
    }
}

/// How many names there are, all as they should be.
fn exports(job: &mut Job) -> Result<usize, Stop> {
    let mut build = cargo(&["build", "--release", "--message-format=json-render-diagnostics"]);
    let built = job.ask("cargo build of the library", build.args(PACKAGE))?;
    let Some(ours) = library(&built) else { return Err(Stop::Unshown("no library was built")) };
    let found = job.ask("cc", Command::new("cc").arg("-print-file-name=libibverbs.so.1"))?;
    let theirs = PathBuf::from(found.trim());
    judge(&Exports::of(&ours)?, &Exports::of(&theirs)?)
}

/// The shared library in cargo's messages.
fn library(built: &str) -> Option<PathBuf> {
    let files = messages(built).filter_map(|message| {
        message["filenames"].as_array()?.iter().find_map(|name| {
            name.as_str().filter(|name| name.ends_with("librxe_loop_verbs.so")).map(PathBuf::from)
        })
    });
    files.last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_in_cargos_messages() {
        let built = r#"{"reason":"compiler-artifact","filenames":["/t/release/libcq_core.rlib"]}
{"reason":"compiler-artifact","filenames":["/t/release/librxe_loop_verbs.so"]}
{"reason":"build-finished","success":true}"#;
        assert_eq!(library(built), Some("/t/release/librxe_loop_verbs.so".into()));
        assert_eq!(library(""), None);
    }
}
