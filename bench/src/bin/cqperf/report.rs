//! What is printed in the end: a table for people, JSON for programs.

use bench::transport::Transport;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::HumanCount;
use serde::Serialize;

use crate::job::{Kind, Outcome};
use crate::shape::Shape;
use crate::stats::Latency;

/// What is reported of one job.
#[derive(Serialize)]
pub struct Record<'a> {
    job: &'static str,
    op: &'static str,
    mode: &'static str,
    memory: &'static str,
    transport: &'static str,
    device: &'a str,
    processes: u32,
    /// Bytes of a message.
    pub size: u32,
    iters: u64,
    done: u64,
    #[serde(flatten)]
    shape: Option<Shape>,
    /// What the latencies are the time of.
    pub latency_is: &'static str,
    /// If there are any.
    pub latency_ns: Option<Latency>,
    messages_per_s: f64,
    /// Of the whole loop.
    pub bytes_per_s: f64,
    completions_per_s: f64,
    polls: u64,
    empty_polls: u64,
    verified: bool,
    partial: bool,
    error: Option<String>,
}

impl<'a> Record<'a> {
    /// What is reported of a job over this transport.
    pub fn new<T: Transport>(transport: &'a T, processes: u32, outcome: &Outcome) -> Self {
        let Outcome { job, tally, .. } = outcome;
        Self {
            job: job.kind.name(),
            op: job.op.name(),
            mode: job.mode(),
            memory: job.memory.name(),
            transport: T::NAME,
            device: transport.device(),
            processes,
            size: job.size,
            iters: job.iters,
            done: outcome.done,
            shape: match job.kind {
                Kind::PingPong => None,
                Kind::Stream(shape) => Some(shape),
            },
            latency_is: job.op.latency_is(),
            latency_ns: outcome.latencies.summary(),
            messages_per_s: outcome.per_second(outcome.messages()),
            bytes_per_s: outcome.per_second(outcome.messages()) * f64::from(job.size),
            completions_per_s: outcome.per_second(tally.completions),
            polls: tally.polls,
            empty_polls: tally.empty_polls,
            verified: outcome.verified(),
            partial: outcome.partial(),
            error: outcome.error(),
        }
    }

    /// What all records have in common.
    pub fn heading(&self, style: Style) -> String {
        let Self { device, transport, op, memory, .. } = self;
        let place = match self.processes {
            1 => "one process, two queue pairs",
            _ => "one of two processes",
        };
        let heading = format!("device {device}, transport {transport}, {place}");
        match style {
            Style::Sizes => {
                format!("{heading}: {} of {op}, {}, in {memory} memory", self.job, self.mode)
            }
            Style::One | Style::Jobs => heading,
        }
    }

    const fn verdict(&self) -> &'static str {
        match (&self.error, self.partial) {
            (Some(_), _) => "failed",
            (None, true) => "partial",
            (None, false) => "verified",
        }
    }
}

/// How records are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A lone one.
    One,
    /// A column for each.
    Jobs,
    /// A row for each size.
    Sizes,
}

/// A table, and a last line that says how it went.
pub fn table(records: &[Record<'_>], style: Style) -> String {
    let Some(first) = records.first() else {
        return String::new();
    };
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    let name = |name: &str| name.replace("{latency}", first.latency_is);
    if style == Style::Sizes {
        table.set_header(COLUMNS.iter().map(|(column, _)| name(column)));
        table.add_rows(records.iter().map(|record| COLUMNS.iter().map(|(_, value)| value(record))));
    } else {
        let head = |record: &Record<'_>| format!("{}\n{}", record.job, record.mode);
        table.set_header(row(String::new(), records, head));
        table.add_rows(ROWS.iter().map(|(row_name, value)| row(name(row_name), records, value)));
    }
    let names = usize::from(style != Style::Sizes);
    table.column_iter_mut().skip(names).for_each(|column| {
        column.set_cell_alignment(CellAlignment::Right);
    });
    let (heading, verdict) = (first.heading(style), verdict(records));
    format!("{heading}\n{table}\n{verdict}\n")
}

type Value = fn(&Record<'_>) -> String;

const COLUMNS: &[(&str, Value)] = &[
    ("bytes", |record| count(record.size.into())),
    ("iterations", |record| count(record.done)),
    ("{latency}, p50", |record| latency(record, |latency| latency.p50)),
    ("p99", |record| latency(record, |latency| latency.p99)),
    ("p99.9", |record| latency(record, |latency| latency.p999)),
    ("max", |record| latency(record, |latency| latency.max)),
    ("messages/s", |record| rate(record.messages_per_s)),
    ("MB/s", |record| rate(record.bytes_per_s / 1e6)),
    ("result", |record| record.verdict().to_owned()),
];

const ROWS: &[(&str, Value)] = &[
    ("operation", |record| record.op.to_owned()),
    ("memory", |record| record.memory.to_owned()),
    ("message size (bytes)", |record| count(record.size.into())),
    ("iterations", |record| count(record.done)),
    ("{latency}, p50", |record| latency(record, |latency| latency.p50)),
    ("{latency}, p99", |record| latency(record, |latency| latency.p99)),
    ("{latency}, p99.9", |record| latency(record, |latency| latency.p999)),
    ("{latency}, max", |record| latency(record, |latency| latency.max)),
    ("messages/s", |record| rate(record.messages_per_s)),
    ("completions/s", |record| rate(record.completions_per_s)),
    ("polls", |record| count(record.polls)),
    ("empty polls", |record| count(record.empty_polls)),
    ("result", |record| record.verdict().to_owned()),
];

fn row(name: String, records: &[Record<'_>], value: impl Fn(&Record<'_>) -> String) -> Vec<String> {
    [name].into_iter().chain(records.iter().map(value)).collect()
}

fn verdict(records: &[Record<'_>]) -> String {
    match records.iter().find(|record| record.verdict() != "verified") {
        None => "verified".to_owned(),
        Some(record) => {
            format!("{}: {} of {}, {}", record.verdict(), record.job, record.op, record.mode)
        }
    }
}

fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Whole, unless there are few.
fn rate(per_second: f64) -> String {
    if per_second < 100.0 { format!("{per_second:.2}") } else { count(per_second as u64) }
}

fn latency(record: &Record<'_>, which: impl Fn(&Latency) -> u64) -> String {
    record.latency_ns.as_ref().map_or_else(|| "-".to_owned(), |latency| time(which(latency)))
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

/// An object for each job: a lone one, or an array.
pub fn json(records: &[Record<'_>], style: Style) -> String {
    let text = match records {
        records if style != Style::One => serde_json::to_string(records),
        [record, ..] => serde_json::to_string(record),
        [] => return String::new(),
    };
    text.expect("a record has string keys and serializes without fail") + "\n"
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
