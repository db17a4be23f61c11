//! The loom models, and the lints of the code that only loom compiles.

use std::process::Command;

use super::{artifacts, libtest};
use crate::run::{self, Job, Stop};

/// Counts the models and controls that ran; fails where there is no model, or no control.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    // Clippy visits the workspace's own dependencies too, so this covers what they are of under cfg(loom).
    let mut clippy = cargo(&["clippy"]);
    clippy.args(["--all-targets", "--", "-D", "warnings"]);
    job.run("cargo clippy with --cfg loom", &mut clippy)?;
    let messages =
        artifacts::build(job, "cargo test with --cfg loom", &mut cargo(&["test", "--no-run"]))?;
    // For every thread of a model loom maps and unmaps a stack. If the process has threads, too, each of that
    // interrupts them all: half of the time of the models.
    let output = libtest::one_by_one(job, &artifacts::executables(&messages))?;
    summary(&output)
}

fn cargo(subcommand: &[&str]) -> Command {
    let arguments = [subcommand, &["--release", "-p", "verify-loom"]].concat();
    run::with_flags(run::cargo(&arguments), "--cfg loom", "loom")
}

/// A model prints `model NAME: SECONDS s, N interleavings with B preemptions`, a control `control NAME: fails as it must
/// (WHY)`.
fn summary(output: &str) -> Result<String, Stop> {
    let models = output.lines().filter(|line| line.contains(" interleavings with "));
    let seconds = models.filter_map(|line| {
        line.strip_prefix("model ")?.rsplit_once(": ")?.1.split_once(" s,")?.0.parse().ok()
    });
    let seconds: Vec<f64> = seconds.collect();
    let is_control =
        |line: &&str| line.starts_with("control ") && line.contains(": fails as it must");
    let controls = output.lines().filter(is_control).count();
    if seconds.is_empty() || controls == 0 {
        return Err(Stop::Failed("no model ran, or no negative control".into()));
    }
    let (models, total) = (seconds.len(), seconds.iter().sum::<f64>());
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    Ok(format!(
        "{models} models hold in {total:.1} s of work, the longest in {longest:.1} s; \
         {controls} controls fail as they must; each has a line in the log"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = "model fifo: 1.25 s, 4711 interleavings with 3 preemptions";
    const CONTROL: &str = "control relaxed_publish: fails as it must (Publish: \"torn\")";

    #[test]
    fn models_are_timed_and_controls_counted() {
        let slow = MODEL.replace("1.25", "2.5").replace("fifo", "ring of 2: wraps");
        let output =
            format!("---- fifo stdout ----\n{MODEL}\n\n{CONTROL}\nmodels are fun\n{slow}\n");
        let said = summary(&output).unwrap();
        let expected = "2 models hold in 3.8 s of work, the longest in 2.5 s; 1 controls fail";
        assert!(said.starts_with(expected), "{said}");
        for output in ["test result: ok. 0 passed", MODEL, CONTROL] {
            assert!(summary(output).is_err(), "{output}");
        }
    }
}
