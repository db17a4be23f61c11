//! How many instructions the calls of a message take on the loopback, counted by callgrind, beside those that they
//! took at the commit that is named below:
//!
//! ```console
//! $ cargo run --release -p bench --bin path_cost
//! ```
//!
//! The program runs itself under valgrind. It does each job so many times, and then more often: the difference is
//! what one takes. Both ends are queue pairs of one process, in memory of the fabric.

mod jobs;

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;

use bench::callgrind::{self, TIMES};
use comfy_table::{CellAlignment, Table, presets};

use self::jobs::{Ends, JOBS};

/// The commit that the counts are compared with.
const BASE: &str = "3600d62";

fn main() -> ExitCode {
    callgrind::main("path_cost", work, count)
}

/// Does each job, as often as said above.
fn work() -> Result<(), Box<dyn Error>> {
    let mut ends = Ends::new()?;
    for job in &JOBS {
        // Once before it is counted: what a first message looks up is not what a message costs.
        ends.work(job)?;
        for times in TIMES {
            path_cost_part();
            for _ in 0..times {
                ends.work(job)?;
            }
        }
    }
    Ok(())
}

/// Begins a part, for callgrind.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn path_cost_part() {
    black_box(());
}

/// Counts, and prints the table.
fn count() -> Result<(), Box<dyn Error>> {
    let parts = callgrind::count("path_cost_part", None)?;
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let was = format!("at {BASE}");
    table.set_header(["a message of", "call", "instructions", &was, "ratio"]);
    for (nth, job) in JOBS.iter().enumerate() {
        for &(call, base) in job.base {
            let now = callgrind::each(&parts, nth, call.symbol())? / f64::from(job.messages());
            let figures = [format!("{now:.0}"), format!("{base:.0}"), format!("{:.2}", now / base)];
            let [now, base, ratio] = figures;
            table.add_row([job.name, call.name(), &now, &base, &ratio]);
        }
    }
    for column in 2..5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("{table}");
    Ok(())
}
