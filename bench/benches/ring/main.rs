//! The ring beside its peers, as a table: `cargo bench -p bench --bench ring -- [--full] [FILTER]`. `README.md` beside this file
//! says what the cases and the peers are, and has the results.
//!
//! The queues take turns, so that whatever happens to the machine happens to all of them, and a queue is
//! compared only with what another one did in the same round and with the cores placed alike.
//!
//! | module | owns |
//! |---|---|
//! | `cases` | what is asked, and of which queues: the rows of the table |
//! | `plots` | criterion's plots of the samples |
//! | `peers` | the queues |
//! | `peer` | what a queue has to offer to be measured |
//! | `runs` | what is measured |
//! | `entries` | what is sent, and the check that it arrived |

mod cases;
mod entries;
mod peer;
mod peers;
mod plots;
mod runs;

use bench::cores::Cores;
use bench::placement::Placement;
use bench::turns::{Kind, Options, Series, Spread, report, table};

use self::cases::{Case, IN_PLACE};

fn main() {
    let options = Options::from_args();
    let cores = Cores::allowed();
    cores.settle(0);
    let (mut measured, mut notes) = (Vec::new(), Vec::new());
    let more = if options.is_full { cases::more(cores) } else { Vec::new() };
    for Case { scenario, like, goal } in cases::all(cores).into_iter().chain(more) {
        if !options.wants(&scenario.name) {
            continue;
        }
        if !like.is_empty() {
            notes.push(format!("{}: {like}", scenario.name));
        }
        match scenario.why_not(cores) {
            Some(reason) => notes.push(format!("{}: skipped: {reason}", scenario.name)),
            None => measured.push((Series::take(scenario, &options), goal)),
        }
    }
    plots::draw(measured.iter().map(|(series, _)| series), &options);
    let mut lines = table([
        "case",
        "cores",
        "by",
        "median, ns",
        "best peer",
        "its median",
        "ratio",
        "quartiles",
        "samples",
        "goal",
    ]);
    for (series, goal) in &measured {
        lines.add_rows(rows(series, *goal, &options));
    }
    println!("{lines}");
    let all: Vec<_> = measured.into_iter().map(|(series, _)| series).collect();
    if options.is_full {
        println!("{}", every(&all));
    }
    notes.iter().for_each(|line| println!("{line}"));
    let moved: usize = all.iter().map(Series::moved).sum();
    println!("{moved} samples were dropped: the cores were moved while they were taken");
}

/// The fewest samples that say something, more than criterion needs.
const FEWEST: usize = 12;

/// For each place of the cores a line of each of our queues: its time, and by the best peer's.
fn rows(
    series: &Series,
    goal: Option<f64>,
    options: &Options,
) -> impl Iterator<Item = [String; 10]> {
    let has_in_place = series.scenario.rows.iter().any(|row| row.name.ends_with(IN_PLACE));
    let ours = |at| series.rows(Kind::Ours).map(move |row| (row, at));
    Placement::ALL.into_iter().flat_map(ours).filter_map(move |(row, at)| {
        let time = series.nanos(row, at)?;
        let best = series.best(Kind::Peer, at)?;
        let (its_time, ratio) = (series.nanos(best, at)?, series.ratio(row, best, at, 1)?);
        let Spread { low, median, high, count } = ratio;
        if count < FEWEST.min(options.rounds) {
            return None;
        }
        let name = |row: usize| series.scenario.rows[row].name.clone();
        let goal = goal.filter(|_| !has_in_place || name(row).ends_with(IN_PLACE));
        Some([
            series.scenario.name.clone(),
            at.to_string(),
            name(row),
            format!("{:.2}", time.median),
            name(best),
            format!("{:.2}", its_time.median),
            format!("{median:.2}"),
            format!("{low:.2} – {high:.2}"),
            count.to_string(),
            goal.map_or_else(String::new, |goal| format!("≤ {goal}")),
        ])
    })
}

/// Every queue in every case, by the best peer and by what the machine allows.
fn every(measured: &[Series]) -> impl std::fmt::Display {
    report(measured, ["× best peer", "× limit"], |series, row, at| {
        [Kind::Peer, Kind::Limit].map(|kind| {
            let ratio = series.best(kind, at).and_then(|to| series.ratio(row, to, at, 1));
            ratio.map_or_else(String::new, |ratio| format!("{:.2}", ratio.median))
        })
    })
}
