//! What a guest is told to run, and what came of it.
//!
//! A list of tasks is a file, a line each: name, seconds and command, with tabs between. `tasks.sh` prints `== begin
//! NAME` before each and `== end NAME STATUS` behind it, and `== over` behind the last: a guest that ends
//! without has died.

use std::process::{Command, ExitStatus};

use crate::run::{Job, Stop};

/// One thing to run.
#[derive(Clone, Debug)]
pub struct Task {
    /// What it is called.
    pub name: String,
    /// How long it may take.
    pub seconds: u32,
    /// A line of shell.
    pub command: String,
}

/// The file of the list of this name.
pub fn name(list: &str) -> String {
    format!("{list}.tasks")
}

/// The tasks as `tasks.sh` reads them.
pub fn file(tasks: &[Task]) -> String {
    let line = |Task { name, seconds, command }: &Task| format!("{name}\t{seconds}\t{command}\n");
    tasks.iter().map(line).collect()
}

/// What came of a task.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    /// What it is called.
    pub name: String,
    /// What it printed, on both streams.
    pub output: String,
    /// How it ended.
    pub end: End,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// With this status, as a shell sees it.
    #[error("exit status {0}")]
    Status(u8),
    /// It was killed; `tasks.sh` does that when its time is over.
    #[error("killed: its time was over")]
    Killed,
    /// The guest ended under it, or said nothing that could be read.
    #[error("the guest died under it")]
    Died,
}

/// What has come from a guest so far.
#[derive(Debug, Default)]
pub struct Results {
    ran: Vec<Ran>,
    /// Whether the last of them is over.
    closed: bool,
    over: bool,
    /// What was said before the first of them, between two, and behind the last.
    outside: String,
}

impl Results {
    /// Takes in a line; returns the name of the task that begins with it.
    pub fn line<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        let under_way = self.ran.last_mut().filter(|_| !self.closed);
        if let Some(name) = line.strip_prefix("== begin ") {
            self.ran.push(Ran { name: name.to_owned(), output: String::new(), end: End::Died });
            self.closed = false;
            return Some(name);
        }
        if line == "== over" {
            self.over = true;
        } else if let Some(task) = under_way {
            match end(line, &task.name) {
                Some(end) => (task.end, self.closed) = (end, true),
                None => task.output += &format!("{line}\n"),
            }
        } else {
            self.outside += &format!("{line}\n");
        }
        None
    }

    /// What was said, but by no task.
    pub fn outside(&self) -> &str {
        self.outside.trim()
    }

    /// What came of the tasks, in order, and whether the guest came to the end of its list.
    pub fn finish(mut self) -> (Vec<Ran>, bool) {
        for task in &mut self.ran {
            task.output.truncate(task.output.trim_end().len());
        }
        (self.ran, self.over)
    }
}

/// Runs `command`, which runs tasks in this `place`: what came of them, and how it ended itself.
pub fn watch(
    what: &str,
    place: &str,
    command: &mut Command,
    job: &mut Job,
) -> Result<(Results, ExitStatus), Stop> {
    let mut results = Results::default();
    let status = job.watch(what, command, |job, line| {
        if let Some(task) = results.line(line) {
            job.announce(&format!("{place}: {task}"));
        }
    })?;
    Ok((results, status))
}

/// How the task of this name ended, where `line` says that.
fn end(line: &str, name: &str) -> Option<End> {
    let status = line.strip_prefix("== end ")?.strip_prefix(name)?.trim_start();
    const KILLED: u8 = 128 + 9;
    Some(match status.parse() {
        Ok(KILLED) => End::Killed,
        Ok(status) => End::Status(status),
        Err(_) => End::Died,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::name_space::where_mounts_are;
    use crate::processes::Mark;

    fn results(said: &str) -> (Vec<Ran>, bool) {
        let mut results = Results::default();
        for line in said.lines() {
            results.line(line);
        }
        results.finish()
    }

    #[test]
    fn each_task_has_its_output_and_its_end() {
        let said = "noise\n== begin a\none\n\ntwo\n\n== end a 0\nnoise\n== begin b\n== end b 3\n\
                    == begin c\n== end c 137\n== over\n";
        let (ran, over) = results(said);
        let task = |name: &str, output: &str, end| Ran {
            name: name.to_owned(),
            output: output.to_owned(),
            end,
        };
        let [a, b] = [task("a", "one\n\ntwo", End::Status(0)), task("b", "", End::Status(3))];
        let expected = [a, b, task("c", "", End::Killed)];
        assert!(over && ran == expected, "{ran:?}");
    }

    #[test]
    fn a_guest_that_dies_takes_the_task_under_way_along() {
        let (ran, over) = results("== begin a\n== end a 0\n== begin b\nlast words\n");
        assert!(!over);
        assert_eq!((ran[0].end, ran[1].end), (End::Status(0), End::Died));
        assert_eq!(ran[1].output, "last words");
    }

    #[test]
    fn only_its_own_end_ends_a_task_and_an_unreadable_status_is_no_success() {
        let (ran, _) = results("== begin a\n== end b 0\n== end a nonsense\n");
        assert_eq!((ran[0].output.as_str(), ran[0].end), ("== end b 0", End::Died));
    }

    #[test]
    #[ignore = "needs PID namespaces"]
    fn tasks_run_in_order_each_in_its_time_and_leave_no_process_behind() {
        let tasks = [
            ("passes", "true", End::Status(0)),
            ("fails", "exit 3", End::Status(3)),
            ("has no input", "! read -r line", End::Status(0)),
            ("is over its time", "sleep 600", End::Killed),
            ("leaves a process", "sleep 600 >/dev/null 2>&1 & echo left", End::Status(0)),
            ("follows", "true", End::Status(0)),
        ];
        let list = tasks.map(|(name, command, _)| Task {
            name: name.to_owned(),
            seconds: if name == "is over its time" { 1 } else { 60 },
            command: command.to_owned(),
        });
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name("it")), file(&list)).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/guest/tasks.sh");
        let mut command = where_mounts_are(&format!("tasks=it; job=\"$folder\"; . {script}; exit"));
        let mark = Mark::of("tasks");
        let run = mark.put_on(&mut command).env("folder", folder.path()).output().unwrap();
        let left = mark.processes().len();
        mark.kill();
        let (ran, over) = results(&String::from_utf8_lossy(&run.stdout));
        let ends: Vec<_> = ran.iter().map(|ran| (ran.name.as_str(), ran.end)).collect();
        assert_eq!(ends, tasks.map(|(name, _, end)| (name, end)), "{run:?}");
        assert!(over && run.status.success() && left == 0, "{left} are left: {run:?}");
        assert_eq!(ran[4].output, "left");
    }

    #[test]
    fn a_task_is_a_line_and_told_when_it_begins() {
        let task = Task { name: "true".into(), seconds: 5, command: "exec true".into() };
        assert_eq!(file(&[task.clone(), task]), "true\t5\texec true\n".repeat(2));
        let mut results = Results::default();
        assert_eq!(results.line("== begin cqperf, polled"), Some("cqperf, polled"));
        assert_eq!(results.line("progress"), None);
    }
}
