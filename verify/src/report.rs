//! The line per stage, the verdicts, the summary.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::time::Duration;

use crate::run::{Stop, log_path, root};

/// How much of a log is shown where a stage fails: a screenful or two, the rest is in the file.
const TAIL: usize = 80;

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    Skipped,
}

/// Whether the value of the variable `CI` says that this is CI.
pub fn is_ci(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "false")
}

/// What the stages came to so far.
pub struct Report {
    ci: bool,
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Report {
    /// Nothing has run yet; in CI a skip will count as a failure.
    pub fn new(ci: bool) -> Self {
        Self { ci, passed: 0, failed: 0, skipped: 0 }
    }

    /// Counts a stage and prints its line, and its log where it failed.
    pub fn stage(
        &mut self,
        name: &str,
        took: Duration,
        result: &Result<String, Stop>,
    ) -> io::Result<()> {
        let verdict = verdict(result, self.ci);
        let (count, word) = match verdict {
            Verdict::Passed => (&mut self.passed, "ok"),
            Verdict::Failed => (&mut self.failed, "FAILED"),
            Verdict::Skipped => (&mut self.skipped, "skipped"),
        };
        *count += 1;
        let seconds = took.as_secs_f64();
        let line = format!("{word:<8}{name:<12}{seconds:>6.1} s  {}\n", in_words(result));
        let log = if verdict == Verdict::Failed { shown_log(name) } else { String::new() };
        io::stdout().write_all((line + &log).as_bytes())
    }

    /// Prints the summary, and says whether nothing failed.
    pub fn finish(self) -> io::Result<bool> {
        let Self { passed, failed, skipped, .. } = self;
        writeln!(io::stdout(), "\nstages: {passed} passed, {failed} failed, {skipped} skipped")?;
        Ok(failed == 0)
    }
}

fn verdict(result: &Result<String, Stop>, ci: bool) -> Verdict {
    match result {
        Ok(_) => Verdict::Passed,
        Err(Stop::Skipped(_)) if !ci => Verdict::Skipped,
        Err(_) => Verdict::Failed,
    }
}

/// The summary or the reason; the lines after the first are indented under the stage's.
fn in_words(result: &Result<String, Stop>) -> String {
    match result {
        Ok(summary) => summary.replace('\n', "\n          "),
        Err(Stop::Skipped(reason)) => format!("not run: {reason}"),
        Err(stop) => stop.to_string(),
    }
}

fn shown_log(stage: &str) -> String {
    let path = log_path(stage);
    let log = fs::read(root().join(&path)).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let (left_out, tail) = tail(&log, TAIL);
    let path = path.display();
    match left_out {
        _ if log.is_empty() => String::new(),
        0 => format!("---- {path}\n{tail}\n----\n"),
        n => format!("---- {path}, without its first {n} lines\n{tail}\n----\n"),
    }
}

/// The last `limit` lines, and how many came before them.
fn tail(text: &str, limit: usize) -> (usize, String) {
    let lines: Vec<&str> = text.lines().collect();
    let left_out = lines.len().saturating_sub(limit);
    (left_out, lines[left_out..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ci_is_any_value_but_empty_and_false() {
        assert!(is_ci(Some(OsStr::new("true"))) && is_ci(Some(OsStr::new("1"))));
        assert!(!is_ci(None) && !is_ci(Some(OsStr::new(""))) && !is_ci(Some(OsStr::new("false"))));
    }

    #[test]
    fn a_skip_fails_in_ci_alone() {
        let skip = Err(Stop::Skipped("no such tool".into()));
        assert_eq!(verdict(&skip, false), Verdict::Skipped);
        assert_eq!(verdict(&skip, true), Verdict::Failed);
    }

    #[test]
    fn output_that_shows_nothing_fails_everywhere() {
        let empty = Err(Stop::Unshown("no test ran"));
        assert_eq!(verdict(&empty, false), Verdict::Failed);
        assert_eq!(verdict(&Ok(String::new()), true), Verdict::Passed);
    }

    #[test]
    fn a_long_log_keeps_its_end() {
        assert_eq!(tail("a\nb\nc\n", 2), (1, "b\nc".to_owned()));
        assert_eq!(tail("a\nb\n", 2), (0, "a\nb".to_owned()));
    }
}
