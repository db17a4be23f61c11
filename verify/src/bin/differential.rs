//! Runs random programs on the reference model and on a device, side by side.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use verify::differential::{Disagreement, FULL, Plan, Tally, run};
use verify::loopback::Loopback;
use verify::model::Model;

const DETAILS: &str = "\
Each program posts sends and receives, changes states, polls, arms and resizes; every call, every queue's
completions in order, every event and all memory must be the same on both. A program that shows a
difference is shrunk and printed; the same seed finds it again.

With --transport verbs the device is the one that the environment's VERBS_DEVICE names, or the first. The programs leave
out what Soft-RoCE is known to do otherwise.

Exit status: 0 all agreed, 1 one did not, 2 usage, 3 this program was built without the transport.";

/// Runs random programs on the reference model and on a device, and compares what they do.
#[derive(Parser)]
#[command(after_help = DETAILS)]
struct Arguments {
    /// Over which transport
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Transport::Loop)]
    transport: Transport,

    /// How many programs [default: 2000, and with verbs 100]
    #[arg(long, value_name = "N")]
    programs: Option<u32>,

    /// Which programs: any number; the same one gives the same programs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Transport {
    /// The loopback
    Loop,
    /// A device of libibverbs
    Verbs,
}

type Agreement = Result<Tally, Box<Disagreement>>;

fn main() -> ExitCode {
    let Arguments { transport, programs, seed } = Arguments::parse();
    let programs = programs.unwrap_or(match transport {
        Transport::Loop => 2000,
        Transport::Verbs => 100,
    });
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} programs, {eta} left");
    let bar = ProgressBar::new(programs.into()).with_style(style.expect("a valid template"));
    let result = match transport {
        Transport::Loop => {
            let plan = Plan { programs, seed, dialect: &FULL };
            Some(run::<Model, Loopback>(&plan, |agreed| bar.set_position(agreed.into())))
        }
        Transport::Verbs => on_verbs(programs, seed, &bar),
    };
    bar.finish_and_clear();
    // `println!` would panic where the reader is gone.
    match result {
        Some(Ok(tally)) => {
            let _ = writeln!(io::stdout(), "{programs} programs of seed {seed} agree: {tally}");
            ExitCode::SUCCESS
        }
        Some(Err(disagreement)) => {
            let _ = writeln!(io::stderr(), "error: seed {seed}: {disagreement}");
            ExitCode::FAILURE
        }
        None => {
            let how = "build it with `--features verbs`, which needs libibverbs-dev";
            let _ = writeln!(io::stderr(), "error: this program was built without verbs: {how}");
            ExitCode::from(3)
        }
    }
}

#[cfg(feature = "verbs")]
fn on_verbs(programs: u32, seed: u64, bar: &ProgressBar) -> Option<Agreement> {
    let plan = Plan { programs, seed, dialect: &verify::differential::SOFT_ROCE };
    let progress = |agreed: u32| bar.set_position(agreed.into());
    Some(run::<Model, verify::verbs::Verbs>(&plan, progress))
}

#[cfg(not(feature = "verbs"))]
fn on_verbs(_programs: u32, _seed: u64, _bar: &ProgressBar) -> Option<Agreement> {
    None
}
