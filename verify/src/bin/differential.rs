//! Runs random programs on the reference model and on a device, side by side.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use verify::across::Across;
use verify::device::Device;
use verify::differential::{FULL, Plan, SOFT_ROCE, TWO_PROCESSES, VERBS_LOOP, run};
use verify::far;
use verify::loopback::Loopback;
use verify::model::Model;

const DETAILS: &str = "\
Each program posts sends and receives, changes states, polls, arms and resizes; every call, every queue's
completions in order, every event and all memory must be the same on both. A program that shows a
difference is shrunk and printed; the same seed finds it again.

With --transport loop2 the ends of every connection are in two processes of this program. Each works on its
own account, so every step is waited for.

With --transport verbs the device is the one that the environment's VERBS_DEVICE names, or the first. The
programs leave out what Soft-RoCE is known to do otherwise, and say so. With --transport verbs-loop it is the
loopback, by the C ABI that is loaded before libibverbs (LD_PRELOAD), of which the programs leave out
only what the binding does not have.

Exit status: 0 all agreed, 1 one did not, 2 usage, 3 there is no such device, or
this program was built without it.";

/// Runs random programs on the reference model and on a device, and compares what they do.
#[derive(Parser)]
#[command(after_help = DETAILS)]
struct Arguments {
    /// Over which transport
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Transport::Loop)]
    transport: Transport,

    /// How many programs [default: 2000, and with verbs 200]
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
    /// The loopback, with the ends of every connection in two processes
    Loop2,
    /// A device of libibverbs
    Verbs,
    /// The loopback as a device of libibverbs
    VerbsLoop,
}

fn main() -> ExitCode {
    match far::serve_if_asked() {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => return failed(1, &format!("cannot be the far end: {error}")),
    }
    let Arguments { transport, programs, seed } = Arguments::parse();
    let (usual, dialect) = match transport {
        Transport::Loop => (2000, &FULL),
        Transport::Loop2 => (2000, &TWO_PROCESSES),
        Transport::Verbs => (200, &SOFT_ROCE),
        Transport::VerbsLoop => (2000, &VERBS_LOOP),
    };
    let plan = Plan { programs: programs.unwrap_or(usual), seed, dialect };
    match transport {
        Transport::Loop => compare::<Loopback>(&plan),
        Transport::Loop2 => compare::<Across>(&plan),
        #[cfg(feature = "verbs")]
        Transport::Verbs | Transport::VerbsLoop => match verify::verbs::check() {
            Ok(()) => compare::<verify::verbs::Verbs>(&plan),
            Err(error) => failed(3, &error.to_string()),
        },
        #[cfg(not(feature = "verbs"))]
        Transport::Verbs | Transport::VerbsLoop => failed(
            3,
            "this program was built without libibverbs: build it with `--features verbs`, which needs \
             libibverbs-dev and librdmacm-dev",
        ),
    }
}

fn compare<D: Device>(plan: &Plan) -> ExitCode {
    let Plan { programs, seed, dialect } = *plan;
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} programs, {eta} left");
    let bar = ProgressBar::new(programs.into()).with_style(style.expect("a valid template"));
    let result = run::<Model, D>(plan, |agreed| bar.set_position(agreed.into()));
    bar.finish_and_clear();
    match result {
        Ok(tally) => {
            // `println!` would panic where the reader is gone.
            let agree = format!("{programs} programs of seed {seed} agree: {tally}");
            let _ = writeln!(io::stdout(), "{dialect}{agree}");
            ExitCode::SUCCESS
        }
        Err(disagreement) => failed(1, &format!("seed {seed}: {disagreement}")),
    }
}

fn failed(status: u8, why: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "error: {why}");
    ExitCode::from(status)
}
