//! Runs random programs on the reference model and on the loopback, side by side.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use verify::differential::{Plan, run};
use verify::loopback::Loopback;
use verify::model::Model;

const DETAILS: &str = "\
Each program posts sends and receives, changes states, polls, arms and resizes; every call, every queue's
completions in order, every event and all memory must be the same on both. A program that shows a
difference is shrunk and printed; the same seed finds it again.

Exit status: 0 all agreed, 1 one did not, 2 usage.";

/// Runs random programs on the reference model and on the loopback, and compares what they do.
#[derive(Parser)]
#[command(after_help = DETAILS)]
struct Arguments {
    /// How many programs
    #[arg(long, value_name = "N", default_value_t = 2000)]
    programs: u32,

    /// Which programs: any number; the same one gives the same programs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let Arguments { programs, seed } = Arguments::parse();
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} programs, {eta} left");
    let bar = ProgressBar::new(programs.into()).with_style(style.expect("a valid template"));
    let result =
        run::<Model, Loopback>(&Plan { programs, seed }, |agreed| bar.set_position(agreed.into()));
    bar.finish_and_clear();
    // `println!` would panic where the reader is gone.
    match result {
        Ok(()) => {
            let _ = writeln!(io::stdout(), "{programs} programs of seed {seed} agree");
            ExitCode::SUCCESS
        }
        Err(disagreement) => {
            let _ = writeln!(io::stderr(), "error: seed {seed}: {disagreement}");
            ExitCode::FAILURE
        }
    }
}
