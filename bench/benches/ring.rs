//! The ring beside its peers, by criterion. `cargo bench -p bench --bench ring`
//!
//! Where two threads are measured, the figures of one group are comparable only while the machine leaves
//! the two cores where they are; `--bench ratios` is the bench to compare by.

mod common;

use std::time::Duration;

use criterion::Criterion;

use self::common::placement::Placement;
use self::common::scenarios::{self, Row, Scenario};
use bench::cores::Cores;

fn main() {
    let cores = Cores::allowed();
    cores.settle_first();
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    for scenario in scenarios::all() {
        match scenario.why_not(cores) {
            Some(reason) => println!("{}: skipped: {reason}", scenario.name),
            None => measure(&mut criterion, cores, &scenario),
        }
    }
    criterion.final_summary();
}

fn measure(criterion: &mut Criterion, cores: Cores, scenario: &Scenario) {
    let mut steady = Steady::default();
    let mut group = criterion.benchmark_group(scenario.name);
    for row in &scenario.rows {
        group.bench_function(row.to_string(), |bencher| {
            bencher.iter_custom(|count| steady.time(row, cores, count));
        });
    }
    group.finish();
    if let Steady { placement: Some(placement), retaken, strays } = steady {
        println!(
            "{}: {placement}; {retaken} samples retaken, {strays} kept from elsewhere",
            scenario.name
        );
    }
}

/// Keeps the samples of a group to one placement of the cores.
#[derive(Default)]
struct Steady {
    placement: Option<Placement>,
    retaken: u32,
    strays: u32,
}

impl Steady {
    /// How often a sample from elsewhere is taken again. The cores may have been moved for good.
    const RETRIES: u32 = 5;

    fn time(&mut self, row: &Row, cores: Cores, count: u64) -> Duration {
        let mut sample = (row.run)(cores, count);
        for _ in 0..Self::RETRIES {
            if self.accepts(sample.placement) {
                break;
            }
            self.retaken += 1;
            sample = (row.run)(cores, count);
        }
        self.strays += u32::from(!self.accepts(sample.placement));
        sample.elapsed.mul_f64(count as f64 / sample.count as f64)
    }

    /// Whether this is where the group is measured: where its first usable sample was.
    fn accepts(&mut self, placement: Placement) -> bool {
        placement != Placement::Moved && *self.placement.get_or_insert(placement) == placement
    }
}
