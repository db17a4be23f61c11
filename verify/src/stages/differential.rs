//! Random programs on the model and on the loopback, within a process, between two, and by the C ABI.

use std::env;

use super::preload::Tools;
use crate::report::is_ci;
use crate::run::{Job, Stop, cargo};

/// Runs them, and says how many agreed.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let across = programs(job, &["--transport", "loop2", "--programs", "500"])?;
    let abi = match by_the_abi(job) {
        Ok(said) => agreed(&said).to_owned(),
        Err(Stop::Skipped(why)) if !is_ci(env::var_os("CI").as_deref()) => {
            format!("not run: {why}")
        }
        Err(stop) => return Err(stop),
    };
    let within = programs(job, &[])?;
    Ok(format!("between processes {}; by the C ABI {abi}; {within}", agreed(&across)))
}

fn programs(job: &mut Job, options: &[&str]) -> Result<String, Stop> {
    let cargo_run = ["run", "--quiet", "--release", "-p", "verify", "--bin", "differential", "--"];
    last_line(&job.run("differential", &mut cargo(&[&cargo_run, options].concat()))?)
}

fn by_the_abi(job: &mut Job) -> Result<String, Stop> {
    let mut command = Tools::build(job)?.command("differential")?;
    command.args(["--transport", "verbs-loop"]);
    last_line(&job.run("differential by the C ABI", &mut command)?)
}

fn last_line(output: &str) -> Result<String, Stop> {
    output.lines().last().map(str::to_owned).ok_or(Stop::Unshown("no program ran"))
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
        assert_eq!(agreed(&said), "5 programs of seed 1 agree");
        assert!(last_line("").is_err());
    }
}
