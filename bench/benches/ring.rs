//! The ring beside its peers, by criterion: `cargo bench -p bench --bench ring -- [FILTER]`, and with
//! `--features dpdk` beside DPDK's ring, too. Everything takes about five minutes.
//!
//! Where two threads are measured, the figures of one group are comparable only while the machine leaves
//! the two cores where they are: a sample from elsewhere is taken again, and one that has to be kept is told
//! of below its group. `--bench ratios` is the bench to compare by.

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use criterion::Criterion;

use bench::cores::Cores;
use bench::placement::Placement;
use bench::turns::{Row, Sample, Scenario};

use self::common::scenarios::{MANY, USUAL, one_thread, others, producers, two_threads};

fn main() {
    let cores = Cores::allowed();
    cores.settle(0);
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .configure_from_args();
    for mut scenario in matrix(cores) {
        match scenario.why_not(cores) {
            Some(reason) => println!("{}: skipped: {reason}", scenario.name),
            None => measure(&mut criterion, &mut scenario),
        }
    }
    criterion.final_summary();
}

/// Every batch with every capacity that holds several of it.
fn matrix(cores: Cores) -> Vec<Scenario> {
    let mut all = Vec::from(others(cores));
    for capacity in [64, USUAL, MANY] {
        all.push(one_thread::<1>(cores, capacity));
        all.push(one_thread::<8>(cores, capacity));
        all.push(one_thread::<32>(cores, capacity));
        all.push(two_threads::<1, 1>(cores, capacity));
        all.push(two_threads::<8, 8>(cores, capacity));
        all.push(two_threads::<32, 32>(cores, capacity));
    }
    for capacity in [USUAL, MANY] {
        all.push(one_thread::<256>(cores, capacity));
        all.push(two_threads::<256, 256>(cores, capacity));
        all.push(producers::<1>(cores, capacity));
        all.push(producers::<8>(cores, capacity));
        all.push(producers::<32>(cores, capacity));
        all.push(producers::<256>(cores, capacity));
    }
    all
}

fn measure(criterion: &mut Criterion, scenario: &mut Scenario) {
    let mut group = criterion.benchmark_group(&scenario.name);
    let mut steady = Steady::default();
    for row in &mut scenario.rows {
        group.bench_function(row.name.clone(), |bencher| {
            bencher.iter_custom(|count| {
                let sample = steady.take(row, count);
                sample.elapsed.mul_f64(count as f64 / sample.count as f64)
            });
        });
    }
    group.finish();
    steady.report(&scenario.name);
}

/// Keeps the samples of a group to one placement of the cores.
#[derive(Default)]
struct Steady {
    placement: Option<Placement>,
    retaken: u32,
    /// The queues that have samples from elsewhere.
    strays: BTreeSet<String>,
}

impl Steady {
    /// How many samples of a group are taken again. The cores may have been moved for good.
    const RETRIES: u32 = 50;

    fn take(&mut self, row: &mut Row, count: u64) -> Sample {
        loop {
            let sample = row.run(count);
            if self.accepts(sample.placement) {
                return sample;
            }
            if self.retaken == Self::RETRIES {
                self.strays.insert(row.name.clone());
                return sample;
            }
            self.retaken += 1;
        }
    }

    /// Whether this is where the group is measured: where its first usable sample was.
    fn accepts(&mut self, placement: Placement) -> bool {
        placement != Placement::Moved && *self.placement.get_or_insert(placement) == placement
    }

    /// Says where the group was measured, if it was, and on two cores.
    fn report(&self, name: &str) {
        if let Some(placement) = self.placement.filter(|&placement| placement != Placement::OneCore)
        {
            println!("{name}: {placement}; {} samples retaken", self.retaken);
        }
        if !self.strays.is_empty() {
            println!("{name}: not comparable, since kept from elsewhere: {:?}", self.strays);
        }
    }
}
