//! Criterion's plots of the samples that were taken: it repeats nothing, it is told what was measured.

use std::time::Duration;

use bench::placement::Placement;
use bench::turns::{Kind, Options, Series};
use criterion::{Criterion, SamplingMode};

use crate::FEWEST;

/// How many peers are drawn in each case, the fastest first.
const PEERS: usize = 3;

/// Draws the samples of our queues and of the fastest peers in each case. Nothing, where there are too few samples.
pub fn draw<'a>(measured: impl Iterator<Item = &'a Series>, options: &Options) {
    if options.rounds < FEWEST {
        return;
    }
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_nanos(1))
        .measurement_time(Duration::from_millis(1))
        .nresamples(2000)
        .with_output_color(false);
    for (series, at) in measured.flat_map(|it| Placement::ALL.map(|at| (it, at))) {
        let peers = series.rows(Kind::Peer);
        let mut peers: Vec<_> =
            peers.filter_map(|row| Some((row, series.nanos(row, at)?.median))).collect();
        peers.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let peers = peers.into_iter().take(PEERS).map(|(row, _)| row);
        let drawn: Vec<_> = series
            .rows(Kind::Ours)
            .chain(peers)
            .map(|row| (row, series.samples(row, at)))
            .collect();
        if drawn.iter().any(|(_, samples)| samples.len() < FEWEST) {
            continue;
        }
        let mut group = criterion.benchmark_group(format!("{} ({at})", series.scenario.name));
        group.sampling_mode(SamplingMode::Flat);
        for (row, samples) in drawn {
            group.sample_size(samples.len());
            let mut next = samples.iter().cycle();
            group.bench_function(&series.scenario.rows[row].name, |bencher| {
                bencher.iter_custom(|times| {
                    let nanos = next.next().expect("samples") * times as f64;
                    Duration::from_nanos(nanos as u64)
                });
            });
        }
        group.finish();
    }
}
