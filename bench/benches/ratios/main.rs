//! The ring beside its peers, as ratios: `cargo bench -p bench --bench ratios -- [--quick] [FILTER]`, and with
//! `--features dpdk` beside DPDK's ring, too. Everything takes about a minute.
//!
//! The queues take turns, so that whatever happens to the machine happens to all of them, and a queue is
//! compared only with what another one did in the same round and with the cores placed alike.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/options.rs"]
mod options;
mod series;
#[path = "../common/spread.rs"]
mod spread;
mod table;

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use self::common::scenarios::{
    MANY, Row, Scenario, USUAL, empty_call, empty_poll, event, one_thread, producers, round_trip,
    sleeping_trip, two_threads,
};
use self::options::Options;
use self::series::Series;
use bench::cores::Cores;

fn main() {
    let options = Options::from_args();
    let cores = Cores::allowed();
    cores.settle_first();
    let (mut measured, mut skipped) = (Vec::new(), Vec::new());
    for scenario in selection().into_iter().filter(|scenario| options.wants(&scenario.name)) {
        match scenario.why_not(cores) {
            Some(reason) => skipped.push(format!("{}: skipped: {reason}", scenario.name)),
            None => measured.push(take_turns(scenario, cores, &options)),
        }
    }
    println!("{}", table::of(&measured));
    let moved: usize = measured.iter().map(Series::moved).sum();
    println!("{moved} samples dropped, because the cores were moved while they were taken");
    skipped.iter().for_each(|line| println!("{line}"));
}

/// What aims are set for.
fn selection() -> Vec<Scenario> {
    vec![
        one_thread::<1>(USUAL),
        one_thread::<32>(USUAL),
        empty_poll(),
        empty_call(),
        event(),
        two_threads::<1, 1>(USUAL),
        two_threads::<1, 32>(USUAL),
        two_threads::<32, 32>(USUAL),
        round_trip(),
        sleeping_trip(),
        producers::<1>(MANY),
        producers::<16>(MANY),
        producers::<32>(MANY),
    ]
}

/// Measures each queue once a round.
fn take_turns(scenario: Scenario, cores: Cores, options: &Options) -> Series {
    let progress = progress(&scenario, options.rounds);
    let counts: Vec<u64> = scenario
        .rows
        .iter()
        .map(|row| count_for(options.sample_time, &scenario, row, cores))
        .collect();
    let round = |_| {
        let samples = scenario.rows.iter().zip(&counts);
        let samples = samples.map(|(row, &count)| scenario.run(row, cores, count)).collect();
        progress.inc(1);
        samples
    };
    let rounds = (0..options.rounds).map(round).collect();
    progress.finish_and_clear();
    Series { scenario, rounds }
}

/// How many make a sample of about `time`.
fn count_for(time: Duration, scenario: &Scenario, row: &Row, cores: Cores) -> u64 {
    let mut count = 1;
    loop {
        let sample = scenario.run(row, cores, count);
        if sample.elapsed >= time / 4 {
            let wanted = time.as_secs_f64() / sample.elapsed.as_secs_f64();
            return (sample.count as f64 * wanted).max(1.0) as u64;
        }
        count = 2 * sample.count;
    }
}

/// Shows itself on a terminal only.
fn progress(scenario: &Scenario, rounds: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:48} {bar:30} {pos}/{len} rounds, {eta} left")
        .expect("a valid template");
    ProgressBar::new(rounds as u64).with_style(style).with_message(scenario.name.clone())
}
