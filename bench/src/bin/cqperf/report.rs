//! What is printed in the end: a table for people, JSON for programs.

use bench::transport::About;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::HumanCount;
use serde_json::{Value, json};

use crate::job::{Flow, Outcome, name};
use crate::stats::Latency;

/// What was measured, and over what.
pub struct Report<'a> {
    /// The transport and the device.
    pub about: &'a About,
    /// How many processes there were.
    pub processes: u32,
    /// How it is shown.
    pub style: Style,
    /// What each job came to.
    pub outcomes: Vec<Outcome>,
}

/// How outcomes are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A lone one: a row for each figure.
    One,
    /// A row for each job.
    Jobs,
    /// A row for each size.
    Sizes,
}

impl Style {
    /// Whether a table with a row for each outcome has this column.
    fn shows(self, column: &str) -> bool {
        !column.is_empty() && (self == Self::Sizes || !OF_SIZES.contains(&column))
    }
}

impl Report<'_> {
    /// What all outcomes have in common.
    pub fn heading(&self) -> String {
        let About { device, name: transport, .. } = self.about;
        let place = match self.processes {
            1 => "one process, two queue pairs",
            _ => "one of two processes",
        };
        let heading = format!("device {device}, transport {transport}, {place}");
        match self.outcomes.first() {
            Some(Outcome { job, .. }) if self.style == Style::Sizes => {
                format!("{heading}: {job}, in {} memory", name(job.memory))
            }
            _ => heading,
        }
    }

    /// A table, and a last line that says how it went.
    pub fn table(&self) -> String {
        let outcomes = &self.outcomes;
        let Some(first) = outcomes.first() else {
            return String::new();
        };
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED);
        let named = |text: &str| text.replace("{latency}", first.job.op.latency_is());
        if self.style == Style::One {
            let rows = CELLS.iter().filter(|(name, ..)| !name.is_empty());
            table.set_header([String::new(), first.job.to_string()]);
            table.add_rows(rows.map(|(name, _, value)| [named(name), value(first)]));
        } else {
            let columns = || CELLS.iter().filter(|(_, column, _)| self.style.shows(column));
            let header = columns().map(|(_, column, _)| named(column));
            let cells = |outcome: &Outcome| -> Vec<String> {
                columns().map(|(.., value)| value(outcome)).collect()
            };
            if self.style == Style::Jobs {
                let row = |it: &Outcome| [vec![it.job.to_string()], cells(it)].concat();
                table.set_header([String::new()].into_iter().chain(header));
                table.add_rows(outcomes.iter().map(row));
            } else {
                table.set_header(header);
                table.add_rows(outcomes.iter().map(cells));
            }
        }
        let names = usize::from(self.style != Style::Sizes);
        for column in table.column_iter_mut().skip(names) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let unverified = outcomes.iter().find(|outcome| verdict(outcome) != "verified");
        let last = unverified.map_or_else(
            || "verified".to_owned(),
            |outcome| format!("{}: {}", verdict(outcome), outcome.job),
        );
        format!("{}\n{table}\n{last}\n", self.heading())
    }

    /// An object for each job: a lone one, or an array.
    pub fn json(&self) -> String {
        let records: Vec<_> = self.outcomes.iter().map(|outcome| self.record(outcome)).collect();
        match &records[..] {
            records if self.style != Style::One => format!("{}\n", json!(records)),
            [record, ..] => format!("{record}\n"),
            [] => String::new(),
        }
    }

    /// What is reported of one job.
    pub fn record(&self, outcome: &Outcome) -> Value {
        let Outcome { job, tally, .. } = outcome;
        let mut record = json!({
            "job": job.flow,
            "op": job.op,
            "mode": job.mode(),
            "memory": job.memory,
            "transport": self.about.name,
            "device": self.about.device,
            "processes": self.processes,
            "size": job.size,
            "iters": job.iters,
            "done": outcome.done,
            "latency_is": job.op.latency_is(),
            "latency_ns": outcome.latency,
            "messages_per_s": outcome.per_second(outcome.messages()),
            "bytes_per_s": bytes_per_s(outcome),
            "completions_per_s": outcome.per_second(tally.completions),
            "polls": tally.polls,
            "empty_polls": tally.empty_polls,
            "verified": outcome.verified(),
            "partial": outcome.partial(),
            "error": outcome.error(),
        });
        if job.flow == Flow::Stream {
            record["batch"] = json!(job.batch);
            record["signal_every"] = json!(job.signal_every);
            record["queue_depth"] = json!(job.shape().depth);
        }
        record
    }
}

/// Of the whole loop.
pub fn bytes_per_s(outcome: &Outcome) -> f64 {
    outcome.per_second(outcome.messages()) * f64::from(outcome.job.bytes())
}

fn verdict(outcome: &Outcome) -> &'static str {
    match outcome.failures.is_empty() {
        false => "failed",
        true if outcome.partial() => "partial",
        true => "verified",
    }
}

/// What a table shows of an outcome.
type Cell = fn(&Outcome) -> String;

/// As a row of its name for a lone job, and as a column of its name, where there is a row for each job or size.
const CELLS: &[(&str, &str, Cell)] = &[
    ("operation", "", |outcome| name(outcome.job.op)),
    ("memory", "", |outcome| name(outcome.job.memory)),
    ("message size (bytes)", "bytes", |outcome| count(outcome.job.size.get())),
    ("iterations", "iterations", |outcome| count(outcome.done)),
    ("{latency}, p50", "{latency}, p50", |outcome| latency(outcome, |latency| latency.p50)),
    ("{latency}, p99", "p99", |outcome| latency(outcome, |latency| latency.p99)),
    ("{latency}, p99.9", "p99.9", |outcome| latency(outcome, |latency| latency.p999)),
    ("{latency}, max", "max", |outcome| latency(outcome, |latency| latency.max)),
    ("messages/s", "messages/s", |outcome| rate(outcome.per_second(outcome.messages()))),
    ("", "MB/s", |outcome| rate(bytes_per_s(outcome) / 1e6)),
    ("completions/s", "", |outcome| rate(outcome.per_second(outcome.tally.completions))),
    ("polls", "", |outcome| count(outcome.tally.polls)),
    ("empty polls", "", |outcome| count(outcome.tally.empty_polls)),
    ("result", "result", |outcome| verdict(outcome).to_owned()),
];

/// The columns that jobs do without, to fit into a terminal.
const OF_SIZES: [&str; 3] = ["iterations", "max", "MB/s"];

fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Whole, unless there are few.
fn rate(per_second: f64) -> String {
    if per_second < 100.0 { format!("{per_second:.2}") } else { count(per_second as u64) }
}

fn latency(outcome: &Outcome, which: impl Fn(&Latency) -> u64) -> String {
    outcome.latency.as_ref().map_or_else(|| "-".to_owned(), |latency| time(which(latency)))
}

/// Three digits at least, in the unit that leaves fewest before the point.
fn time(nanoseconds: u64) -> String {
    let ns = nanoseconds as f64;
    match nanoseconds {
        0..10_000 => format!("{nanoseconds} ns"),
        10_000..10_000_000 => format!("{:.1} µs", ns / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.1} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_three_digits() {
        let times = [0, 312, 9_999, 10_000, 123_456, 12_345_678, 12_345_678_901].map(time);
        assert_eq!(
            times,
            ["0 ns", "312 ns", "9999 ns", "10.0 µs", "123.5 µs", "12.3 ms", "12.3 s"]
        );
    }
}
