//! The layers of every crate, against the table `verify/layers.toml`.

use std::path::Path;

use cq_core::causes::Causes;
use verify_layers::{LayersError, Report, check, table};

use crate::run::{Job, Stop, root};

/// Reads all crates, and names each fault.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    job.announce("reading all modules");
    let report = read(root()).map_err(|error| Stop::Judged(Causes(&error).to_string()))?;
    for fault in &report.faults {
        job.log(&fault.to_string())?;
    }
    match report.faults.is_empty() {
        true => Ok(report.to_string()),
        false => Err(Stop::Judged(report.to_string())),
    }
}

fn read(root: &Path) -> Result<Report, LayersError> {
    check(root, &table::read(&root.join(table::PATH))?, &[])
}
