//! One stage under way, in its own process: its commands, its log, and why it stopped.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::thread;

pub use crate::message::Stop;
use crate::message::{Message, tell};

/// What names another workspace in the environment: the copy in which a fault is planted.
pub const ROOT: &str = "VERIFY_ROOT";

static COPY: LazyLock<Option<PathBuf>> = LazyLock::new(|| env::var_os(ROOT).map(Into::into));

/// The workspace, wherever the checker was called from.
pub fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    COPY.as_deref().or(own).expect("verify is a folder of the workspace")
}

/// What is expected to be said of the fault that is planted in it, if one is.
pub const EXPECTED: &str = "VERIFY_EXPECTED";

/// The log of a stage, relative to [`root`].
pub fn log_path(stage: &str) -> PathBuf {
    Path::new("target/verify").join(stage).with_extension("log")
}

/// The cargo that runs this program, with `arguments`.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    plain(&mut command);
    command
}

/// What is parsed is whole, and not coloured, whatever the user prefers.
pub fn plain(cargo: &mut Command) {
    cargo.env("CARGO_TERM_COLOR", "never").env("CARGO_TERM_QUIET", "false");
}

/// This cargo, with flags for whatever it compiles. In a target directory of its own, since that would rebuild everything
/// in the usual one.
pub fn with_flags(mut cargo: Command, ours: &str, folder: &str) -> Command {
    // The encoded form would win over the flags set here.
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", flags("RUSTFLAGS", ours));
    cargo.env("CARGO_TARGET_DIR", Path::new("target").join(folder));
    cargo
}

/// Whether this is CI.
pub fn is_ci() -> bool {
    says_ci(env::var_os("CI").as_deref())
}

fn says_ci(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "false")
}

/// How many processors there are.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The user's flags in `variable`, and then ours.
pub fn flags(variable: &str, ours: &str) -> OsString {
    let mut flags = env::var_os(variable).unwrap_or_default();
    flags.push(" ");
    flags.push(ours);
    flags
}

/// Is set where tests are to do many of what they do few of: `--long`.
pub const LONG: &str = "VERIFY_LONG";

/// Is set where the machine may be changed: `--install`.
pub const INSTALL: &str = "VERIFY_INSTALL";

/// One stage under way.
pub struct Job {
    /// Whether the machine may be changed: packages installed, modules of its kernel loaded.
    pub install: bool,
    /// Whether many are run of what is run few of on every commit: random programs, mutants, kills, sweeps.
    pub long: bool,
    /// Which random ones.
    pub seed: u64,
    log: File,
    path: PathBuf,
}

impl Job {
    /// Opens the stage's log, behind what is there.
    pub fn start(stage: &'static str, long: bool, seed: u64) -> Result<Self, Stop> {
        let path = root().join(log_path(stage));
        let log = File::options().append(true).open(&path)?;
        let install = env::var_os(INSTALL).is_some();
        Ok(Self { install, long, seed, log, path })
    }

    /// Runs `command` in the workspace's root, and returns what it printed, stdout and stderr as they came.
    pub fn run(&mut self, what: &str, command: &mut Command) -> Result<String, Stop> {
        let (status, output) = self.attempt(what, command)?;
        succeeded(what, status)?;
        Ok(output)
    }

    /// [`run`](Self::run), but a command that fails is no error: how it ended, and what it printed.
    pub fn attempt(
        &mut self,
        what: &str,
        command: &mut Command,
    ) -> Result<(ExitStatus, String), Stop> {
        self.announce(what);
        writeln!(self.log, "$ {command:?}")?;
        let start = self.log.metadata()?.len();
        // One open file for both, so that their lines stay in order.
        command.stdout(self.log.try_clone()?).stderr(self.log.try_clone()?);
        let status = command.current_dir(root()).stdin(Stdio::null()).status();
        let status = status.map_err(|error| cannot_run(what, &error))?;
        let log = fs::read(&self.path)?;
        Ok((status, String::from_utf8_lossy(&log[start as usize..]).into_owned()))
    }

    /// Runs `command` in the workspace's root, and returns what it printed to stdout, which is for us alone: the log
    /// has its stderr.
    pub fn ask(&mut self, what: &str, command: &mut Command) -> Result<String, Stop> {
        self.announce(what);
        writeln!(self.log, "$ {command:?}")?;
        command.stdin(Stdio::null()).stderr(self.log.try_clone()?).current_dir(root());
        let result = command.output().map_err(|error| cannot_run(what, &error));
        let Output { status, stdout, .. } = result?;
        succeeded(what, status)?;
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }

    /// Runs `command`, and hands on each line that it prints to stdout as it comes; the log has them too.
    pub fn watch(
        &mut self,
        what: &str,
        command: &mut Command,
        mut each: impl FnMut(&Self, &str),
    ) -> Result<ExitStatus, Stop> {
        self.announce(what);
        writeln!(self.log, "$ {command:?}")?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| cannot_run(what, &error))?;
        let stdout = child.stdout.take().expect("it was asked for");
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            writeln!(self.log, "{line}")?;
            each(self, &line);
        }
        Ok(child.wait()?)
    }

    /// Writes to the log.
    pub fn log(&mut self, text: &str) -> Result<(), Stop> {
        Ok(writeln!(self.log, "{text}")?)
    }

    /// Says what is under way.
    pub fn announce(&self, what: &str) {
        // Progress is a courtesy: no reader, no harm.
        let _ = tell(&Message::UnderWay(what.to_owned()));
    }

    /// Says how far that is, as often as one likes.
    pub fn progress(&self, what: &str) {
        let _ = tell(&Message::Progress(what.to_owned()));
    }
}

/// An error if the command failed.
fn succeeded(what: &str, status: ExitStatus) -> Result<(), Stop> {
    if status.success() { Ok(()) } else { Err(Stop::Failed(format!("{what}: {status}"))) }
}

/// A command could not be run.
pub fn cannot_run(what: &str, error: &io::Error) -> Stop {
    Stop::Failed(format!("cannot run {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ci_is_any_value_but_empty_and_false() {
        let says = |value| says_ci(Some(OsStr::new(value)));
        assert!(says("true") && says("1") && !says("") && !says("false") && !says_ci(None));
    }
}
