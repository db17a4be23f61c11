//! Checks the layers of a workspace, or of some of its crates:
//! `cargo run -p verify-layers -- [--root FOLDER] [--table FILE] [CRATE…]`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use cq_core::causes::Causes;
use verify_layers::{LayersError, check, table};

/// Checks which modules of each crate use which, against the table of layers
#[derive(Parser)]
#[command(name = "verify-layers")]
struct Arguments {
    /// The crates to check, by their folders; all of them where none is named
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,

    /// The folder of the workspace
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    root: PathBuf,

    /// The table, in place of verify/layers.toml of that workspace
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Layers(#[from] LayersError),
    #[error("cannot report")]
    Output(#[from] io::Error),
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // `eprintln!` would panic where stderr is closed as well.
            let _ = writeln!(io::stderr(), "error: {}", Causes(&error));
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing is wrong.
fn run(arguments: &Arguments) -> Result<bool, Error> {
    let table = arguments.table.clone().unwrap_or_else(|| arguments.root.join(table::PATH));
    let report = check(&arguments.root, &table::read(&table)?, &arguments.crates)?;
    let mut out = io::stdout().lock();
    for fault in &report.faults {
        writeln!(out, "{fault}")?;
    }
    writeln!(out, "{report}")?;
    Ok(report.faults.is_empty())
}
