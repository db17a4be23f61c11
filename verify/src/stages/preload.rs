//! Programs that know libibverbs only, on the loopback: the library of its C ABI, loaded before libibverbs.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use verify::loopback::FABRIC;

use super::fabric::Fabric;
use super::{artifacts, libibverbs};
use crate::guest::Program;
use crate::packages;
use crate::run::{Job, Stop, cargo};

/// The one device that such a program finds.
pub const DEVICE: &str = "loop0";

/// The package of the library, and the target that makes it.
pub const PACKAGE: &str = "rxe-loop-verbs";
const TARGET: &str = "rxe_loop_verbs";

/// What else the loopback does by the environment. It is none of the caller's here.
const VARIABLES: [&str; 6] = [
    "RXE_LOOP_FAULTS",
    "RXE_LOOP_IMITATE",
    "RXE_LOOP_COPY",
    "RXE_LOOP_LIMITS",
    "RXE_LOOP_LINK_LAYER",
    "RXE_LOOP_STRICT",
];

/// Builds the library: where it is. As if with this package, so that what both are made of is built once.
pub fn build(job: &mut Job) -> Result<PathBuf, Stop> {
    let words = ["build", "--profile", "checker", "--lib", "-p", PACKAGE, "-p", "verify"];
    built(&mut cargo(&words), job)
}

/// Builds it by this cargo.
pub fn built(cargo: &mut Command, job: &mut Job) -> Result<PathBuf, Stop> {
    let messages = artifacts::build(job, "cargo build of the C ABI", cargo)?;
    let library = artifacts::shared_library(&messages, TARGET);
    library.ok_or(Stop::Failed("cargo built no library of the C ABI".into()))
}

/// Has the program of this command load the library, or several of which it is one, and meet others in this `fabric`.
pub fn onto<'a>(
    command: &'a mut Command,
    library: impl AsRef<OsStr>,
    fabric: &Fabric,
) -> &'a mut Command {
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.env("LD_PRELOAD", library).env(FABRIC, fabric.name())
}

/// Programs that are built for real verbs, the library, and where they meet.
pub struct Tools {
    programs: Vec<Program>,
    library: PathBuf,
    fabric: Fabric,
}

impl Tools {
    /// Builds those of this package. Where libibverbs is missing and can't be installed, that is a reason to skip.
    pub fn build(job: &mut Job) -> Result<Self, Stop> {
        packages::ensure(libibverbs::PACKAGES, job)?;
        Self::of(libibverbs::tools(job)?, job)
    }

    /// These programs. Builds the library.
    pub fn of(programs: Vec<Program>, job: &mut Job) -> Result<Self, Stop> {
        Ok(Self { programs, library: build(job)?, fabric: Fabric::new() })
    }

    /// Where they meet.
    pub const fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The command of the program of this `name`, with the loopback as its device.
    pub fn command(&self, name: &str) -> io::Result<Command> {
        let program = self.programs.iter().find(|program| program.name == name);
        let program = program.ok_or_else(|| io::Error::other(format!("cargo built no {name}")))?;
        let mut command = Command::new(&program.path);
        onto(&mut command, &self.library, &self.fabric);
        command.env(libibverbs::DEVICE, DEVICE).env_remove(libibverbs::ADDR);
        Ok(command)
    }
}
