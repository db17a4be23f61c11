//! Which tables there are, their columns, and how they are printed.

mod others;
mod processes;
mod queues;

use std::fmt::Write as _;

use comfy_table::{CellAlignment, presets};

use self::others::{channels, locks, regions, waits};
use self::processes::processes;
use self::queues::{completion_queues, queue_pairs, shared_receive_queues};
use crate::cell::{Cell, Tone, binary};
use crate::report::Report;

/// A table of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Page {
    Processes,
    QueuePairs,
    Completions,
    Shared,
    Memory,
    Waits,
}

/// A table: a title, columns, and rows of as many cells.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it is of.
    pub title: &'static str,
    /// The heads of the columns; those of numbers begin with a blank, and are aligned to the right.
    pub columns: &'static [&'static str],
    /// How it fits a narrow terminal.
    pub narrow: Narrow,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

/// How a table fits a narrow terminal. Columns are named by their heads, without the blank.
#[derive(Clone, Copy, Debug, Default)]
pub struct Narrow {
    /// Columns to leave out, the least important one first.
    pub leave_out: &'static [&'static str],
    /// A column of texts that may be narrower than they are.
    pub flexible: &'static str,
    /// Whether these are wrapped; if not, they are shortened.
    pub wraps: bool,
}

impl Table {
    /// The head of a column, and whether it is aligned to the right.
    #[must_use]
    pub fn column(&self, nth: usize) -> (&'static str, bool) {
        let head = self.columns[nth];
        (head.trim_start(), head.starts_with(' '))
    }

    /// The column with this head.
    #[must_use]
    pub fn nth(&self, head: &str) -> Option<usize> {
        (0..self.columns.len()).find(|nth| self.column(*nth).0 == head)
    }

    /// Whether a column's texts may be shortened or wrapped.
    #[must_use]
    pub fn is_flexible(&self, nth: usize) -> bool {
        self.column(nth).0 == self.narrow.flexible
    }

    /// Sorts the rows by a column.
    pub fn sort(&mut self, column: usize, reverse: bool) {
        let key = |row: &Vec<Cell>| row.get(column).cloned().unwrap_or_else(Cell::none);
        self.rows.sort_by(|one, other| {
            let order = key(one).compare(&key(other));
            if reverse { order.reverse() } else { order }
        });
    }
}

impl Page {
    /// All of them, in their order.
    pub const ALL: [Self; 6] = [
        Self::Processes,
        Self::QueuePairs,
        Self::Completions,
        Self::Shared,
        Self::Memory,
        Self::Waits,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::QueuePairs => "queue pairs",
            Self::Completions => "completions",
            Self::Shared => "shared",
            Self::Memory => "memory",
            Self::Waits => "waits",
        }
    }

    /// Its tables: the first can be sorted and scrolled.
    #[must_use]
    pub fn tables(self, report: &Report) -> Vec<Table> {
        match self {
            Self::Processes => vec![processes(report)],
            Self::QueuePairs => vec![queue_pairs(report)],
            Self::Completions => vec![completion_queues(report)],
            Self::Shared => vec![shared_receive_queues(report)],
            Self::Memory => vec![regions(report), channels(report)],
            Self::Waits => vec![waits(report), locks(report)],
        }
    }
}

/// The lines above the tables: how full everything is, and what is wrong with the fabric as a whole.
#[must_use]
pub fn summary(report: &Report) -> Vec<(String, Tone)> {
    let tables = report
        .tables
        .iter()
        .map(|table| format!("{} {} of {}", table.what, table.used, table.limit));
    let arena = &report.arena;
    let memory = format!(
        "memory {} of {} in use, largest free {}, tables {}",
        binary(arena.used),
        binary(arena.bytes),
        binary(arena.largest_free),
        binary(report.table_bytes)
    );
    let tables: Vec<_> = tables.collect();
    let mut lines = vec![
        (format!("fabric {}: {}", report.fabric, tables[..3].join(", ")), Tone::Plain),
        (tables[3..].join(", "), Tone::Plain),
        (memory, Tone::Plain),
    ];
    if !report.is_current {
        lines.push(("this fabric has ended: its file is gone".to_owned(), Tone::Bad));
    }
    let mut processes = report.processes.iter();
    if !report.processes.is_empty() && processes.all(|process| !process.seen.is_alive) {
        let dead = "all its processes are dead: the next process that creates a fabric removes it";
        lines.push((dead.to_owned(), Tone::Bad));
    }
    if report.missing_bytes > 0 {
        let missing = binary(report.missing_bytes);
        lines.push((format!("{missing} of its file are missing: it was truncated"), Tone::Bad));
    }
    lines
}

/// All tables as text: first those that say what is wrong, then the long ones.
#[must_use]
pub fn plain(report: &Report) -> String {
    let mut text = String::new();
    for (line, _) in summary(report) {
        let _ = writeln!(text, "{line}");
    }
    let mut pages = Page::ALL;
    pages.sort_by_key(|page| !matches!(page, Page::Processes | Page::Waits));
    for table in pages.into_iter().flat_map(|page| page.tables(report)) {
        let _ = writeln!(text, "\n{}", table.title.to_uppercase());
        if table.rows.is_empty() {
            let _ = writeln!(text, "none");
            continue;
        }
        let mut printed = comfy_table::Table::new();
        printed.load_preset(presets::NOTHING);
        printed.set_header((0..table.columns.len()).map(|nth| table.column(nth).0));
        for row in &table.rows {
            printed.add_row(row.iter().map(|cell| &cell.text));
        }
        for (nth, column) in printed.column_iter_mut().enumerate() {
            column.set_padding((0, 1));
            if table.column(nth).1 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for line in printed.lines() {
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}
