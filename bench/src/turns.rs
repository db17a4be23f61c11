//! Benches by ratios: what is compared takes turns, so that whatever happens to the machine happens to all of it, and is
//! compared only with what another one did in the same round and with the cores placed alike.

use std::time::{Duration, Instant};

use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressStyle};

use crate::cores::Cores;
use crate::placement::{Placement, on_two_cores};

/// How much to measure, as the command line asks for.
pub struct Options {
    /// How often each row has its turn.
    pub rounds: usize,
    /// How long a turn is, about.
    pub sample_time: Duration,
    /// Whether everything is asked for, by `--full`.
    pub is_full: bool,
    filter: Option<String>,
}

impl Options {
    /// Reads the arguments. Cargo says `--bench` to a bench and nothing to one that is run as a test, which
    /// has to show only that it works. Other options, meant for other benches, are ignored.
    #[must_use]
    pub fn from_args() -> Self {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let has = |option: &str| args.iter().any(|arg| arg == option);
        let is_full = has("--full");
        let (rounds, micros) = match (has("--bench") && !has("--test"), has("--quick")) {
            (false, _) => (1, 0),
            (true, true) => (9, 1000),
            (true, false) if is_full => (161, 3000),
            (true, false) => (41, 3000),
        };
        let filter = args.iter().find(|arg| !arg.starts_with('-')).cloned();
        Self { rounds, sample_time: Duration::from_micros(micros), is_full, filter }
    }

    /// Whether the scenario of this name is asked for.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| name.contains(filter))
    }
}

/// One measurement.
#[derive(Clone, Copy)]
pub struct Sample {
    /// How long it took.
    pub elapsed: Duration,
    /// How often the thing was done; at least as often as asked for.
    pub count: u64,
    /// Where it was taken.
    pub placement: Placement,
}

impl Sample {
    /// Of this thread alone, which does the thing so often.
    #[inline(always)]
    pub fn alone(count: u64, work: impl FnOnce()) -> Self {
        let start = Instant::now();
        work();
        Self { elapsed: start.elapsed(), count, placement: Placement::OneCore }
    }

    /// Of `home` here, which does the thing so often, while the other core does `away`.
    #[inline(always)]
    pub fn both(cores: Cores, count: u64, home: impl FnOnce(), away: impl FnOnce() + Send) -> Self {
        let (Self { elapsed, .. }, (), placement) =
            on_two_cores(cores, || Self::alone(count, home), away);
        Self { elapsed, count, placement }
    }

    /// Nanoseconds for one.
    fn nanos(&self, at: Placement) -> Option<f64> {
        (self.placement == at).then(|| self.elapsed.as_secs_f64() * 1e9 / self.count as f64)
    }
}

/// One thing that is done by several.
pub struct Scenario {
    /// What it is, with its unit.
    pub name: String,
    /// How many cores it takes.
    pub cores: usize,
    /// Who does it.
    pub rows: Vec<Row>,
}

impl Scenario {
    /// Why it can't be measured on these cores, if so.
    #[must_use]
    pub fn why_not(&self, cores: Cores) -> Option<&'static str> {
        (self.cores > 1 && cores.shared()).then_some("this process may use one core only")
    }
}

/// Who does it, and how.
pub struct Row {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub kind: Kind,
    run: Box<dyn FnMut(u64) -> Sample>,
}

/// Whose a row is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This workspace's.
    Ours,
    /// Another's.
    Peer,
    /// Nobody's: what the machine or the system allows.
    Limit,
}

impl Row {
    /// Measures about as many as it is told.
    pub fn new(
        name: impl Into<String>,
        kind: Kind,
        run: impl FnMut(u64) -> Sample + 'static,
    ) -> Self {
        Self { name: name.into(), kind, run: Box::new(run) }
    }

    /// Measures about so many.
    pub fn run(&mut self, count: u64) -> Sample {
        (self.run)(count)
    }

    /// How many make a sample of about `time`.
    fn count_for(&mut self, time: Duration) -> u64 {
        let mut count = 1;
        loop {
            let sample = self.run(count);
            if sample.elapsed >= time / 4 {
                let wanted = time.as_secs_f64() / sample.elapsed.as_secs_f64();
                return (sample.count as f64 * wanted).max(1.0) as u64;
            }
            count = 2 * sample.count;
        }
    }
}

/// The samples of a scenario.
pub struct Series {
    /// What was measured.
    pub scenario: Scenario,
    /// A sample of each row, in each round.
    pub rounds: Vec<Vec<Sample>>,
}

impl Series {
    /// Measures each row once a round. How far it is shows itself on a terminal only.
    #[must_use]
    pub fn take(mut scenario: Scenario, options: &Options) -> Self {
        let style = "{msg:48} {bar:30} {pos}/{len} rounds, {eta} left";
        let style = ProgressStyle::with_template(style).expect("a valid template");
        let progress = ProgressBar::new(options.rounds as u64).with_style(style);
        let progress = progress.with_message(scenario.name.clone());
        let rows = &mut scenario.rows;
        let counts: Vec<_> =
            rows.iter_mut().map(|row| row.count_for(options.sample_time)).collect();
        let round = |_| {
            progress.inc(1);
            rows.iter_mut().zip(&counts).map(|(row, &count)| row.run(count)).collect()
        };
        let rounds = (0..options.rounds).map(round).collect();
        progress.finish_and_clear();
        Self { scenario, rounds }
    }

    /// How many samples are of no use.
    #[must_use]
    pub fn moved(&self) -> usize {
        let samples = self.rounds.iter().flatten();
        samples.filter(|sample| sample.placement == Placement::Moved).count()
    }

    /// The row's time of one.
    #[must_use]
    pub fn nanos(&self, row: usize, at: Placement) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(|round| round[row].nanos(at)))
    }

    /// The row's time as a multiple of the other one's in the same round, or the rate, by an exponent of -1.
    #[must_use]
    pub fn ratio(&self, row: usize, to: usize, at: Placement, exponent: i32) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(|round| {
            Some((round[row].nanos(at)? / round.get(to)?.nanos(at)?).powi(exponent))
        }))
    }

    /// The rows of a kind.
    pub fn rows(&self, kind: Kind) -> impl Iterator<Item = usize> {
        let rows = self.scenario.rows.iter().enumerate();
        rows.filter(move |(_, row)| row.kind == kind).map(|(index, _)| index)
    }

    /// The row's samples of a place, in nanoseconds for one.
    pub fn samples(&self, row: usize, at: Placement) -> Vec<f64> {
        self.rounds.iter().filter_map(|round| round[row].nanos(at)).collect()
    }

    /// The fastest row of a kind.
    #[must_use]
    pub fn best(&self, kind: Kind, at: Placement) -> Option<usize> {
        let medians = self.rows(kind).filter_map(|row| Some((row, self.nanos(row, at)?.median)));
        medians.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(index, _)| index)
    }
}

/// The middle of some figures.
pub struct Spread {
    /// A quarter of them is below.
    pub low: f64,
    /// Half of them is below.
    pub median: f64,
    /// A quarter of them is above.
    pub high: f64,
    /// How many there are.
    pub count: usize,
}

impl Spread {
    /// `None` if there are no figures.
    pub fn of(figures: impl Iterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_unstable_by(f64::total_cmp);
        let last = figures.len().checked_sub(1)?;
        let quarter = |n: usize| figures[(last * n + 2) / 4];
        Some(Self { low: quarter(1), median: quarter(2), high: quarter(3), count: figures.len() })
    }
}

/// A table of this header.
pub fn table(header: impl IntoIterator<Item = impl Into<String>>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header(header.into_iter().map(Into::<String>::into));
    table
}

/// Every scenario, row and placement in one table, with columns of ratios for a row there, by these names.
pub fn report<const N: usize>(
    measured: &[Series],
    names: [&str; N],
    ratios: impl Fn(&Series, usize, Placement) -> [String; N],
) -> Table {
    let (first, last) = (["scenario", "cores", "by", "median", "quartiles"], ["samples"]);
    let mut table = table(first.into_iter().chain(names).chain(last));
    for (series, at) in measured.iter().flat_map(|it| Placement::ALL.map(|at| (it, at))) {
        for (index, row) in series.scenario.rows.iter().enumerate() {
            // Nothing, if no sample was taken there.
            let Some(nanos) = series.nanos(index, at) else { continue };
            let (name, at_what) = (series.scenario.name.clone(), at.to_string());
            let quartiles = format!("{:.2} – {:.2}", nanos.low, nanos.high);
            let first =
                [name, at_what, row.name.clone(), format!("{:.2}", nanos.median), quartiles];
            let last = [nanos.count.to_string()];
            table.add_row(first.into_iter().chain(ratios(series, index, at)).chain(last));
        }
    }
    table
}
