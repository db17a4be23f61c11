//! Running cases in this process, each in a thread with a deadline, so that a panic or a hang is reported. `drive`
//! handles crashes.

use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

#[cfg(feature = "verbs")]
use super::Runs;
use super::drive::{Part, write_result};
use super::expect::{PATIENT, set_patience};
use super::{CONFINED, Case, Outcome, TRANSPORTS, Transport, deviations};

/// How long a case may take.
const DEADLINE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 60 });
/// How long a case with a known deviation waits for what does not arrive.
const IMPATIENT: Duration = Duration::from_millis(500);

/// The transport of this name.
///
/// # Errors
/// No transport has this name.
pub fn named(transport: &str) -> io::Result<&'static Transport> {
    TRANSPORTS.iter().find(|one| one.name == transport).ok_or_else(|| {
        let names = TRANSPORTS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
        let what = format!("no transport is called `{transport}`; there are {names}");
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

/// Runs the cases of this part whose names are `wanted` in this process, and writes a line before and after each.
/// Returns whether each passed, or failed by a known deviation.
///
/// # Errors
/// No transport or no case has this name, this program can't run it, its device is missing, or writing to `out` failed.
pub fn run_here(
    transport: &str,
    part: Part,
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
    let (mut all_well, mut ran) = (true, 0);
    let cases = (transport.cases)();
    for case in part.of(cases.len()).map(|nth| &cases[nth]).filter(|case| wanted(case.name)) {
        ran += 1;
        writeln!(out, "case {}", case.name)?;
        out.flush()?;
        let deviates = deviations().any(|one| one.is_of(transport.name, case));
        set_patience(if deviates { IMPATIENT } else { PATIENT });
        let (result, hangs) = run_case(case);
        write_result(out, &result)?;
        let outcome = Outcome { transport: transport.name, case: *case, result };
        let is_confined = CONFINED.iter().any(|one| one.explains(&outcome));
        all_well &= outcome.result.is_err() == (deviates || is_confined);
        if hangs {
            // Its thread still runs and may disturb later cases.
            return Ok(false);
        }
    }
    if ran == 0 {
        let what = format!("{} has no such case", transport.name);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    writeln!(out, "done")?;
    Ok(all_well)
}

/// The messages of the threads that panicked in this case, with their locations.
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

/// The result of a case, and whether it still runs.
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

    #[test]
    #[cfg(not(feature = "verbs"))]
    fn a_transport_of_another_build_says_how_to_build_it() {
        let said = run_here("verbs-rxe", Part { from: 0, every: 1 }, |_| true, &mut Vec::new())
            .unwrap_err()
            .to_string();
        assert!(said.contains("--features verbs"), "{said}");
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
