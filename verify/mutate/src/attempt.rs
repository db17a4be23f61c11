//! One run of a check: in a process group and a folder of its own, with a time limit, and nothing left of it.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};

use crate::checks::Check;

/// Where folders of runs lie: fabrics are shared memory, which is not everywhere.
const SHARED_MEMORY: &str = "/dev/shm";
/// What a process may map: a mutant must not take the machine along.
const MEMORY: u64 = 16 << 30;
/// What identifies the processes of a run, also those that its processes started.
const TOKEN: &str = "VERIFY_RUN";
/// As shells have it.
const INTERRUPTED: i32 = 130;

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

/// What came of a run.
#[derive(Debug)]
pub struct Attempt {
    /// How it ended.
    pub ended: Ended,
    /// How long that took.
    pub seconds: f64,
    /// What it wrote to its standard error.
    pub said: String,
}

/// From here on no process that is started maps more than a bound or leaves a core, and nothing is left behind where the user
/// ends this program.
pub fn be_careful() {
    for (resource, most) in [(Resource::As, MEMORY), (Resource::Core, 0)] {
        let old = rustix::process::getrlimit(resource);
        let current = old.maximum.map_or(most, |maximum| maximum.min(most));
        let bound = Rlimit { current: Some(current), maximum: old.maximum };
        // It is a precaution: where the system refuses, there is none.
        let _ = rustix::process::setrlimit(resource, bound);
    }
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

/// Runs a check, for `limit` at most.
pub fn attempt(check: &Check, on: On<'_>, limit: Duration) -> Result<Attempt> {
    run(check, on, limit).with_context(|| format!("cannot run the check {check}"))
}

fn run(check: &Check, on: On<'_>, limit: Duration) -> io::Result<Attempt> {
    // A process that was killed may be at it still when the folder goes; what stays is small.
    let folder = tempfile::Builder::new().prefix(&our_folders()).tempdir_in(SHARED_MEMORY)?;
    let token = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut heard = File::from(memfd_create(c"said", MemfdFlags::CLOEXEC)?);
    let mut command = Command::new(&check.program);
    command.args(&check.arguments).envs(check.variables.iter().cloned());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(heard.try_clone()?);
    command.current_dir(folder.path()).env(TOKEN, &token).process_group(0);
    command.env_remove("RUST_BACKTRACE").env_remove("VERIFY_MUTANT").env_remove("VERIFY_REACHED");
    match on {
        On::Mutant(number) => command.env("VERIFY_MUTANT", number.to_string()),
        On::Recording(file) => command.env("VERIFY_REACHED", file),
    };
    let start = Instant::now();
    let mut child = command.spawn()?;
    let status = wait(&mut child, limit)?;
    let seconds = start.elapsed().as_secs_f64();
    let ended = match status {
        Some(status) if status.success() => Ended::Passed,
        Some(_) => Ended::Failed,
        None => Ended::Late,
    };
    if ended != Ended::Passed {
        end(&mut child, &token);
    }
    let mut said = Vec::new();
    // The child's end of it is the same open file: it stands where the child has written to.
    heard.rewind()?;
    heard.read_to_end(&mut said)?;
    Ok(Attempt { ended, seconds, said: String::from_utf8_lossy(&said).into_owned() })
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
    let is_ours =
        |all: Vec<u8>| all.split_inclusive(|byte| *byte == 0).any(|one| one.starts_with(&mark));
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else { continue };
        if fs::read(entry.path().join("environ")).is_ok_and(is_ours) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn run(text: &str, limit: Duration) -> Attempt {
        attempt(&Check::script("script", text), On::Mutant(7), limit).unwrap()
    }

    #[test]
    fn a_check_is_told_which_mutant_is_on_and_is_heard_in_a_folder_that_is_gone_afterwards() {
        let passed =
            run("test $VERIFY_MUTANT = 7 && test -z \"$(ls)\" && touch left && pwd >&2", LONG);
        assert_eq!(passed.ended, Ended::Passed);
        let folder = passed.said.trim();
        assert!(folder.starts_with("/dev/shm/") && !Path::new(folder).exists(), "{folder}");
        let failed = run("echo not this; echo this >&2; test $VERIFY_MUTANT = 8", LONG);
        assert_eq!((failed.ended, &failed.said[..]), (Ended::Failed, "this\n"));
    }

    #[test]
    fn what_does_not_end_is_ended_with_all_that_it_started() {
        // In a group of its own, it outlives the one that is killed.
        let text = "setsid sleep 1000 & echo $! >&2; sleep 1000";
        let late = run(text, Duration::from_millis(500));
        assert_eq!(late.ended, Ended::Late);
        let deadline = Instant::now() + LONG;
        let is_there = || {
            let status = fs::read_to_string(format!("/proc/{}/stat", late.said.trim()));
            status.is_ok_and(|status| !status.contains(") Z "))
        };
        while is_there() {
            assert!(Instant::now() < deadline, "it is still there");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
