//! The loom models, and the lints of the code that only loom compiles.

use crate::run::{Job, Stop, cargo, flags};

/// Its own, since `--cfg loom` would rebuild everything in the usual one.
const TARGET_DIR: &str = "target/loom";

/// Shows a line for every model and control that ran; fails where there is no model, or no control.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    // Clippy visits the workspace's own dependencies too, so this covers cq-core under cfg(loom).
    loom_cargo(job, "clippy", &["--all-targets", "--", "-D", "warnings"])?;
    let output = loom_cargo(job, "test", &["--", "--show-output"])?;
    summary(&output)
}

fn loom_cargo(job: &mut Job, subcommand: &str, arguments: &[&str]) -> Result<String, Stop> {
    let mut command =
        cargo(&[subcommand, "--release", "-p", "verify-loom", "--target-dir", TARGET_DIR]);
    // The encoded form would win over the flags set here.
    command
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", flags("RUSTFLAGS", "--cfg loom"));
    job.run(&format!("cargo {subcommand} with --cfg loom"), command.args(arguments))
}

/// A model prints `model NAME: SECONDS s, N interleavings`, a control `control NAME: fails as it must
/// (WHY)`.
fn summary(output: &str) -> Result<String, Stop> {
    let models: Vec<&str> = lines_of("model ", " interleavings", output).collect();
    let controls: Vec<&str> = lines_of("control ", ": fails as it must", output).collect();
    if models.is_empty() {
        return Err(Stop::Unshown("no model ran"));
    }
    if controls.is_empty() {
        return Err(Stop::Unshown("no negative control ran"));
    }
    let (models_run, controls_run) = (models.len(), controls.len());
    let head = format!("models: {models_run}, controls that fail as they must: {controls_run}");
    Ok([&[head.as_str()], &models[..], &controls[..]].concat().join("\n"))
}

fn lines_of<'a>(kind: &str, mark: &str, output: &'a str) -> impl Iterator<Item = &'a str> {
    output.lines().filter(move |line| line.starts_with(kind) && line.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = "model fifo: 1.25 s, 4711 interleavings";
    const CONTROL: &str = "control relaxed_publish: fails as it must (Publish: \"torn\")";

    #[test]
    fn models_and_controls_are_shown_line_by_line() {
        let output = format!("---- fifo stdout ----\n{MODEL}\n\n{CONTROL}\nmodels are fun\n");
        let head = "models: 1, controls that fail as they must: 1";
        assert_eq!(summary(&output).unwrap(), format!("{head}\n{MODEL}\n{CONTROL}"));
    }

    #[test]
    fn a_run_without_models_or_without_controls_shows_nothing() {
        for output in ["test result: ok. 0 passed", MODEL, CONTROL] {
            assert!(matches!(summary(output), Err(Stop::Unshown(_))), "{output}");
        }
    }
}
