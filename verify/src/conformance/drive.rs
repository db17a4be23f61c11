//! Running cases in processes, one after the other or several in parallel, because cases mostly wait for timers.
//!
//! A process writes a line `case NAME` before each case, `ok` or `failed WHY` after it, and `done` at the end.
//! If it exits without `done`, the case that was running has failed, and a new process continues with the next one.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{Case, Transport};
use crate::loopback::FABRIC;

/// The result of a case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The transport.
    pub transport: &'static str,
    /// The case.
    pub case: Case,
    /// The message of its failure.
    pub result: Result<(), String>,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The transport.
    pub transport: &'static str,
    /// The case that starts.
    pub case: &'static str,
    /// The number of completed cases.
    pub over: usize,
    /// The number of all cases.
    pub of: usize,
}

/// A subset of a transport's cases: number `from`, and every `every`th after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of the first case, from 0.
    pub from: usize,
    /// 1 for all cases; the number of parallel processes for the share of one.
    pub every: usize,
}

impl Part {
    /// The arguments that select it, in addition to `--cases` and the transport.
    #[must_use]
    pub fn arguments(&self) -> [String; 2] {
        [format!("--from={}", self.from), format!("--every={}", self.every)]
    }

    /// The numbers of its cases, out of `count`.
    pub(super) fn of(self, count: usize) -> impl Iterator<Item = usize> {
        (self.from..count).step_by(self.every)
    }
}

/// Runs every case of a transport. `process` makes the command that calls [`run_here`](super::run_here) for it and
/// the number of its first case.
///
/// # Errors
/// A process could not be started or read.
pub fn run(
    transport: &Transport,
    mut process: impl FnMut(usize) -> io::Result<Command> + Send,
    tell: impl FnMut(Progress),
) -> io::Result<Vec<Outcome>> {
    run_side_by_side(transport, 1, |Part { from, .. }| process(from), tell)
}

/// Runs every case of a transport in `jobs` parallel processes, each with a fabric of its own and its share of the
/// cases. `process` makes the command that calls [`run_here`](super::run_here) for a part of them.
///
/// # Errors
/// A process could not be started or read.
pub fn run_side_by_side(
    transport: &Transport,
    jobs: usize,
    process: impl FnMut(Part) -> io::Result<Command> + Send,
    mut tell: impl FnMut(Progress),
) -> io::Result<Vec<Outcome>> {
    let cases = (transport.cases)();
    let mut results = vec![None; cases.len()];
    let mut over = 0;
    drive(&cases, jobs, process, |news| match news {
        News::Begun(nth) => {
            let (transport, of) = (transport.name, cases.len());
            tell(Progress { transport, case: cases[nth].name, over, of });
        }
        News::Over(nth, result) => {
            over += 1;
            results[nth] = Some(result);
        }
    })?;
    let outcome = |(case, result): (Case, Option<Result<(), String>>)| {
        let result = result.expect("every case was run, or its process has failed");
        Outcome { transport: transport.name, case, result }
    };
    Ok(cases.into_iter().zip(results).map(outcome).collect())
}

/// Writes the line of a completed case.
pub(super) fn write_result(out: &mut impl Write, result: &Result<(), String>) -> io::Result<()> {
    match result {
        Ok(()) => writeln!(out, "ok"),
        Err(why) => writeln!(out, "failed {}", why.replace('\n', " ")),
    }
}

/// The progress of a case, by its number.
enum News {
    Begun(usize),
    Over(usize, Result<(), String>),
}

/// Runs cases in parallel processes.
fn drive(
    cases: &[Case],
    jobs: usize,
    process: impl FnMut(Part) -> io::Result<Command> + Send,
    hear: impl FnMut(News),
) -> io::Result<()> {
    let process = Mutex::new(process);
    thread::scope(|scope| {
        let (news, heard) = channel();
        let mut shares: Vec<_> = (0..jobs)
            .map(|job| Share {
                cases,
                numbers: (job..cases.len()).step_by(jobs).collect(),
                begun: 0,
                over: 0,
                news: news.clone(),
            })
            .collect();
        drop(news);
        let running: Vec<_> = shares
            .drain(..)
            .enumerate()
            .map(|(job, mut share)| {
                let process = &process;
                scope.spawn(move || {
                    while let Some(&from) = share.numbers.get(share.over) {
                        let mut process = process.lock().unwrap_or_else(PoisonError::into_inner);
                        let mut command = process(Part { from, every: jobs })?;
                        drop(process);
                        if jobs > 1 {
                            command.env(FABRIC, format!("verify-{}-{job}", std::process::id()));
                        }
                        share.process(&mut command)?;
                    }
                    Ok(())
                })
            })
            .collect();
        heard.into_iter().for_each(hear);
        running.into_iter().try_for_each(|share| share.join().expect("it does not panic"))
    })
}

/// The cases that run in one process, or in further ones after a crash.
struct Share<'a> {
    cases: &'a [Case],
    /// Their numbers.
    numbers: Vec<usize>,
    /// How many have started: one more than `over` while a case is running.
    begun: usize,
    /// How many have completed.
    over: usize,
    news: Sender<News>,
}

impl Share<'_> {
    /// Runs a process until it exits. At least one more case has a result then.
    fn process(&mut self, command: &mut Command) -> io::Result<()> {
        let before = self.over;
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().expect("it was asked for");
        for line in BufReader::new(stdout).lines() {
            self.line(&line?);
        }
        let status = child.wait()?;
        if self.begun > self.over || self.over == before {
            self.result(Err(format!("the process that ran it ended: {status}")));
            self.begun = self.over;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("case ") {
            let next = self.numbers.get(self.over);
            let Some(&nth) = next.filter(|&&nth| self.cases[nth].name == name) else { return };
            self.begun = self.over + 1;
            let _ = self.news.send(News::Begun(nth));
        } else if self.begun > self.over {
            match line.strip_prefix("failed ") {
                Some(why) => self.result(Err(why.to_owned())),
                None if line == "ok" => self.result(Ok(())),
                None => {}
            }
        }
    }

    fn result(&mut self, result: Result<(), String>) {
        let _ = self.news.send(News::Over(self.numbers[self.over], result));
        self.over += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: [Case; 4] = [
        Case { name: "c01_first", run: || {} },
        Case { name: "c02_second", run: || {} },
        Case { name: "c03_third", run: || {} },
        Case { name: "c04_fourth", run: || {} },
    ];

    /// The results of the first `count` cases by processes, of which the one for a part runs what `script` says.
    fn results(
        count: usize,
        jobs: usize,
        script: impl Fn(Part) -> &'static str + Sync,
    ) -> Vec<Result<(), String>> {
        let mut results = vec![Err("never run".to_owned()); count];
        let process = |part| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script(part)]);
            Ok(shell)
        };
        let hear = |news| {
            if let News::Over(nth, result) = news {
                results[nth] = result;
            }
        };
        drive(&CASES[..count], jobs, process, hear).unwrap();
        results
    }

    #[test]
    fn what_a_process_says_is_the_result() {
        let said = "echo case c01_first; echo ok; echo case c02_second; echo failed why not; \
                    echo case c03_third; echo noise; echo ok; echo done";
        assert_eq!(results(3, 1, |_| said), [Ok(()), Err("why not".to_owned()), Ok(())]);
    }

    #[test]
    fn a_case_that_takes_its_process_along_has_failed_and_the_next_runs() {
        let seen = results(3, 1, |part| match part.from {
            0 => "echo case c01_first; echo ok; echo case c02_second; kill -9 $$",
            _ => "echo case c03_third; echo ok; echo done",
        });
        assert_eq!((&seen[0], &seen[2]), (&Ok(()), &Ok(())));
        assert!(seen[1].as_ref().is_err_and(|why| why.contains("signal: 9")), "{seen:?}");
    }

    #[test]
    fn a_process_that_says_nothing_fails_a_case_and_not_the_run() {
        let seen = results(3, 1, |part| match part.from {
            0 => "exit 3",
            1 => "echo case c03_third; echo ok",
            _ => "echo case c03_third; echo ok; echo done",
        });
        assert!(seen[0].is_err() && seen[1].is_err(), "the wrong case is no result: {seen:?}");
        assert_eq!(seen[2], Ok(()));
    }

    #[test]
    fn of_two_processes_each_runs_its_share_and_what_one_dies_of_is_its_own() {
        let seen = results(4, 2, |part| match (part.from, part.every) {
            (0, 2) => "echo case c01_first; kill -9 $$",
            (1, 2) => "echo case c02_second; echo ok; echo case c04_fourth; echo ok; echo done",
            (2, 2) => "echo case c03_third; echo ok; echo done",
            other => panic!("nobody asked for {other:?}"),
        });
        assert!(seen[0].as_ref().is_err_and(|why| why.contains("signal: 9")), "{seen:?}");
        assert_eq!(seen[1..], [Ok(()), Ok(()), Ok(())]);
    }

    #[test]
    fn the_parts_of_side_by_side_processes_are_all_cases_once() {
        let mut all: Vec<_> = (0..3).flat_map(|from| Part { from, every: 3 }.of(10)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }
}
