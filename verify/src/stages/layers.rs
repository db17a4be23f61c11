//! The layers of every crate, against the table `verify/layers.toml`.

use verify_layers::check;

use crate::run::{Job, Stop, root};

/// Reads all crates, and names each fault.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    job.announce("reading all modules");
    let report = check(root(), None, &[]).map_err(|error| Stop::Failed(format!("{error:#}")))?;
    for fault in &report.faults {
        job.log(fault)?;
    }
    match report.faults.is_empty() {
        true => Ok(report.to_string()),
        false => Err(Stop::Failed(report.to_string())),
    }
}
