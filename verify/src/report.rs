//! What is shown while stages run, the line per stage, the verdicts, the summary.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::message::{Outcome, Stop};
use crate::run::{log_path, root};
use crate::stages::Stage;

/// How much of a log is shown where a stage fails; the rest is in the file.
const TAIL: usize = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    Skipped,
}

/// What the stages came to so far.
pub struct Report {
    ci: bool,
    /// What stands before the name of a stage in the command that runs it as here.
    command: String,
    /// How many there are of each verdict.
    counts: [u32; 3],
    spinners: MultiProgress,
    spinner_of: BTreeMap<&'static str, ProgressBar>,
}

impl Report {
    /// Nothing has run yet; in CI a skip will count as a failure. `command` and the name of a stage run that again.
    pub fn new(ci: bool, command: String) -> Self {
        let (spinners, spinner_of) = (MultiProgress::new(), BTreeMap::new());
        Self { ci, command, counts: [0; 3], spinners, spinner_of }
    }

    /// A stage has begun.
    pub fn begins(&mut self, stage: &Stage) {
        let style = ProgressStyle::with_template("{spinner} {prefix:<12} {wide_msg} {elapsed}");
        let spinner = ProgressBar::new_spinner().with_style(style.expect("a valid template"));
        let spinner = self.spinners.add(spinner.with_prefix(stage.name));
        spinner.enable_steady_tick(Duration::from_millis(100));
        self.spinner_of.insert(stage.name, spinner);
    }

    /// A stage does something else from here on.
    pub fn under_way(&self, stage: &Stage, what: &str) {
        if self.spinners.is_hidden() {
            // Progress is a courtesy: no reader, no harm.
            let _ = writeln!(io::stderr(), "{}: {what}", stage.name);
        } else {
            self.progress(stage, what);
        }
    }

    /// How far it is with that; where there is no terminal, there would be too many lines of these.
    pub fn progress(&self, stage: &Stage, what: &str) {
        if let Some(spinner) = self.spinner_of.get(stage.name) {
            spinner.set_message(what.to_owned());
        }
    }

    /// Counts a stage that is over and prints its line, and its log where it failed.
    pub fn stage(&mut self, stage: &Stage, took: Duration, outcome: &Outcome) -> io::Result<()> {
        if let Some(spinner) = self.spinner_of.remove(stage.name) {
            spinner.finish_and_clear();
        }
        let verdict = verdict(outcome, self.ci);
        self.counts[verdict as usize] += 1;
        let (name, time, words) = (stage.name, time(took, stage.budget), in_words(outcome));
        let word = ["ok", "FAILED", "skipped"][verdict as usize];
        let line = format!("{word:<8}{name:<13}{time}  {words}\n");
        let log = match verdict {
            Verdict::Failed => shown_log(name) + &format!("---- again: {} {name}\n", self.command),
            _ => String::new(),
        };
        self.spinners.suspend(|| io::stdout().write_all((line + &log).as_bytes()))
    }

    /// Prints the summary, with the stages that `left` has to be run yet, and says whether nothing failed.
    pub fn finish(self, took: Duration, left: &[&Stage]) -> io::Result<bool> {
        let [passed, failed, skipped] = self.counts;
        let minutes = took.as_secs_f64() / 60.0;
        let counts = format!("{passed} passed, {failed} failed, {skipped} skipped");
        writeln!(io::stdout(), "\nstages: {counts} in {minutes:.1} min")?;
        if !left.is_empty() {
            let names: Vec<_> = left.iter().map(|stage| stage.name).collect();
            let names = names.join(" ");
            writeln!(io::stdout(), "before it is merged: cargo verify {names}")?;
        }
        Ok(failed == 0)
    }
}

/// How long a stage took, of how many seconds; with a mark where that was more.
fn time(took: Duration, budget: u32) -> String {
    let mark = if took > Duration::from_secs(budget.into()) { '!' } else { ' ' };
    format!("{:>6.1} of {budget:>3} s{mark}", took.as_secs_f64())
}

fn verdict(outcome: &Outcome, ci: bool) -> Verdict {
    match outcome {
        Ok(_) => Verdict::Passed,
        Err(Stop::Skipped(_)) if !ci => Verdict::Skipped,
        Err(_) => Verdict::Failed,
    }
}

/// The summary or the reason; the lines after the first are indented under the stage's.
fn in_words(outcome: &Outcome) -> String {
    match outcome {
        Ok(summary) => summary.replace('\n', "\n          "),
        Err(Stop::Skipped(reason)) => format!("not run: {reason}"),
        Err(Stop::Failed(why)) => why.clone(),
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
        0 => format!("---- {path}\n{tail}\n"),
        n => format!("---- {path}, without its first {n} lines\n{tail}\n"),
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
    fn what_failed_fails_everywhere_and_a_skip_in_ci_alone() {
        for (outcome, verdicts) in [
            (Err(Stop::Skipped(String::new())), [Verdict::Skipped, Verdict::Failed]),
            (Err(Stop::Failed(String::new())), [Verdict::Failed; 2]),
            (Ok(String::new()), [Verdict::Passed; 2]),
        ] {
            assert_eq!([false, true].map(|ci| verdict(&outcome, ci)), verdicts);
        }
    }

    #[test]
    fn a_time_stands_beside_its_budget_and_is_marked_where_it_is_longer() {
        assert_eq!(time(Duration::from_millis(1500), 2), "   1.5 of   2 s ");
        assert_eq!(time(Duration::from_millis(2500), 2), "   2.5 of   2 s!");
    }

    #[test]
    fn a_long_log_keeps_its_end() {
        assert_eq!(tail("a\nb\nc\n", 2), (1, "b\nc".to_owned()));
        assert_eq!(tail("a\nb\n", 2), (0, "a\nb".to_owned()));
    }
}
