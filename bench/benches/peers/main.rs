//! The loopback between two processes, beside what else a program on one machine could use, as ratios:
//! `cargo bench -p bench --bench peers -- [--quick] [FILTER]`. Everything takes about a minute.
//!
//! | what | beside |
//! |---|---|
//! | SEND of 64 bytes and its answer, memory of the fabric's | UCX over POSIX shared memory, `tag_lat` |
//! | WRITE of 8 inline bytes, and one back | the same, `ucp_put_lat` |
//! | SENDs of 8 inline bytes, 32 by a call | the same, `am_bw` |
//! | SEND of 64 inline bytes on each of 1,000 queue pairs in turn, in one process | the same on 2 |
//! | WRITE and READ of a process' own memory, 64 bytes to 1 MiB | `process_vm_writev`, `process_vm_readv` |
//! | round trips while [large transfers](interference) go on | the same, while none do |
//!
//! Both take turns, each end on a core of its own, each turn between two probes of what a cache line costs:
//! a figure is compared only with that of the same round, and only with the cores placed alike.

mod crowd;
mod interference;
#[path = "../common/options.rs"]
mod options;
#[path = "../common/placement.rs"]
mod placement;
#[path = "../processes/mod.rs"]
mod processes;
mod sample;
mod scenarios;
#[path = "../common/spread.rs"]
mod spread;
mod table;
mod ucx;

use bench::cores::Cores;

use self::options::Options;
use self::processes::far;
use self::scenarios::{Row, Scenario};
use self::table::Measured;

fn main() {
    far::play();
    let options = Options::from_args();
    let cores = Cores::allowed();
    if cores.shared() {
        println!("skipped: the two ends need a core each");
        return;
    }
    cores.settle_first();
    let measured: Vec<_> = scenarios::all(cores)
        .into_iter()
        .filter(|scenario| options.wants(&scenario.name))
        .map(|scenario| take_turns(scenario, &options))
        .collect();
    if !measured.is_empty() {
        println!("{}", table::of(&measured));
    }
    if options.wants(interference::NAME) {
        println!("{}", interference::measure(&options, cores));
    }
    if !ucx::is_there() {
        println!("UCX skipped: ucx_perftest is not there; `apt-get install ucx-utils` has it");
    }
}

/// Measures each row once a round.
fn take_turns(mut scenario: Scenario, options: &Options) -> Measured {
    let counts: Vec<u64> = scenario.rows.iter_mut().map(|row| count_for(options, row)).collect();
    let rounds = (0..options.rounds)
        .map(|_| {
            scenario.rows.iter_mut().zip(&counts).map(|(row, &count)| row.run(count)).collect()
        })
        .collect();
    Measured { scenario, rounds }
}

/// How many make a sample of the time that is wanted, about.
fn count_for(options: &Options, row: &mut Row) -> u64 {
    let mut count = 32;
    loop {
        let sample = row.run(count);
        let elapsed = sample.nanos * count as f64;
        let wanted = options.sample_time.as_secs_f64() * 1e9;
        if elapsed >= wanted / 4.0 {
            return (count as f64 * wanted / elapsed).max(32.0) as u64 / 32 * 32;
        }
        count *= 2;
    }
}
