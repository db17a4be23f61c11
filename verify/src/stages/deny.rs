//! What dependencies are allowed, by cargo-deny and `.cargo/deny.toml`, in every workspace of the repository.

use std::process::Command;

use super::tools::{DENY, with_tools};
use super::{WORKSPACES, last_line};
use crate::run::{Job, Stop, cargo};

/// Of the libraries, as their users on Linux compile them: no crate in two versions, and no exception without a crate.
const OF_LIBRARIES: &str = "--exclude-unpublished --exclude-dev --target x86_64-unknown-linux-gnu check --deny duplicate \
                            --deny unmatched-skip-root bans";

/// Their licences, versions and sources.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    DENY.install(job)?;
    job.run("cargo deny of the libraries", &mut deny(OF_LIBRARIES))?;
    everywhere(job, "check --allow duplicate licenses bans sources")?;
    Ok(format!("licences, versions and sources in {} workspaces", WORKSPACES.len()))
}

/// What the advisory database has of dependencies.
pub fn advisories(job: &mut Job) -> Result<String, Stop> {
    DENY.install(job)?;
    let (status, said) = job.attempt("cargo deny fetch", &mut deny("fetch db"))?;
    if !status.success() {
        let why = last_line(said.trim_end())?;
        return Err(Stop::Skipped(format!("the advisory database can't be fetched: {why}")));
    }
    everywhere(job, "check advisories")?;
    Ok(format!("none in {} workspaces", WORKSPACES.len()))
}

/// Runs it in each workspace.
fn everywhere(job: &mut Job, words: &str) -> Result<(), Stop> {
    for manifest in WORKSPACES {
        let words = format!("--manifest-path {manifest} {words}");
        job.run(&format!("cargo deny of {manifest}"), &mut deny(&words))?;
    }
    Ok(())
}

/// It, told these `words`.
fn deny(words: &str) -> Command {
    let mut deny = cargo(&["deny", "--locked"]);
    with_tools(deny.args(words.split_whitespace()));
    deny
}
