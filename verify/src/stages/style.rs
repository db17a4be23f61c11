//! Format and lints.

use super::{WORKSPACES, libibverbs, toolchain};
use crate::run::{Job, Stop, cargo};

/// Sees whether every file has the format.
pub fn fmt(job: &mut Job) -> Result<String, Stop> {
    toolchain::component(job, "rustfmt")?;
    let arguments = ["fmt", "--all", "--check", "--", "--color", "never"];
    job.run("cargo fmt", &mut cargo(&arguments))?;
    // `--all` would format what those depend on once more.
    for manifest in &WORKSPACES[1..] {
        let mut fmt = cargo(&["fmt", "--manifest-path", manifest]);
        job.run(&format!("cargo fmt of {manifest}"), fmt.args(&arguments[2..]))?;
    }
    Ok("formatted".into())
}

/// What is off by default, and has lines and links of its own.
pub const OPTIONAL: &str = "cq-core/async,cq-verbs/defmt,cq-verbs/heapless,cq-verbs/tokio,cq-testing/std,\
    transport-rxe-loop/serde,transport-rxe-loop/tracing,transport-verbs/tracing";

/// Sees whether no target has a warning.
pub fn clippy(job: &mut Job) -> Result<String, Stop> {
    toolchain::component(job, "clippy")?;
    let words = format!(
        "clippy {} --all-targets --features {OPTIONAL} -- -D warnings",
        libibverbs::WORKSPACE
    );
    job.run("cargo clippy", &mut libibverbs::cargo(&words))?;
    Ok("no warnings".into())
}
