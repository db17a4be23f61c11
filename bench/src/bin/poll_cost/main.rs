//! How many instructions a poll through transport-verbs takes beyond those that C takes, counted by
//! callgrind: `cargo run --release -p bench --features verbs --bin poll_cost`. The device is the one that
//! `VERBS_DEVICE` names, or the first.
//!
//! The program runs itself under valgrind. It polls so many times and then twice as often: the difference is
//! what the polls take, without what comes before and after them. It fails where Rust takes more than
//! [`ALLOWED`] instructions more than C.

mod polls;

use std::env;
use std::process::ExitCode;

use bench::Failure;
use bench::callgrind::{self, TIMES, counted_part};
use bench::delivery::Delivery;
use bench::transport::verbs::Verbs;
use cq_verbs::causes::Causes;

use self::polls::{BARE, OURS, Way};

/// Instructions that a poll may take beyond what it takes in C.
const ALLOWED: f64 = 2.0;

/// What a poll finds: its name, and how many completions.
const FOUND: [(&str, u32); 2] = [("an empty queue", 0), ("one completion", 1)];

/// What cqperf ends with, too, where there is no device.
const NO_DEVICE: u8 = 3;

fn main() -> ExitCode {
    match Verbs::open(env::var("VERBS_DEVICE").ok().as_deref(), None) {
        Ok(device) => callgrind::main("poll_cost", || poll(&device), count),
        Err(error) => {
            eprintln!("poll_cost: {}", Causes(&error));
            ExitCode::from(NO_DEVICE)
        }
    }
}

/// Polls by each way, with each thing to find, as often as said above.
fn poll(device: &Verbs) -> Result<(), Failure> {
    let mut delivery = Delivery::new(device)?;
    for (_, completions) in FOUND {
        for polls in TIMES {
            counted_part();
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

/// Counts, and tells.
fn count() -> Result<(), Failure> {
    let parts = callgrind::count(None)?;
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
