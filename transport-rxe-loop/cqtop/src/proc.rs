//! What /proc says of a process.

use std::sync::LazyLock;

use procfs::process::{Process, Task};
use serde::Serialize;

/// Characters of a command line that are kept.
const LONGEST: usize = 256;

/// A process, as /proc has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// The name of its program, of up to 15 bytes.
    pub name: String,
    /// Its command line; empty for a zombie.
    pub command: String,
    /// Whether it runs.
    pub run_state: RunState,
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It runs, or can run.
    Running,
    /// It sleeps.
    Sleeping,
    /// It sleeps in the kernel, where no signal wakes it.
    Blocked,
    /// It is stopped, by a signal or a debugger.
    Stopped,
    /// It has ended; its parent has not noticed.
    Zombie,
    /// It has lost the lock that it had until it ended.
    Dead,
    /// It can't be looked at.
    Unknown,
}

/// Whether the pids of /proc are those of this process' PID namespace. The /proc of a namespace around it has another process
/// by each of them; there this process has several pids.
static IS_OURS: LazyLock<bool> = LazyLock::new(|| {
    let status = Process::myself().and_then(|process| process.status());
    // A kernel that does not say how many is one without such namespaces.
    status.is_ok_and(|status| status.nspid.is_none_or(|pids| pids.len() == 1))
});

/// Looks at the process with this pid; `None` if there is none, this user may not see it, or /proc is that of another PID
/// namespace.
#[must_use]
pub fn look(pid: i32) -> Option<Seen> {
    let process = Some(pid).filter(|_| *IS_OURS).and_then(|pid| Process::new(pid).ok())?;
    let stat = process.stat().ok()?;
    let run_state = match stat.state {
        // The state is that of the first thread.
        'S' if any_runs(&process) => RunState::Running,
        'R' => RunState::Running,
        'S' | 'I' => RunState::Sleeping,
        'D' => RunState::Blocked,
        'T' | 't' => RunState::Stopped,
        'Z' => RunState::Zombie,
        'X' | 'x' => RunState::Dead,
        _ => RunState::Unknown,
    };
    let command = process.cmdline().unwrap_or_default().join(" ");
    Some(Seen { name: printable(&stat.comm), command: printable(&command), run_state })
}

fn any_runs(process: &Process) -> bool {
    let runs = |task: Task| task.stat().is_ok_and(|stat| stat.state == 'R');
    process.tasks().is_ok_and(|tasks| tasks.flatten().any(runs))
}

/// A text that any process may have chosen, without what a terminal would obey.
fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(LONGEST).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen_and_an_impossible_one_is_not() {
        let me = look(std::process::id() as i32).unwrap();
        assert!(matches!(me.run_state, RunState::Running | RunState::Sleeping), "{me:?}");
        assert!(me.command.contains("cqtop"), "{me:?}");
        assert_eq!(look(i32::MAX), None);
        assert_eq!(look(-1), None);
    }

    #[test]
    fn a_terminal_obeys_no_command_line() {
        assert_eq!(printable("a\u{1b}[2Jb\nc\u{9b}d"), "a?[2Jb?c?d");
        assert_eq!(printable(&"x".repeat(9999)).len(), LONGEST);
    }
}
