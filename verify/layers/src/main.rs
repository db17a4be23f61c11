//! Checks the layers of a workspace, or of some of its crates:
//! `cargo run -p verify-layers -- [--root FOLDER] [--table FILE] [CRATE…]`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use verify_layers::check;

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

fn main() -> anyhow::Result<ExitCode> {
    let Arguments { crates, root, table } = Arguments::parse();
    let report = check(&root, table.as_deref(), &crates)?;
    let mut out = io::stdout().lock();
    for fault in &report.faults {
        writeln!(out, "{fault}")?;
    }
    writeln!(out, "{report}")?;
    Ok(if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
