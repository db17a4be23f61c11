//! One run of a check: in a process group and a folder of its own, with a time limit, and nothing left of it.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};

use crate::checks::Check;

/// Where folders of runs lie: fabrics are shared memory, which is not everywhere.
const SHARED_MEMORY: &str = "/dev/shm";
/// What a process may map: a mutant must not take the machine along.
const MEMORY: u64 = 16 << 30;
/// What tells the processes of a run, whoever started them.
const TOKEN: &str = "VERIFY_RUN";

/// What is on.
#[derive(Clone, Copy, Debug)]
pub enum On<'a> {
    /// A mutant.
    Mutant(u32),
    /// None; what is reached is recorded in this file.
    Recording(&'a Path),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Passed,
    /// Not well.
    Failed,
    /// Not at all, within its time.
    Late,
}

/// A check can't be run.
#[derive(Debug, thiserror::Error)]
#[error("cannot run the check {check}: {error}")]
pub struct AttemptError {
    check: String,
    error: io::Error,
}

/// Lets no process that is started from here on map more than a bound, nor leave a core.
pub fn bound_memory() {
    for (resource, most) in [(Resource::As, MEMORY), (Resource::Core, 0)] {
        let old = rustix::process::getrlimit(resource);
        let current = old.maximum.map_or(most, |maximum| maximum.min(most));
        let bound = Rlimit { current: Some(current), maximum: old.maximum };
        // It is a precaution: where the system refuses, there is none.
        let _ = rustix::process::setrlimit(resource, bound);
    }
}

/// Runs a check, for `limit` at most. Returns how it ended, and how long that took.
pub fn attempt(
    check: &Check,
    on: On<'_>,
    limit: Duration,
) -> Result<(Ended, Duration), AttemptError> {
    let failed = |error| AttemptError { check: check.to_string(), error };
    run(check, on, limit, Stdio::null()).map_err(failed)
}

/// The same, with what the check wrote to its standard error.
pub fn attempt_heard(
    check: &Check,
    on: On<'_>,
    limit: Duration,
) -> Result<(Ended, Duration, String), AttemptError> {
    let failed = |error| AttemptError { check: check.to_string(), error };
    let heard = || {
        let mut said = File::from(memfd_create(c"said", MemfdFlags::CLOEXEC)?);
        let (ended, taken) = run(check, on, limit, said.try_clone()?.into())?;
        let mut text = Vec::new();
        // The child's end of it is the same open file: it stands where the child has written to.
        said.rewind()?;
        said.read_to_end(&mut text)?;
        Ok((ended, taken, String::from_utf8_lossy(&text).into_owned()))
    };
    heard().map_err(failed)
}

fn run(check: &Check, on: On<'_>, limit: Duration, said: Stdio) -> io::Result<(Ended, Duration)> {
    let folder = Folder::new()?;
    let mut command = Command::new(&check.program);
    command.args(&check.arguments).envs(check.variables.iter().cloned());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    command.current_dir(&folder.path).env(TOKEN, &folder.token).process_group(0);
    command.env_remove("RUST_BACKTRACE").env_remove("VERIFY_MUTANT").env_remove("VERIFY_REACHED");
    match on {
        On::Mutant(number) => command.env("VERIFY_MUTANT", number.to_string()),
        On::Recording(file) => command.env("VERIFY_REACHED", file),
    };
    let start = Instant::now();
    let mut child = command.spawn()?;
    let status = wait(&mut child, limit)?;
    let taken = start.elapsed();
    let ended = match status {
        Some(status) if status.success() => Ended::Passed,
        Some(_) => Ended::Failed,
        None => Ended::Late,
    };
    if ended != Ended::Passed {
        end(&mut child, &folder.token);
    }
    Ok((ended, taken))
}

/// Waits for the end of a process; `None` if it does not come in time.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else { return child.wait().map(Some) };
    let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(None),
            Ok(_) => return child.wait().map(Some),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Leaves nothing behind where the user ends this program.
pub fn clear_when_interrupted() {
    // Where another handler is set, that one ends it.
    let _ = ctrlc::set_handler(|| {
        let ours = our_folders();
        end_all(&ours);
        let entries = fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten();
        for entry in entries.filter(|it| it.file_name().to_string_lossy().starts_with(&ours)) {
            let _ = fs::remove_dir_all(entry.path());
        }
        std::process::exit(INTERRUPTED);
    });
}

/// As shells have it.
const INTERRUPTED: i32 = 130;

/// What the tokens and folders of this program's runs begin with.
fn our_folders() -> String {
    format!("verify-mutate.{}.", std::process::id())
}

/// Ends every process of a run: those of its group, and those that left it.
fn end(child: &mut Child, token: &str) {
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        // Gone already, if all went well.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
    end_all(&format!("{token}\0"));
}

/// Ends every process with a token that begins so.
fn end_all(token: &str) {
    let mark = format!("{TOKEN}={token}").into_bytes();
    for pid in processes() {
        let variables = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
        let is_ours =
            |all: Vec<u8>| all.split_inclusive(|byte| *byte == 0).any(|one| one.starts_with(&mark));
        if variables.is_ok_and(is_ours) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    names.filter_map(Pid::from_raw)
}

/// A folder that is there as long as a run.
struct Folder {
    path: PathBuf,
    token: String,
}

impl Folder {
    fn new() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let token = format!("{}{number}", our_folders());
        let path = Path::new(SHARED_MEMORY).join(&token);
        fs::create_dir_all(&path)?;
        Ok(Self { path, token })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A process that was killed may be at it still; what stays is small.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Kind;

    fn script(text: &str) -> Check {
        Check {
            kind: Kind::Device,
            name: "script".into(),
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), text.into()],
            variables: Vec::new(),
        }
    }

    fn run(text: &str, limit: Duration) -> (Ended, Duration) {
        attempt(&script(text), On::Mutant(7), limit).unwrap()
    }

    #[test]
    fn a_check_is_told_which_mutant_is_on_and_says_whether_it_passes() {
        let long = Duration::from_secs(60);
        assert_eq!(run("test $VERIFY_MUTANT = 7", long).0, Ended::Passed);
        assert_eq!(run("test $VERIFY_MUTANT = 8", long).0, Ended::Failed);
    }

    #[test]
    fn what_a_check_complains_of_is_heard() {
        let check = script("echo not this; echo this >&2; exit 1");
        let (ended, _, said) =
            attempt_heard(&check, On::Mutant(7), Duration::from_secs(60)).unwrap();
        assert_eq!((ended, &said[..]), (Ended::Failed, "this\n"));
    }

    #[test]
    fn a_check_runs_in_an_empty_folder_that_is_gone_afterwards() {
        let file = std::env::temp_dir().join(format!("folder-of-{}", std::process::id()));
        let text = format!("test -z \"$(ls)\" && touch left && pwd > {}", file.display());
        assert_eq!(run(&text, Duration::from_secs(60)).0, Ended::Passed);
        let folder = fs::read_to_string(&file).unwrap();
        assert!(folder.starts_with("/dev/shm/") && !Path::new(folder.trim()).exists(), "{folder}");
        fs::remove_file(file).unwrap();
    }

    #[test]
    fn what_does_not_end_is_ended_with_all_that_it_started() {
        let file = std::env::temp_dir().join(format!("started-by-{}", std::process::id()));
        // In a group of its own, it outlives the one that is killed.
        let text = format!("setsid sleep 1000 & echo $! > {}; sleep 1000", file.display());
        let (ended, taken) = run(&text, Duration::from_millis(500));
        assert_eq!(ended, Ended::Late);
        assert!(taken < Duration::from_secs(60));
        let pid = fs::read_to_string(&file).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let is_there = || {
            let status = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            status.is_ok_and(|status| !status.contains(") Z "))
        };
        while is_there() {
            assert!(Instant::now() < deadline, "it is still there");
            std::thread::sleep(Duration::from_millis(10));
        }
        fs::remove_file(file).unwrap();
    }
}
