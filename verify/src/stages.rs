//! The table of stages, and what each one runs and demands.

use crate::guest;
use crate::run::{Job, Stop, cargo, cargo_with_cfg, flags};

mod abi;
mod artifacts;
mod bare_metal;
mod conformance;
mod differential;
mod exports;
mod fabric;
mod layout;
mod libtest;
mod loom;
mod preload;
mod soft_roce;
mod storms;
mod verbs;

/// One thing that `cargo verify` shows.
pub struct Stage {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What its passing shows, in one line.
    pub shows: &'static str,
    /// The Debian packages without which it cannot run, by what they are for.
    pub packages: &'static [&'static [&'static str]],
    /// Runs it; the words returned stand behind its name in the report.
    pub run: fn(&mut Job) -> Result<String, Stop>,
}

/// All stages, in the order in which they run: what fails soonest comes first.
pub static STAGES: [Stage; 12] = [
    Stage { name: "fmt", shows: "every file is as rustfmt writes it", packages: &[], run: fmt },
    Stage {
        name: "clippy",
        shows: "clippy has nothing to say about any target of any package",
        packages: &[],
        run: clippy,
    },
    Stage {
        name: "test",
        shows: "tests of every kind pass, those of cq-core also without 64-bit atomics",
        packages: &[],
        run: test,
    },
    Stage {
        name: "doc",
        shows: "the documentation builds without a warning, every link in it leads somewhere",
        packages: &[],
        run: doc,
    },
    Stage {
        name: "layout",
        shows: "the C ABI has the structures, numbers and names of libibverbs",
        packages: &[layout::PACKAGES],
        run: layout::run,
    },
    Stage {
        name: "abi",
        shows: "programs that know libibverbs only run unchanged on the loopback: Debian's, perftest's, pyverbs' tests",
        packages: &[abi::PACKAGES],
        run: abi::run,
    },
    Stage {
        name: "loom",
        shows: "the engine's protocols hold in every interleaving, and their weakened controls fail",
        packages: &[],
        run: loom::run,
    },
    Stage {
        name: "conformance",
        shows: "every transport does what the contract says, rule by rule, or what is written down instead",
        packages: &[],
        run: conformance::run,
    },
    Stage {
        name: "differential",
        shows: "random programs do the same on the loopback, between processes and by its C ABI too, and on the model",
        packages: &[],
        run: differential::run,
    },
    Stage {
        name: "bare-metal",
        shows: "cq-core builds for targets without an operating system, from core alone",
        packages: &[bare_metal::PACKAGES],
        run: bare_metal::run,
    },
    Stage {
        name: "verbs",
        shows: "what needs libibverbs builds, with its documentation, without a warning; its tests pass, also on the loopback",
        packages: &[verbs::PACKAGES],
        run: verbs::run,
    },
    Stage {
        name: "soft-roce",
        shows: "on the real library and Linux's own RDMA driver all of it works, between two hosts too",
        packages: &[verbs::PACKAGES, guest::PACKAGES, soft_roce::PACKAGES],
        run: soft_roce::run,
    },
];

/// What takes long, and runs only where it is named.
pub static BY_NAME: [Stage; 1] = [Stage {
    name: "storms",
    shows: "the loopback outlives killed processes and scribbled memory, however often (--kills N)",
    packages: &[],
    run: storms::run,
}];

/// There is no stage of this name.
#[derive(Debug, thiserror::Error)]
#[error("no stage is called `{0}`; there are {names}", names = names())]
pub struct UnknownStage(String);

fn all() -> impl Iterator<Item = &'static Stage> {
    STAGES.iter().chain(&BY_NAME)
}

/// The stage called `name`.
pub fn named(name: &str) -> Result<&'static Stage, UnknownStage> {
    let found = all().find(|stage| stage.name == name);
    found.ok_or_else(|| UnknownStage(name.to_owned()))
}

/// The stages, a line each: the name and what it shows.
pub fn list() -> String {
    let line = |stage: &Stage| format!("  {:<13}{}\n", stage.name, stage.shows);
    let (usual, named): (String, String) =
        (STAGES.iter().map(line).collect(), BY_NAME.iter().map(line).collect());
    format!("{usual}By name only:\n{named}")
}

fn names() -> String {
    all().map(|stage| stage.name).collect::<Vec<_>>().join(", ")
}

fn fmt(job: &mut Job) -> Result<String, Stop> {
    let arguments = ["fmt", "--all", "--check", "--", "--color", "never"];
    job.run("cargo fmt", &mut cargo(&arguments))?;
    Ok("formatted".into())
}

fn clippy(job: &mut Job) -> Result<String, Stop> {
    let packages = ["--workspace", "--exclude", "transport-verbs*"];
    let arguments =
        [&["clippy"], &packages[..], &["--all-targets", "--", "-D", "warnings"]].concat();
    job.run("cargo clippy", &mut cargo(&arguments))?;
    Ok("no warnings".into())
}

fn test(job: &mut Job) -> Result<String, Stop> {
    let output = job.run("cargo test", &mut cargo(&["test"]))?;
    let mut narrow = cargo_with_cfg("cq_core_word32", &["test", "-p", "cq-core"]);
    let narrow = job.run("cargo test of cq-core without 64-bit atomics", &mut narrow)?;
    match (libtest::passed(&output), libtest::passed(&narrow)) {
        (0, _) | (_, 0) => Err(Stop::Unshown("no test ran")),
        (passed, narrow) => Ok(format!("{passed} tests, {narrow} without 64-bit atomics")),
    }
}

fn doc(job: &mut Job) -> Result<String, Stop> {
    // What is off by default has links too.
    let mut doc = cargo(&["doc", "--workspace", "--exclude", "transport-verbs*", "--no-deps"]);
    doc.args(["--features", "cq-core/test-util"]);
    doc.env("RUSTDOCFLAGS", flags("RUSTDOCFLAGS", "-D warnings"));
    job.run("cargo doc", &mut doc)?;
    Ok("no warnings".into())
}

/// How many lines are shown of what something printed that failed.
const SHOWN: usize = 60;

/// The end of what something printed, below the line that tells of it.
fn last_words(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let tail = &lines[lines.len().saturating_sub(SHOWN)..];
    tail.iter().flat_map(|line| ["\n  ", line]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_one_line_a_stage_and_says_what_runs_by_name_only() {
        assert_eq!(list().lines().count(), STAGES.len() + 1 + BY_NAME.len());
    }
}
