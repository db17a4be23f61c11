//! How many instructions a poll through transport-verbs takes beyond those that C takes, counted by
//! callgrind: `cargo run --release -p bench --features verbs --bin poll_cost`. The device is the one that
//! `VERBS_DEVICE` names, or the first.
//!
//! The program runs itself under valgrind. It polls so many times and then twice as often: the difference is
//! what the polls take, without what comes before and after them. It fails where Rust takes more than
//! [`ALLOWED`] instructions more than C.

mod polls;

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;

use bench::callgrind::{self, TIMES};
use bench::delivery::Delivery;
use bench::transport::verbs::{Verbs, VerbsError};
use cq_core::causes::Causes;

use self::polls::{BARE, OURS, Way};

/// Instructions that a poll may take beyond what it takes in C.
const ALLOWED: f64 = 2.0;

/// What a poll finds: its name, and how many completions.
const FOUND: [(&str, u32); 2] = [("an empty queue", 0), ("one completion", 1)];

/// What cqperf ends with, too, where there is no device.
const NO_DEVICE: u8 = 3;

fn main() -> ExitCode {
    let device = match device() {
        Ok(device) => device,
        Err(error) => {
            eprintln!("poll_cost: {}", Causes(&error));
            return ExitCode::from(NO_DEVICE);
        }
    };
    callgrind::main("poll_cost", || poll(&device), count)
}

fn device() -> Result<Verbs, VerbsError> {
    Verbs::open(env::var("VERBS_DEVICE").ok().as_deref(), None)
}

/// Polls by each way, with each thing to find, as often as said above.
fn poll(device: &Verbs) -> Result<(), Box<dyn Error>> {
    let mut delivery = Delivery::new(device)?;
    for (_, completions) in FOUND {
        for polls in TIMES {
            poll_cost_part();
            for way in [BARE].iter().chain(&OURS) {
                if completions > 0 {
                    delivery.fill(polls)?;
                }
                let came = (way.poll)(&mut delivery.receiver.queue, polls.into());
                if came != i64::from(completions * polls) {
                    let Way { name, .. } = way;
                    return Err(format!("{name}: {polls} polls returned {came}").into());
                }
            }
        }
    }
    Ok(())
}

/// Begins a part, for callgrind.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn poll_cost_part() {
    black_box(());
}

/// Counts, and tells.
fn count() -> Result<(), Box<dyn Error>> {
    let parts = callgrind::count("poll_cost_part", None)?;
    let each = |nth: usize, way: Way| callgrind::each(&parts, nth, way.symbol);
    let mut most = f64::MIN;
    for (nth, (what, _)) in FOUND.iter().enumerate() {
        let bare = each(nth, BARE)?;
        println!("{what}: {bare:.2} instructions by {}", BARE.name);
        for way in OURS {
            let beyond = each(nth, way)? - bare;
            println!("{what}: {beyond:+.2} by {}", way.name);
            most = most.max(beyond);
        }
    }
    if most > ALLOWED {
        return Err(
            format!("{most:.2} instructions more than C, where {ALLOWED} are allowed").into()
        );
    }
    Ok(())
}
