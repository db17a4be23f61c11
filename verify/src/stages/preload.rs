//! Programs that know libibverbs only, on the loopback: the library of its C ABI, loaded before libibverbs.

use std::path::{Path, PathBuf};
use std::process::Command;

use verify::loopback::FABRIC;

use super::artifacts;
use crate::run::{Job, Stop, cargo};

/// The one device that such a program finds.
pub const DEVICE: &str = "loop0";

/// The package of the library, and the target that makes it.
pub const PACKAGE: &str = "rxe-loop-verbs";
const TARGET: &str = "rxe_loop_verbs";

/// What else the loopback does by the environment. It is none of the caller's here.
const VARIABLES: [&str; 3] = ["RXE_LOOP_FAULTS", "RXE_LOOP_IMITATE", "RXE_LOOP_COPY"];

/// Builds the library: where it is.
pub fn build(job: &mut Job) -> Result<PathBuf, Stop> {
    let mut cargo = cargo(&["build", "--release", "-p", PACKAGE]);
    let messages = artifacts::build(job, "cargo build of the C ABI", &mut cargo)?;
    let library = artifacts::shared_library(&messages, TARGET);
    library.ok_or(Stop::Unshown("cargo built no library of the C ABI"))
}

/// Has the program of this command load the `library`, and meet others in this `fabric`.
pub fn onto<'a>(command: &'a mut Command, library: &Path, fabric: &str) -> &'a mut Command {
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.env("LD_PRELOAD", library).env(FABRIC, fabric)
}
