//! As whom programs run, and where: rounds, a folder that every user can read, a fabric for each run.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use rustix::process::geteuid;

use super::side::Side;
use crate::run::Stop;
use crate::stages::fabric::Fabric;
use crate::stages::preload;

/// Once through the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// What it is called.
    pub name: &'static str,
    /// Whether all of the list is run, or each program once.
    pub whole: bool,
    /// What becomes another user before it runs the program that follows.
    prefix: &'static [&'static str],
    /// What the environment has beside that.
    variables: &'static [(&'static str, &'static str)],
}

/// As whoever runs this.
const AS_IS: Round = Round { name: "as is", whole: true, prefix: &[], variables: &[] };

/// As somebody who may do nothing.
const AS_NOBODY: Round = Round {
    name: "as nobody",
    whole: false,
    prefix: &["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"],
    variables: &[],
};

/// As if the system refused to copy from one process to another.
const BY_SERVICE: Round = Round {
    name: "copied by the service",
    whole: false,
    prefix: &[],
    variables: &[("RXE_LOOP_COPY", "service")],
};

/// Every one that this user can do: only root becomes somebody else.
pub fn rounds() -> Vec<Round> {
    rounds_of(geteuid().is_root())
}

fn rounds_of(root: bool) -> Vec<Round> {
    if root { vec![AS_IS, AS_NOBODY, BY_SERVICE] } else { vec![AS_IS, BY_SERVICE] }
}

/// A folder with the library and what the programs say. It goes with this.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// One with this library.
    pub fn with(library: &Path) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("verify-abi-{}", process::id()));
        DirBuilder::new().mode(0o755).create(&path)?;
        let folder = Self { path };
        fs::copy(library, folder.library())?;
        // Whatever this user's files are like.
        for path in [&folder.path, &folder.library()] {
            fs::set_permissions(path, Permissions::from_mode(0o755))?;
        }
        Ok(folder)
    }

    /// Where it is, and programs run.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn library(&self) -> PathBuf {
        self.path.join("library.so")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What can't be removed stays, and harms nobody.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Where the programs of one run meet, and nobody else.
pub struct Place<'a> {
    folder: &'a Folder,
    round: Round,
    fabric: Fabric,
}

impl<'a> Place<'a> {
    /// A new one.
    pub fn new(folder: &'a Folder, round: Round) -> Self {
        Self { folder, round, fabric: Fabric::new() }
    }

    /// As whom.
    pub const fn round(&self) -> &Round {
        &self.round
    }

    /// Starts a program, which says what it says as this `side`.
    pub fn start(&self, side: &str, words: &[String]) -> Result<Side, Stop> {
        let mut words =
            self.round.prefix.iter().map(OsStr::new).chain(words.iter().map(OsStr::new));
        let program = words.next().expect("a command has a program");
        let mut command = Command::new(program);
        preload::onto(command.args(words), &self.folder.library(), &self.fabric);
        command.envs(self.round.variables.iter().copied()).current_dir(&self.folder.path);
        Side::start(&mut command, self.folder.path.join(side))
    }

    /// The fabric where they meet.
    pub const fn fabric(&self) -> &Fabric {
        &self.fabric
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_becomes_somebody_else_and_everything_is_run_once() {
        let names = |root| rounds_of(root).iter().map(|round| round.name).collect::<Vec<_>>();
        assert_eq!(names(true), ["as is", "as nobody", "copied by the service"]);
        assert_eq!(names(false), ["as is", "copied by the service"]);
        assert_eq!(rounds_of(true).iter().filter(|round| round.whole).count(), 1);
    }

    #[test]
    fn every_user_can_read_the_library_and_nothing_stays() {
        let folder = Folder::with(Path::new("/proc/self/exe")).unwrap();
        for path in [folder.path.clone(), folder.library()] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o755);
        }
        let path = folder.path.clone();
        drop(folder);
        assert!(!fs::exists(path).unwrap());
    }
}
