//! How many instructions the calls of a message take on the loopback, counted by callgrind, beside those that they
//! took at the commit that is named below:
//!
//! ```console
//! $ cargo run --release -p bench --bin path_cost
//! ```
//!
//! The program runs itself under valgrind. It does each job so many times, and then more often: the difference is
//! what one takes. Both ends are queue pairs of one process, in memory of the fabric.

use std::process::ExitCode;

use bench::Failure;
use bench::callgrind::{self, TIMES, counted_part};
use bench::calls::{Ends, JOBS, LOOPBACK};
use bench::transport::loopback::Loopback;
use comfy_table::{CellAlignment, Table, presets};

/// The commit that the counts are compared with.
const BASE: &str = "3600d62";

fn main() -> ExitCode {
    callgrind::main("path_cost", work, count)
}

/// Does each job, as often as said above.
fn work() -> Result<(), Failure> {
    let mut ends = Ends::new(&Loopback::open()?)?;
    for job in &JOBS {
        // Once before it is counted: what a first message looks up is not what a message costs.
        ends.work(job, &LOOPBACK)?;
        for times in TIMES {
            counted_part();
            for _ in 0..times {
                ends.work(job, &LOOPBACK)?;
            }
        }
    }
    Ok(())
}

/// Counts, and prints the table.
fn count() -> Result<(), Failure> {
    let parts = callgrind::count(None)?;
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let was = format!("at {BASE}");
    table.set_header(["a message of", "call", "instructions", &was, "ratio"]);
    for (nth, job) in JOBS.iter().enumerate() {
        for &(call, base) in job.base {
            let symbol = LOOPBACK.symbols[call as usize];
            let now = callgrind::each(&parts, nth, symbol)? / job.list as f64;
            let figures = [format!("{now:.0}"), format!("{base:.0}"), format!("{:.2}", now / base)];
            let [now, base, ratio] = figures;
            table.add_row([job.name, call.name(), &now, &base, &ratio]);
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    Ok(())
}
