//! Counts instructions: runs this program under callgrind and reads what that wrote.
//!
//! A program that counts does the same so many times, and then more often: the difference is what it takes, without
//! what comes before and after it.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, fs, process};

use cq_verbs::causes::Causes;

use crate::failure::Failure;

/// How many instructions each function took in all of its calls, with what it called.
pub type Costs = HashMap<String, u64>;

/// Tells a program that it is under callgrind.
const UNDER_CALLGRIND: &str = "under-callgrind";

/// How often a program does each thing at first, and then.
pub const TIMES: [u32; 2] = [250, 500];

/// The main function of a program of this name that counts: `work` is what is counted, which it does under callgrind;
/// `report` runs it there, by [`count`], and prints what came of it.
pub fn main(
    name: &str,
    work: impl FnOnce() -> Result<(), Failure>,
    report: impl FnOnce() -> Result<(), Failure>,
) -> ExitCode {
    let done = match env::args().nth(1).as_deref() {
        Some(UNDER_CALLGRIND) => work(),
        _ => report(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {}", Causes(&*error));
            ExitCode::FAILURE
        }
    }
}

/// Begins a part, for callgrind.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn counted_part() {
    black_box(());
}

/// Runs this program under callgrind, with a library loaded before its own, if there is to be one.
/// The costs are those of each part that a call of [`counted_part`] begins.
///
/// # Errors
/// There is no valgrind, or the program fails under it.
pub fn count(preload: Option<&Path>) -> Result<Vec<Costs>, Failure> {
    let file = env::temp_dir().join(format!("callgrind.{}", process::id()));
    let status = Command::new("valgrind")
        .envs(preload.map(|library| ("LD_PRELOAD", library)))
        .args(["--tool=callgrind", "--quiet", "--compress-strings=no", "--compress-pos=no"])
        .args(["--combine-dumps=yes", "--dump-before=counted_part"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(env::current_exe()?)
        .arg(UNDER_CALLGRIND)
        .status()
        .map_err(|why| format!("cannot run valgrind: install it: {why}"))?;
    if !status.success() {
        return Err(format!("the program failed under callgrind: {status}").into());
    }
    let written = fs::read_to_string(&file)
        .map_err(|why| format!("cannot read what callgrind wrote to TMPDIR: {why}"))?;
    fs::remove_file(&file)?;
    Ok(parts(&written))
}

/// What a function took each time that the thing at an index was done, which is done [that often](TIMES): what it took
/// in the second part of the thing beyond what it took in the first.
///
/// # Errors
/// It was not called, or inlined.
pub fn each(parts: &[Costs], nth: usize, function: &str) -> Result<f64, Failure> {
    let cost = |part: usize| parts.get(part)?.get(function).copied();
    let (some, more) = cost(2 * nth)
        .zip(cost(2 * nth + 1))
        .ok_or_else(|| format!("callgrind did not see {function}"))?;
    Ok(more.saturating_sub(some) as f64 / f64::from(TIMES[1] - TIMES[0]))
}

/// Before the parts come the head of the file, and what was before any divider.
fn parts(written: &str) -> Vec<Costs> {
    written.split("\npart: ").skip(2).map(inclusive).collect()
}

/// Sums up the calls. Each is told by three lines: `cfn=` with the name, `calls=`, and one whose second
/// number is the cost.
fn inclusive(part: &str) -> Costs {
    let mut costs = Costs::new();
    let mut callee = "";
    let mut lines = part.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("cfn=") {
            callee = name;
        } else if line.starts_with("calls=") {
            let cost = lines.next().and_then(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
            if let Some(cost) = cost {
                *costs.entry(callee.to_owned()).or_default() += cost;
            }
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "\
version: 1
part: 1
fn=main
calls=9 10
7 900
part: 2
fn=main
6 1
cfn=poll
calls=2 20
8 30
cfi=other.rs
cfn=poll
calls=1 20
9 12
fn=poll
20 42
part: 3
fn=main
cfn=poll
calls=4 20
8 80
totals: 1000
";

    #[test]
    fn the_calls_of_each_part_are_summed_up() {
        let costs = |cost| Costs::from([("poll".to_owned(), cost)]);
        assert_eq!(parts(WRITTEN), [costs(42), costs(80)]);
        assert_eq!(each(&parts(WRITTEN), 0, "poll").unwrap(), 38.0 / 250.0);
        assert!(each(&parts(WRITTEN), 0, "other").is_err());
        assert!(each(&parts(WRITTEN), 1, "poll").is_err());
    }
}
