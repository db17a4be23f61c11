//! What a guest is told to run, and what came of it.
//!
//! A list of tasks is a file, a line each: name, seconds and command, with tabs between. The guest prints `== begin
//! NAME` before each and `== end NAME STATUS` behind it, and `== over` behind the last: a guest that ends
//! without has died.

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

/// The tasks as the guest reads them.
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
    /// It was killed; the guest does that when its time is over.
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
        }
        None
    }

    /// What came of the tasks, in order, and whether the guest came to the end of its list.
    pub fn finish(mut self) -> (Vec<Ran>, bool) {
        for task in &mut self.ran {
            task.output.truncate(task.output.trim_end().len());
        }
        (self.ran, self.over)
    }
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
    use super::*;

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
    fn a_task_is_a_line_and_told_when_it_begins() {
        let task = Task { name: "true".into(), seconds: 5, command: "exec true".into() };
        assert_eq!(file(&[task.clone(), task]), "true\t5\texec true\n".repeat(2));
        let mut results = Results::default();
        assert_eq!(results.line("== begin cqperf, polled"), Some("cqperf, polled"));
        assert_eq!(results.line("progress"), None);
    }
}
