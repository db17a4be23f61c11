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

mod bare;
mod crowd;
mod end;
mod far;
mod interference;
mod scenarios;
mod ucx;

use bench::cores::Cores;
use bench::turns::{Options, Series, report};

fn main() {
    far::play();
    let options = Options::from_args();
    let cores = Cores::allowed();
    if cores.shared() {
        println!("skipped: the two ends need a core each");
        return;
    }
    cores.settle(0);
    let all = scenarios::all(cores).into_iter();
    let (aims, measured): (Vec<_>, Vec<_>) = all
        .filter(|(scenario, _)| options.wants(&scenario.name))
        .map(|(scenario, aim)| ((scenario.name.clone(), aim), Series::take(scenario, &options)))
        .unzip();
    if !measured.is_empty() {
        // Ours to the other's in the same round, and what it should be.
        let table = report(&measured, ["ratio", "aim"], |series, row, at| {
            let aim = aims.iter().find(|(name, _)| row == 0 && *name == series.scenario.name);
            let Some((_, aim)) = aim else { return Default::default() };
            let ratio = series.ratio(0, 1, at, aim.exponent);
            let ratio =
                ratio.map(|it| format!("{:.2} ({:.2} – {:.2})", it.median, it.low, it.high));
            [ratio.unwrap_or_default(), aim.text.clone()]
        });
        println!("{table}");
    }
    if options.wants(interference::NAME) {
        println!("{}", interference::measure(&options, cores));
    }
    if !ucx::is_there() {
        println!("UCX skipped: ucx_perftest is not there; `apt-get install ucx-utils` has it");
    }
}
