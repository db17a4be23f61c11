//! The fuzz targets of `verify/fuzz`, by cargo-fuzz: from the kept corpus on, for as long as a commit may wait, or for hours.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::{env, iter, thread};

use super::tools::{FUZZ, with_tools};
use super::{last_words, toolchain};
use crate::run::{EXPECTED, Job, Stop, cannot_run, processors, root};

/// How long each runs on a commit, with `--long`, and to find a fault that is planted.
const SECONDS: [u32; 3] = [10, 3600, 60];
/// How many seconds longer it may take, for the corpus and for an input that hangs.
const PATIENCE: u32 = 120;
/// How many inputs each tries at least, on the slowest machine.
const LEAST: u64 = 20;

const CRATE: &str = "verify/fuzz";
const TARGET: &str = "target/fuzz";
/// libFuzzer's options. An input that takes longer than so many seconds hangs.
const OPTIONS: [&str; 4] =
    ["-timeout=20", "-len_control=0", "-max_len=1024", "-print_final_stats=1"];

/// Builds all targets once, and runs as many at once as there are processors.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    toolchain::nightly(job)?;
    FUZZ.install(job)?;
    let triple = toolchain::host();
    let folders = ["--target-dir", TARGET, "--target", &triple];
    job.run("cargo fuzz build", fuzz("build").args(folders))?;
    let names = job.ask("cargo fuzz list", &mut fuzz("list"))?;
    let mut names: Vec<_> = names.lines().collect();
    let expected = env::var(EXPECTED).ok();
    let seconds = SECONDS[if expected.is_some() { 2 } else { job.long.into() }];
    // A fault that is planted is for the target that claims to find it.
    names.retain(|name| expected.as_ref().is_none_or(|said| said.starts_with(name)));
    job.announce(&format!("fuzzing, {seconds} s each"));
    let left = Mutex::new(names.into_iter());
    let lock = || left.lock().expect("nobody panics with it");
    let next = || {
        let name = lock().next()?;
        let tried = attempt(name, &triple, seconds, job.seed);
        if !matches!(tried, Ok((true, _))) {
            // One that fails is told of.
            *lock() = Vec::new().into_iter();
        }
        Some((name, tried))
    };
    let tried: Vec<_> = thread::scope(|scope| {
        let start = |_| scope.spawn(|| iter::from_fn(next).collect::<Vec<_>>());
        let workers: Vec<_> = (0..processors()).map(start).collect();
        workers.into_iter().flat_map(|it| it.join().expect("it does not panic")).collect()
    });
    let mut table = format!("{:<12}{:>12}{:>10}", "target", "executions", "coverage");
    let count = tried.len();
    for (name, tried) in tried {
        let (is_well, said) = tried?;
        job.log(&format!("$ {name}\n{said}"))?;
        table += &judge(name, is_well, &said).map_err(Stop::Failed)?;
    }
    match count {
        0 => Err(Stop::Failed("there is no target".into())),
        _ => Ok(format!("{count} targets find nothing in {seconds} s each\n{table}")),
    }
}

fn fuzz(subcommand: &str) -> Command {
    let mut command = toolchain::cargo(toolchain::NIGHTLY);
    with_tools(command.args(["fuzz", subcommand, "--fuzz-dir", CRATE]));
    command
}

/// Runs a target from its corpus on: whether it found nothing, and what it said. One that hangs itself is ended.
fn attempt(name: &str, triple: &str, seconds: u32, seed: u64) -> Result<(bool, String), Stop> {
    let kept = format!("{CRATE}/corpus/{name}");
    // New finds go to the first folder.
    let [scratch, found] = ["corpus", "artifacts"].map(|of| format!("{TARGET}/{of}/{name}/"));
    [&scratch, &found].iter().try_for_each(|it| fs::create_dir_all(root().join(it)))?;
    let log = root().join(TARGET).join(name).with_extension("log");
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", &(seconds + PATIENCE).to_string()]);
    command.arg(root().join(TARGET).join(triple).join("release").join(name)).args(OPTIONS);
    command.args([format!("-max_total_time={seconds}"), format!("-seed={}", seed as u32)]);
    command.arg(format!("-artifact_prefix={found}"));
    command.args([scratch, kept]).current_dir(root()).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.stderr(File::create(&log)?).status();
    let status = status.map_err(|error| cannot_run(name, &error))?;
    Ok((status.success(), String::from_utf8_lossy(&fs::read(log)?).into_owned()))
}

/// The line of a target in the table, or what is wrong with it.
fn judge(name: &str, is_well: bool, said: &str) -> Result<String, String> {
    let behind = |mark| said.rsplit_once(mark)?.1.split_whitespace().next();
    let number = |mark| behind(mark).and_then(|number| number.parse().ok()).unwrap_or(0);
    let (tried, covered) = (number("number_of_executed_units:"), number(" cov:"));
    let input = behind("Test unit written to ").unwrap_or("none");
    match is_well {
        false => Err(format!(
            "{name} fails by the input {input}; again: cargo +{} fuzz run --fuzz-dir {CRATE} \
             --target-dir {TARGET} {name} {input}{}",
            toolchain::NIGHTLY,
            last_words(said)
        )),
        true if tried < LEAST || covered == 0 => {
            Err(format!("{name} has tried {tried} inputs of {LEAST}, and covered {covered} places"))
        }
        true => Ok(format!("\n{name:<12}{tried:>12}{covered:>10}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_judged_by_what_it_says() {
        let said =
            |tried| format!("#9 DONE cov: 31 ft: 2\nstat::number_of_executed_units: {tried}\n");
        let line = "\ntexts                 20        31".into();
        assert_eq!(judge("texts", true, &said(LEAST)), Ok(line));
        assert!(
            judge("texts", true, &said(LEAST - 1)).is_err() && judge("texts", true, "").is_err()
        );
        let why = judge("texts", false, "Test unit written to a/crash-1\n").unwrap_err();
        assert!(why.contains("texts a/crash-1\n"), "{why}");
    }
}
