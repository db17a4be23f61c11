//! Runs random programs on the reference model and on a device, side by side.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use verify::across::Across;
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
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: cannot be the far end: {error}");
            return ExitCode::FAILURE;
        }
    }
    let Arguments { transport, programs, seed } = Arguments::parse();
    let (programs, dialect) = match transport {
        Transport::Loop => (programs.unwrap_or(2000), &FULL),
        Transport::Loop2 => (programs.unwrap_or(2000), &TWO_PROCESSES),
        Transport::Verbs => (programs.unwrap_or(200), &SOFT_ROCE),
        Transport::VerbsLoop => (programs.unwrap_or(2000), &VERBS_LOOP),
    };
    if let Err(why) = available(transport) {
        let _ = writeln!(io::stderr(), "error: {why}");
        return ExitCode::from(3);
    }
    let plan = Plan { programs, seed, dialect };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} programs, {eta} left");
    let bar = ProgressBar::new(programs.into()).with_style(style.expect("a valid template"));
    let progress = |agreed: u32| bar.set_position(agreed.into());
    let result = match transport {
        Transport::Loop => run::<Model, Loopback>(&plan, progress),
        Transport::Loop2 => run::<Model, Across>(&plan, progress),
        #[cfg(feature = "verbs")]
        Transport::Verbs | Transport::VerbsLoop => {
            run::<Model, verify::verbs::Verbs>(&plan, progress)
        }
        #[cfg(not(feature = "verbs"))]
        Transport::Verbs | Transport::VerbsLoop => unreachable!("it is not available"),
    };
    bar.finish_and_clear();
    // `println!` would panic where the reader is gone.
    match result {
        Ok(tally) => {
            let agree = format!("{programs} programs of seed {seed} agree: {tally}");
            let _ = writeln!(io::stdout(), "{dialect}{agree}");
            ExitCode::SUCCESS
        }
        Err(disagreement) => {
            let _ = writeln!(io::stderr(), "error: seed {seed}: {disagreement}");
            ExitCode::FAILURE
        }
    }
}

/// Whether there is a device to run on, or why not.
fn available(transport: Transport) -> Result<(), String> {
    match transport {
        Transport::Loop | Transport::Loop2 => Ok(()),
        #[cfg(feature = "verbs")]
        Transport::Verbs | Transport::VerbsLoop => {
            verify::verbs::check().map_err(|error| error.to_string())
        }
        #[cfg(not(feature = "verbs"))]
        Transport::Verbs | Transport::VerbsLoop => {
            Err("this program was built without libibverbs: build it with \
             `--features verbs`, which needs libibverbs-dev and librdmacm-dev"
                .to_owned())
        }
    }
}
