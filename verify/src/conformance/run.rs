//! Running cases: each in a thread with a deadline, each transport in a process of its own, so that a case
//! that panics, hangs or crashes is told and takes nothing with it.
//!
//! The process writes a line `case NAME` before each case, `ok` or `failed WHY` after it, and `done` at the
//! end. Where it ends without, whoever started it starts it again behind the case that was under way.

use std::io::{self, BufRead, BufReader, Write};
use std::panic::{self, PanicHookInfo};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

#[cfg(feature = "verbs")]
use super::Runs;
use super::expect::{PATIENT, set_patience};
use super::{Case, TRANSPORTS, Transport, deviations};

/// How long a case may take.
const DEADLINE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 60 });
/// How long a case that is known to fail waits for what does not come.
const IMPATIENT: Duration = Duration::from_millis(500);

/// What came of a case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// On which transport.
    pub transport: &'static str,
    /// Which case.
    pub case: Case,
    /// Why it failed.
    pub result: Result<(), String>,
}

/// What is told while cases run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// On which transport.
    pub transport: &'static str,
    /// Which case starts.
    pub case: &'static str,
    /// How many are over.
    pub over: usize,
    /// How many there are.
    pub of: usize,
}

/// Runs every case of a transport. `process` makes the command that calls [`run_here`] for it and the number
/// of its first case.
///
/// # Errors
/// A process could not be started or read.
pub fn run(
    transport: &Transport,
    mut process: impl FnMut(usize) -> io::Result<Command>,
    mut tell: impl FnMut(Progress),
) -> io::Result<Vec<Outcome>> {
    let cases = (transport.cases)();
    let mut run = Run { transport, cases: &cases, results: Vec::new(), begun: 0 };
    while run.results.len() < cases.len() {
        run.process(&mut process(run.results.len())?, &mut tell)?;
    }
    let Run { results, .. } = run;
    let outcome = |(case, result)| Outcome { transport: transport.name, case, result };
    Ok(cases.into_iter().zip(results).map(outcome).collect())
}

/// The cases of a transport, as far as they have run.
struct Run<'a> {
    transport: &'a Transport,
    cases: &'a [Case],
    results: Vec<Result<(), String>>,
    /// How many have begun: one more than there are results while one is under way.
    begun: usize,
}

impl Run<'_> {
    /// Runs a process to its end. There is at least one more result then.
    fn process(
        &mut self,
        command: &mut Command,
        tell: &mut impl FnMut(Progress),
    ) -> io::Result<()> {
        let before = self.results.len();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().expect("it was asked for");
        for line in BufReader::new(stdout).lines() {
            self.line(&line?, tell);
        }
        let status = child.wait()?;
        if self.begun > self.results.len() || self.results.len() == before {
            self.results.push(Err(format!("the process that ran it ended: {status}")));
            self.begun = self.results.len();
        }
        Ok(())
    }

    fn line(&mut self, line: &str, tell: &mut impl FnMut(Progress)) {
        let over = self.results.len();
        if let Some(name) = line.strip_prefix("case ") {
            let Some(case) = self.cases.get(over).filter(|case| case.name == name) else { return };
            self.begun = over + 1;
            let (transport, of) = (self.transport.name, self.cases.len());
            tell(Progress { transport, case: case.name, over, of });
        } else if self.begun > over {
            match line.strip_prefix("failed ") {
                Some(why) => self.results.push(Err(why.to_owned())),
                None if line == "ok" => self.results.push(Ok(())),
                None => {}
            }
        }
    }
}

/// The transport of this name.
///
/// # Errors
/// There is none.
pub fn named(transport: &str) -> io::Result<&'static Transport> {
    TRANSPORTS.iter().find(|one| one.name == transport).ok_or_else(|| {
        let names = TRANSPORTS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
        let what = format!("no transport is called `{transport}`; there are {names}");
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

/// Runs the cases of a transport from number `from` on whose names are `wanted`, in this process, and writes a
/// line before and after each. Whether none failed.
///
/// # Errors
/// There is no such transport, this program can't run it, there is no device for it, or `out` takes nothing.
pub fn run_here(
    transport: &str,
    from: usize,
    wanted: impl Fn(&str) -> bool,
    out: &mut impl Write,
) -> io::Result<bool> {
    let transport = named(transport)?;
    if !transport.runs.here() {
        let what = format!(
            "this program was built without libibverbs: build it with `--features verbs` to run {} where there is a device",
            transport.name
        );
        return Err(io::Error::new(io::ErrorKind::Unsupported, what));
    }
    #[cfg(feature = "verbs")]
    if transport.runs != Runs::Anywhere {
        crate::verbs::check().map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
    }
    panic::set_hook(Box::new(note_panic));
    let mut all_well = true;
    for case in (transport.cases)().iter().skip(from).filter(|case| wanted(case.name)) {
        writeln!(out, "case {}", case.name)?;
        out.flush()?;
        let deviates = deviations().any(|one| one.is_of(transport.name, case));
        set_patience(if deviates { IMPATIENT } else { PATIENT });
        let (result, hangs) = run_case(case);
        match &result {
            Ok(()) => writeln!(out, "ok")?,
            Err(why) => writeln!(out, "failed {}", why.replace('\n', " "))?,
        }
        all_well &= result.is_ok();
        if hangs {
            // Its thread may spoil what runs beside it.
            return Ok(false);
        }
    }
    writeln!(out, "done")?;
    Ok(all_well)
}

/// What was said by the threads that panicked in this case, and where.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn note_panic(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let said = text.or_else(|| payload.downcast_ref().copied()).unwrap_or("panicked");
    let place = info.location().map_or_else(String::new, |place| {
        let file = place.file().rsplit('/').next().unwrap_or_default();
        format!(" ({file}:{})", place.line())
    });
    PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{said}{place}"));
}

fn panics() -> String {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner).join("; ")
}

/// How a case went, and whether it still runs.
fn run_case(case: &Case) -> (Result<(), String>, bool) {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let (over, ended) = mpsc::channel::<()>();
    let run = case.run;
    let thread = thread::Builder::new().name(case.name.to_owned()).spawn(move || {
        let _over = over; // dropped when this ends, however it does
        run();
    });
    let thread = match thread {
        Ok(thread) => thread,
        Err(error) => return (Err(format!("no thread to run it: {error}")), false),
    };
    if ended.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout) {
        let seconds = DEADLINE.as_secs();
        return (Err(format!("it hangs: not over after {seconds} s; {}", panics())), true);
    }
    (thread.join().map_err(|_| panics()), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: [Case; 3] = [
        Case { name: "c01_first", run: || {} },
        Case { name: "c02_second", run: || {} },
        Case { name: "c03_third", run: || {} },
    ];

    /// The results of processes that run these scripts, one after the other.
    fn results(scripts: &[&str]) -> Vec<Result<(), String>> {
        let transport = &TRANSPORTS[0];
        let mut run = Run { transport, cases: &CASES, results: Vec::new(), begun: 0 };
        for script in scripts {
            let mut shell = Command::new("sh");
            run.process(shell.args(["-c", script]), &mut |_| {}).unwrap();
        }
        run.results
    }

    #[test]
    #[cfg(not(feature = "verbs"))]
    fn a_transport_of_another_build_says_how_to_build_it() {
        let said = run_here("verbs-rxe", 0, |_| true, &mut Vec::new()).unwrap_err().to_string();
        assert!(said.contains("--features verbs"), "{said}");
    }

    #[test]
    fn what_a_process_says_is_the_result() {
        let said = "echo case c01_first; echo ok; echo case c02_second; echo failed why not; \
                    echo case c03_third; echo noise; echo ok; echo done";
        assert_eq!(results(&[said]), [Ok(()), Err("why not".to_owned()), Ok(())]);
    }

    #[test]
    fn a_case_that_takes_its_process_along_has_failed_and_the_next_runs() {
        let dies = "echo case c01_first; echo ok; echo case c02_second; kill -9 $$";
        let goes_on = "echo case c03_third; echo ok; echo done";
        let seen = results(&[dies, goes_on]);
        assert_eq!((&seen[0], &seen[2]), (&Ok(()), &Ok(())));
        assert!(seen[1].as_ref().is_err_and(|why| why.contains("signal: 9")), "{seen:?}");
    }

    #[test]
    fn a_process_that_says_nothing_fails_a_case_and_not_the_run() {
        let seen = results(&["exit 3", "echo case c03_third; echo ok"]);
        assert!(seen[0].is_err() && seen[1].is_err(), "the wrong case is no result: {seen:?}");
    }

    #[test]
    fn a_panic_is_told_with_its_place_and_a_hang_after_the_deadline() {
        panic::set_hook(Box::new(note_panic));
        let panics = run_case(&Case { name: "c01_panics", run: || panic!("as it must") });
        let hangs = run_case(&Case {
            name: "c02_hangs",
            run: || loop {
                thread::park()
            },
        });
        let _ = panic::take_hook();
        let said = panics.0.unwrap_err();
        assert!(said.contains("as it must (run.rs:"), "{said}");
        assert!(hangs.0.unwrap_err().contains("it hangs") && hangs.1 && !panics.1);
    }
}
