//! Random programs on the model and on the loopback, within a process, between two, and by the C ABI.

use std::process::Command;

use super::last_line;
use super::preload::Tools;
use crate::run::{Job, Stop, cargo, is_ci};

/// How many programs run on every commit, within a process and by the C ABI, and between two processes, where each
/// step is waited for.
const PROGRAMS: u32 = 1000;
const ACROSS: u32 = 250;
/// So many times more with `--long`.
const LONG: u32 = 100;

/// Runs them, and says how many agreed.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let across = programs(job, "loop2", ACROSS)?;
    let abi = match by_the_abi(job) {
        Ok(said) => agreed(&said).to_owned(),
        Err(Stop::Skipped(why)) if !is_ci() => {
            format!("not run: {why}")
        }
        Err(stop) => return Err(stop),
    };
    let within = programs(job, "loop", PROGRAMS)?;
    Ok(format!("between processes {}; by the C ABI {abi}; {within}", agreed(&across)))
}

fn programs(job: &mut Job, transport: &str, count: u32) -> Result<String, Stop> {
    let run =
        ["run", "--quiet", "--profile", "checker", "-p", "verify", "--bin", "differential", "--"];
    let mut command = cargo(&run);
    let command = told(&mut command, transport, count, job);
    last_line(&job.run("differential", command)?).map(str::to_owned)
}

fn by_the_abi(job: &mut Job) -> Result<String, Stop> {
    let mut command = Tools::build(job)?.command("differential")?;
    let command = told(&mut command, "verbs-loop", PROGRAMS, job);
    last_line(&job.run("differential by the C ABI", command)?).map(str::to_owned)
}

/// The command with its options.
fn told<'a>(command: &'a mut Command, transport: &str, count: u32, job: &Job) -> &'a mut Command {
    let count = if job.long { count * LONG } else { count };
    command.args(["--transport", transport, "--programs", &count.to_string()]);
    command.args(["--seed", &job.seed.to_string()])
}

/// How many agreed, without what they did.
fn agreed(line: &str) -> &str {
    line.split_once(':').map_or(line, |(agreed, _)| agreed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agreed_is_told_without_what_it_did() {
        let said = last_line("left out: nothing\n5 programs of seed 1 agree: 9 steps\n").unwrap();
        assert_eq!(agreed(said), "5 programs of seed 1 agree");
        assert!(last_line("").is_err());
    }
}
