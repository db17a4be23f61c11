//! The processes of a stage: found by a mark in their environment, which every child inherits, whatever group or
//! session it makes for itself; shown, with their stacks, and ended.

use std::fmt;
use std::io::{self, Read, Write};
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use procfs::ProcResult;
use procfs::process::{Process, all_processes};
use rustix::process::{Pid, Signal, kill_process};

/// The variable that holds the mark.
const VARIABLE: &str = "CARGO_VERIFY_STAGE";
/// Between two looks at what is waited for.
const PAUSE: Duration = Duration::from_millis(5);
/// How long it is tried to kill processes.
const KILLING: Duration = Duration::from_secs(2);
/// How often a process without an environment is looked at, and the time between: longer than an execve(2) takes, and
/// short for one that really has none.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// More than the environment of any process here.
const MOST_OF_AN_ENVIRONMENT: usize = 1 << 20;
/// How long gdb may take for one process, in seconds.
const GDB: &str = "30";
/// What only waits for others, and whose stack says nothing.
const WAITING: [&str; 6] = ["cargo", "rustc", "verify", "timeout", "sh", "bash"];

/// What tells the processes of one stage of this run from all others.
#[derive(Clone, Debug)]
pub struct Mark(String);

impl Mark {
    /// That of the stage of this name.
    pub fn of(stage: &str) -> Self {
        Self(format!("{stage}-{}", process::id()))
    }

    /// Marks what this command will run, and all that comes of it.
    pub fn put_on<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(VARIABLE, &self.0)
    }

    /// The processes that carry it now. One that is over and was not waited for has no environment any more.
    pub fn processes(&self) -> Vec<Running> {
        let all = all_processes().into_iter().flatten().flatten();
        all.filter(|process| self.is_on(process)).filter_map(Running::look).collect()
    }

    /// Whether this process carries it. In the middle of execve(2) a process has no environment for a moment, so that
    /// one that has a program but no environment is looked at again.
    fn is_on(&self, process: &Process) -> bool {
        let mark = format!("{VARIABLE}={}", self.0);
        for _ in 0..LOOKS {
            let Ok(variables) = environment(process) else { return false };
            if !variables.is_empty() {
                return variables.split(|&byte| byte == 0).any(|it| it == mark.as_bytes());
            }
            if process.exe().is_err() {
                return false;
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        false
    }

    /// Waits until none is left: those that are, once the time is over.
    pub fn left_after(&self, limit: Duration) -> Vec<Running> {
        let gone = wait_for(limit, || self.processes().is_empty().then_some(Vec::new()));
        gone.unwrap_or_else(|| self.processes())
    }

    /// Kills every one, also those that are started meanwhile.
    pub fn kill(&self) {
        wait_for(KILLING, || {
            let left = self.processes();
            for process in &left {
                // It fails where it has ended, which is as well.
                let _ = kill_process(process.pid, Signal::KILL);
            }
            left.is_empty().then_some(())
        });
    }
}

/// Looks again and again until there is something to be seen: that, or nothing where there was none in time.
pub fn wait_for<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let seen = look();
        if seen.is_some() || start.elapsed() > limit {
            return seen;
        }
        thread::sleep(PAUSE);
    }
}

/// The environment of a process, by one call of read(2): the rest would be missing if it executed another program
/// between two.
fn environment(process: &Process) -> ProcResult<Vec<u8>> {
    let mut variables = vec![0; MOST_OF_AN_ENVIRONMENT];
    let length = process.open_relative("environ")?.read(&mut variables)?;
    variables.truncate(length);
    Ok(variables)
}

/// The pid of a process in the PID namespace of this one. /proc may be that of a namespace around it, and have other pids: a
/// process has one in each, from that of /proc on.
fn pid_here(process: &Process) -> Option<Pid> {
    let pids = |process: &Process| process.status().ok()?.nspid;
    let depth = pids(&Process::myself().ok()?)?.len();
    Pid::from_raw(*pids(process)?.get(depth - 1)?)
}

/// A process, as it was seen.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    name: String,
    words: String,
}

impl Running {
    fn look(process: Process) -> Option<Self> {
        let (name, words) = (process.stat().ok()?.comm, process.cmdline().ok()?.join(" "));
        Some(Self { pid: pid_here(&process)?, name, words })
    }

    /// Whether it only waits for others.
    pub fn waits_for_others(&self) -> bool {
        WAITING.contains(&self.name.as_str())
    }

    /// Writes what it is, and where each of its threads stands.
    pub fn write_stacks(&self, to: &mut impl Write) -> io::Result<()> {
        writeln!(to, "---- {} {}", self.pid.as_raw_nonzero(), self.words)?;
        let mut gdb = Command::new("timeout");
        gdb.args(["--signal=KILL", GDB, "gdb", "-nx", "-batch", "-p"]);
        gdb.arg(self.pid.as_raw_nonzero().to_string()).args(["-ex", "thread apply all backtrace"]);
        let output = gdb.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
        match output.status.success() {
            true => to.write_all(&output.stdout),
            false => writeln!(to, "no stack of it, by gdb: {}", output.status),
        }
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid.as_raw_nonzero())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn shell(mark: &Mark, arguments: &[&str]) -> process::Child {
        let mut shell = Command::new("sh");
        mark.put_on(shell.arg("-c").args(arguments)).stdin(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn a_process_is_found_while_it_executes_another_program() {
        let mark = Mark::of("test-of-execve");
        let mut child = shell(&mark, &[r#"exec sh -c "$0" "$0""#; 2]);
        let missed = (0..200).filter(|_| mark.processes().is_empty()).count();
        mark.kill();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        assert_eq!(missed, 0, "of 200 looks");
    }

    #[test]
    fn children_that_left_the_session_are_found_shown_and_killed() {
        let (mark, other) = (Mark::of("test-of-marks"), Mark::of("test-of-mark"));
        // In a session of its own, and the shell does not wait for it.
        let mut child = shell(&mark, &["setsid sleep 1000 & exec sleep 1000"]);
        let both = |seen: &Vec<Running>| seen.iter().filter(|it| it.name == "sleep").count() == 2;
        let seen = wait_for(Duration::from_secs(60), || Some(mark.processes()).filter(both));
        let seen = seen.expect("both run");
        assert!(other.processes().is_empty(), "a mark that is the beginning of another");
        let mut stacks = Vec::new();
        seen[0].write_stacks(&mut stacks).unwrap();
        let stacks = String::from_utf8(stacks).unwrap();
        assert!(stacks.contains("sleep 1000"), "{stacks}");
        assert_eq!(mark.left_after(Duration::ZERO).len(), seen.len());
        mark.kill();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        assert!(mark.left_after(Duration::from_secs(60)).is_empty());
    }

    /// Processes of the pids that /proc has would be killed in place of its own.
    #[test]
    #[ignore = "needs PID namespaces"]
    fn processes_are_found_where_proc_is_that_of_a_pid_namespace_around() {
        use crate::name_space::Pids;
        let test = "processes::tests::children_that_left_the_session_are_found_shown_and_killed";
        let this = std::env::current_exe().unwrap();
        let mut command = Pids::Unmounted.command("timeout");
        let run = command.arg("60").arg(this).args(["--exact", test]).output().unwrap();
        assert!(run.status.success(), "{run:?}");
    }
}
