//! Which stage runs when, and for how long: side by side as far as they share nothing, each in a process of its own,
//! which is ended when its time is over.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::message::{Message, Outcome, Stop};
use crate::processes::{Mark, Running};
use crate::report::Report;
use crate::run::{log_path, processors, root};
use crate::stages::Stage;
use crate::stages::libtest;

/// So many stages more than there are processors run side by side: some always wait, for timers or a lock of cargo.
const WAITING: usize = 1;
/// How long processes that a stage started may outlive it, while they are ending.
const GRACE: Duration = Duration::from_secs(5);
/// So long a stage may say nothing, neither here nor in its log: what takes longest without a word is a program that is
/// compiled on a busy machine.
const SILENCE: Duration = Duration::from_secs(400);
/// How often the progress is drawn, and the time looked at.
const TICK: Duration = Duration::from_millis(200);

/// What comes from the process of the stage of this name: nothing more, at last.
type Told = (&'static str, Option<Message>);

/// A stage under way.
struct UnderWay {
    stage: &'static Stage,
    mark: Mark,
    process: Child,
    started: Instant,
    /// What it said last that it does.
    what: String,
    /// When it said something last, and how long its log was then.
    heard: (Instant, u64),
    outcome: Option<Outcome>,
    /// Whether it says nothing more.
    ended: bool,
    /// What hung, once its time is over.
    hung: Option<String>,
}

/// Runs the stages by these commands, each as soon as nothing that it shares is in use, the first ones first, and ends
/// each that takes longer than its limit; reports each when it is over.
pub fn run(
    stages: &[&'static Stage],
    command: impl Fn(&Stage) -> Command,
    limit: impl Fn(&Stage) -> Duration,
    report: &mut Report,
) -> io::Result<()> {
    let (teller, told) = mpsc::channel();
    let mut waiting = stages.to_vec();
    let mut under_way: Vec<UnderWay> = Vec::new();
    while !(waiting.is_empty() && under_way.is_empty()) {
        let mut busy: Vec<_> = under_way.iter().map(|process| process.stage).collect();
        while let Some(stage) = next(&mut waiting, &busy, processors() + WAITING) {
            under_way.push(UnderWay::start(stage, command(stage), &teller)?);
            busy.push(stage);
            report.begins(stage);
        }
        take_in(&told, &mut under_way, report);
        for process in &mut under_way {
            process.end_in_time(limit(process.stage), SILENCE);
        }
        for process in under_way.extract_if(.., |process| process.ended) {
            let (stage, took) = (process.stage, process.started.elapsed());
            report.stage(stage, took, &process.conclude()?)?;
        }
    }
    Ok(())
}

/// The first stage that may start beside these, if that are not too many.
fn next(waiting: &mut Vec<&'static Stage>, busy: &[&Stage], most: usize) -> Option<&'static Stage> {
    let may_start = |stage: &&Stage| {
        busy.iter().all(|other| stage.name != other.name && !other.excludes(stage))
    };
    let first = waiting.iter().position(may_start).filter(|_| busy.len() < most)?;
    Some(waiting.remove(first))
}

/// Takes in what the processes say, until the next look at the time.
fn take_in(told: &Receiver<Told>, under_way: &mut [UnderWay], report: &Report) {
    let next_look = Instant::now() + TICK;
    while let Ok((name, message)) =
        told.recv_timeout(next_look.saturating_duration_since(Instant::now()))
    {
        let from = under_way.iter_mut().find(|process| process.stage.name == name);
        let from = from.expect("it is under way until it has ended");
        match message {
            Some(message) => from.hears(message, report),
            None => return from.ended = true,
        }
    }
}

impl UnderWay {
    fn start(stage: &'static Stage, mut command: Command, to: &Sender<Told>) -> io::Result<Self> {
        let path = root().join(log_path(stage.name));
        fs::create_dir_all(path.parent().expect("a log lies in a folder"))?;
        File::create(&path)?;
        let log = File::options().append(true).open(&path)?;
        let mark = Mark::of(stage.name);
        mark.put_on(&mut command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let started = Instant::now();
        let mut process = command.spawn()?;
        let stdout = process.stdout.take().expect("it was asked for");
        let teller = to.clone();
        thread::spawn(move || read(stage.name, stdout, &teller));
        let what = "starting".to_owned();
        let heard = (started, 0);
        let (outcome, ended, hung) = (None, false, None);
        Ok(Self { stage, mark, process, started, what, heard, outcome, ended, hung })
    }

    fn hears(&mut self, message: Message, report: &Report) {
        self.heard.0 = Instant::now();
        match message {
            Message::Over(outcome) => self.outcome = Some(outcome),
            Message::UnderWay(what) => {
                report.under_way(self.stage, &what);
                self.what = what;
            }
            Message::Progress(what) => {
                report.progress(self.stage, &what);
                self.what = what;
            }
        }
    }

    /// Ends it where its time is over, and keeps what hung.
    fn end_in_time(&mut self, limit: Duration, silence: Duration) {
        let log = root().join(log_path(self.stage.name));
        let length = fs::metadata(log).map_or(0, |log| log.len());
        if length != self.heard.1 {
            self.heard = (Instant::now(), length);
        }
        let why = if self.started.elapsed() > limit {
            format!("over its limit of {} s", limit.as_secs())
        } else if self.heard.0.elapsed() > silence {
            format!("silent for {} s", silence.as_secs())
        } else {
            return;
        };
        if self.hung.is_none() {
            self.hung = Some(format!("hung: {why} in {}", self.hangs()));
            self.mark.kill();
        }
    }

    /// What hangs, in words; the stacks go to the log.
    fn hangs(&self) -> String {
        let all = self.mark.processes();
        let at_work: Vec<&Running> = all.iter().filter(|it| !it.waits_for_others()).collect();
        let path = log_path(self.stage.name);
        let log = fs::read(root().join(&path)).unwrap_or_default();
        let tests = libtest::unfinished(&String::from_utf8_lossy(&log));
        let programs = at_work.iter().map(ToString::to_string).collect();
        let mut words = self.what.clone();
        for (kind, names) in [("tests", tests), ("programs", programs)] {
            if !names.is_empty() {
                words += &format!("; {kind}: {}", names.join(", "));
            }
        }
        let log = File::options().append(true).open(root().join(path));
        let written = log.and_then(|mut log| {
            at_work.iter().try_for_each(|process| process.write_stacks(&mut log))
        });
        match written {
            Ok(()) => words,
            Err(error) => format!("{words}; no stacks: {error}"),
        }
    }

    /// What came of it, once it is over. What it has left behind is ended, and is a fault.
    fn conclude(mut self) -> io::Result<Outcome> {
        let status = self.process.wait()?;
        if let Some(hung) = self.hung {
            return Ok(Err(Stop::Failed(hung)));
        }
        let left = self.mark.left_after(GRACE);
        self.mark.kill();
        let no_verdict = || format!("its process ended without a verdict: {status}");
        let outcome = self.outcome.unwrap_or_else(|| Err(Stop::Failed(no_verdict())));
        if outcome.is_err() || left.is_empty() {
            return Ok(outcome);
        }
        let left: Vec<_> = left.iter().map(ToString::to_string).collect();
        Ok(Err(Stop::Failed(format!("processes were left running: {}", left.join(", ")))))
    }
}

/// Reads what the process of a stage says, until its end.
fn read(name: &'static str, stdout: ChildStdout, teller: &Sender<Told>) {
    // Who listens is there as long as the stage is under way.
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        if let Ok(message) = serde_json::from_str(&line) {
            let _ = teller.send((name, Some(message)));
        }
    }
    let _ = teller.send((name, None));
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::stages::Shared;

    const fn stage(name: &'static str) -> Stage {
        Stage::new(name, 60, |_| unreachable!("another process runs it"))
    }

    /// A shell that stands for the process of a stage.
    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// What a stage came to whose process runs this script; how long it may take and be silent, as it is by then.
    fn outcome_of(
        name: &'static str,
        script: &str,
        times: impl Fn(&UnderWay) -> [Duration; 2],
    ) -> Outcome {
        let (teller, told) = mpsc::channel();
        let stage: &'static Stage = Box::leak(Box::new(stage(name)));
        let mut under_way = [UnderWay::start(stage, shell(script), &teller).unwrap()];
        let report = Report::new(false, String::new());
        while !under_way[0].ended {
            take_in(&told, &mut under_way, &report);
            let [limit, silence] = times(&under_way[0]);
            under_way[0].end_in_time(limit, silence);
        }
        let [process] = under_way;
        let outcome = process.conclude().unwrap();
        fs::remove_file(root().join(log_path(name))).unwrap();
        outcome
    }

    const LONG: Duration = Duration::from_secs(60);
    const PASSED: &str = r#"echo '{"Over":{"Ok":"all of it"}}'"#;

    #[test]
    fn what_the_process_says_last_is_what_came_of_the_stage_unless_it_leaves_a_child() {
        let passes = format!(r#"echo noise; echo '{{"UnderWay":"a step"}}'; {PASSED}"#);
        let leaves = format!("setsid sleep 1000 >/dev/null 2>&1 & {PASSED}");
        for (name, script, came) in [
            ("test-passes", &*passes, "Ok(\"all of it\")"),
            ("test-crashes", "kill -SEGV $$", "its process ended without a verdict: signal: 11"),
            ("test-leaves", &leaves, "processes were left running: sleep (process "),
        ] {
            let outcome = format!("{:?}", outcome_of(name, script, |_| [LONG, LONG]));
            assert!(outcome.contains(came), "{outcome}");
        }
    }

    #[test]
    fn an_endless_loop_and_a_sleeping_child_are_ended_and_named() {
        let script = r#"echo '{"UnderWay":"cargo test"}'
                        echo 'test a::deadlock has been running for over 60 seconds' >&2
                        sleep 1000 & while :; do :; done"#;
        let sleeps = |process: &UnderWay| {
            process.mark.processes().iter().any(|it| it.to_string().starts_with("sleep "))
        };
        let over = |process: &UnderWay| if sleeps(process) { Duration::ZERO } else { LONG };
        let said = [
            outcome_of("test-hangs", script, |process| [over(process), LONG]),
            outcome_of("test-is-silent", script, |process| [LONG, over(process)]),
        ];
        for (said, why) in said.into_iter().zip(["over its limit of 0 s", "silent for 0 s"]) {
            let said = said.unwrap_err().to_string();
            assert!(said.starts_with(&format!("hung: {why} in cargo test; ")), "{said}");
            for part in ["tests: a::deadlock", "programs: sleep (process "] {
                assert!(said.contains(part), "no {part} in {said}");
            }
        }
    }

    #[test]
    fn what_shares_something_does_not_run_side_by_side_and_all_else_starts_in_order() {
        static STAGES: [Stage; 4] = [
            stage("test-a").shares(&[Shared::Debug]),
            stage("test-b").shares(&[Shared::Debug, Shared::Loom]),
            stage("test-c").shares(&[Shared::Checker]),
            stage("test-d").shares(&[Shared::Loom]),
        ];
        let all: Vec<_> = STAGES.iter().collect();
        let mut waiting = all.clone();
        for (busy, name, why) in [
            (&all[..0], Some("test-a"), "it is the first"),
            (&all[..1], Some("test-c"), "b shares a folder with a"),
            (&[all[0], all[2]], None, "two run"),
        ] {
            let stage = next(&mut waiting, busy, 2);
            assert_eq!(stage.map(|stage| stage.name), name, "{why}");
        }
        assert!(next(&mut vec![all[2]], &[all[2]], 2).is_none(), "it runs");
        let started = Mutex::new(Vec::new());
        let command = |stage: &Stage| {
            started.lock().unwrap().push(stage.name);
            shell(PASSED)
        };
        run(&all, command, |_| LONG, &mut Report::new(false, String::new())).unwrap();
        started.lock().unwrap().sort_unstable();
        assert_eq!(*started.lock().unwrap(), STAGES.each_ref().map(|stage| stage.name));
        for stage in &STAGES {
            fs::remove_file(root().join(log_path(stage.name))).unwrap();
        }
    }
}
