//! How is built what needs libibverbs: the transport over it, and what of the others reaches it by their feature `verbs`.

use std::env;
use std::process::Command;

use super::artifacts;
use crate::guest::Program;
use crate::packages;
use crate::run::{Job, Stop, cargo as plain_cargo};

/// What it is built with.
pub const PACKAGES: &[&str] = &["libibverbs-dev", "librdmacm-dev", "pkg-config", LIBCLANG];

/// The transport, and what of the others reaches it, in cargo's words.
pub const SELECTION: &str = "-p transport-verbs -p transport-verbs-requirements -p bench -p verify \
                             --features=bench/verbs,verify/verbs";

/// All packages to be read and not run, in cargo's words: with what needs libibverbs, since a package without it has
/// hardly a line of its own, and with the tests that need debug assertions. What runs at build time is that of the
/// builds.
pub const WORKSPACE: &str = "--profile checker --workspace --features=bench/verbs,verify/verbs \
                             --config profile.checker.debug-assertions=true \
                             --config profile.checker.build-override.debug-assertions=false";

/// What makes the tests of the transport, in cargo's words.
pub const TESTS: &str = "test --profile checker --no-run --tests -p transport-verbs";

/// What names the device in the environment.
pub const DEVICE: &str = "VERBS_DEVICE";
/// What names an address of it, for librdmacm.
pub const ADDR: &str = "VERBS_ADDR";

/// The binding's generator reads headers with libclang, and panics with one that is newer than this brings.
const LIBCLANG: &str = "libclang-14-dev";

/// The programs that cargo builds when told these `words`.
pub fn build(job: &mut Job, words: &str) -> Result<Vec<Program>, Stop> {
    let messages = artifacts::build(job, &format!("cargo {words}"), &mut cargo(words))?;
    Ok(artifacts::executables(&messages))
}

/// All programs of these packages. Stages that want a few of them have all built, so that cargo builds what those are made
/// of once: which features it has depends on what is built with it.
pub fn programs(job: &mut Job) -> Result<Vec<Program>, Stop> {
    let words = "build --profile checker --bins --examples --bench=transport";
    build(job, &format!("{words} {SELECTION}"))
}

/// The programs of this package, as what needs libibverbs has them.
pub fn tools(job: &mut Job) -> Result<Vec<Program>, Stop> {
    let is_ours = |program: &Program| ["verify", "differential"].contains(&program.name.as_str());
    Ok(programs(job)?.into_iter().filter(is_ours).collect())
}

/// The cargo that runs this program, told these `words`, where libibverbs is. In a target directory of
/// its own: with other features it would replace this very program. All of it is built in one profile, so that the
/// generator of the binding is built once.
pub fn cargo(words: &str) -> Command {
    let mut command = plain_cargo(&words.split_whitespace().collect::<Vec<_>>());
    command.env("CARGO_TARGET_DIR", "target/verbs");
    command.env_remove(DEVICE).env_remove(ADDR);
    with_libclang(&mut command);
    command
}

/// Has what runs a generator find the library that it can read headers with.
pub fn with_libclang(command: &mut Command) -> &mut Command {
    if let (None, Some(path)) = (env::var_os("LIBCLANG_PATH"), packages::find(LIBCLANG)) {
        command.env("LIBCLANG_PATH", path.with_file_name(""));
    }
    command
}
