//! The ring beside its peers, as ratios: `cargo bench -p bench --bench ratios -- [--quick] [FILTER]`, and with
//! `--features dpdk` beside DPDK's ring, too. Everything takes about a minute.
//!
//! The queues take turns, so that whatever happens to the machine happens to all of them, and a queue is
//! compared only with what another one did in the same round and with the cores placed alike.

#[path = "../common/mod.rs"]
mod common;

use bench::cores::Cores;
use bench::turns::{Kind, Options, Scenario, Series, report};

use self::common::peer::Peer;
use self::common::peers::RtrbChunks;
use self::common::scenarios::{
    MANY, USUAL, eight_bytes, in_place, one_thread, others, producers, two_threads,
};

fn main() {
    let options = Options::from_args();
    let cores = Cores::allowed();
    cores.settle(0);
    let (mut measured, mut skipped) = (Vec::new(), Vec::new());
    for scenario in selection(cores).into_iter().filter(|it| options.wants(&it.name)) {
        match scenario.why_not(cores) {
            Some(reason) => skipped.push(format!("{}: skipped: {reason}", scenario.name)),
            None => measured.push(Series::take(scenario, &options)),
        }
    }
    // The queue that aims are set against.
    let reference = format!("× {}", <RtrbChunks as Peer>::NAME);
    let names = ["× best peer", &reference, "× limit"];
    let table = report(&measured, names, |series, row, at| {
        let aim =
            series.scenario.rows.iter().position(|row| row.name == <RtrbChunks as Peer>::NAME);
        [series.best(Kind::Peer, at), aim, series.best(Kind::Limit, at)].map(|to| {
            let ratio = to.and_then(|to| series.ratio(row, to, at, 1));
            ratio.map_or_else(String::new, |ratio| format!("{:.2}", ratio.median))
        })
    });
    println!("{table}");
    let moved: usize = measured.iter().map(Series::moved).sum();
    println!("{moved} samples dropped, because the cores were moved while they were taken");
    skipped.iter().for_each(|line| println!("{line}"));
}

/// What aims are set for.
fn selection(cores: Cores) -> Vec<Scenario> {
    let mut all = vec![
        one_thread::<1>(cores, USUAL),
        one_thread::<32>(cores, USUAL),
        in_place::<8>(cores, USUAL),
        in_place::<32>(cores, USUAL),
        eight_bytes::<1>(cores, USUAL),
        eight_bytes::<32>(cores, USUAL),
        two_threads::<1, 1>(cores, USUAL),
        two_threads::<1, 32>(cores, USUAL),
        two_threads::<32, 32>(cores, USUAL),
        producers::<1>(cores, MANY),
        producers::<16>(cores, MANY),
        producers::<32>(cores, MANY),
    ];
    all.extend(others(cores));
    all
}
