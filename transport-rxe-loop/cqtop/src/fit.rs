//! How tables and lines fit a terminal: columns that are left out, texts that are shortened or wrapped.
//!
//! A number is shown as a whole or not at all.

use ratatui::text::Span;

use crate::tables::Table;

/// The least width of a column that is shortened or wrapped.
const LEAST: usize = 16;

/// Columns of a terminal that a text takes.
fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// The columns of a table that are shown in this width, in their order, and how wide each is. The column by which the
/// table is sorted is among them.
#[must_use]
pub fn columns(table: &Table, sorted: Option<usize>, available: usize) -> Vec<(usize, usize)> {
    let full = |nth: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(nth)).map(|cell| width(&cell.text));
        cells.chain([width(table.column(nth).0)]).max().unwrap_or_default()
    };
    let mut all: Vec<_> = (0..table.columns.len()).map(|nth| (nth, full(nth))).collect();
    let flexible = all.iter().position(|(nth, _)| table.is_flexible(*nth));
    let wish = flexible.map_or(0, |nth| all[nth].1);
    if let Some(nth) = flexible {
        all[nth].1 = wish.min(LEAST.max(width(table.column(nth).0)));
    }
    let taken = |all: &[(usize, usize)]| all.iter().map(|(_, width)| width + 1).sum::<usize>() - 1;
    let spare = table.narrow.leave_out.iter().filter_map(|head| table.nth(head));
    // Then the last ones, as far as need be.
    for nth in spare.chain((1..table.columns.len()).rev()) {
        if taken(&all) > available && sorted != Some(nth) {
            all.retain(|(other, _)| *other != nth);
        }
    }
    if taken(&all) > available {
        all.retain(|(nth, _)| sorted.is_none_or(|sorted| sorted == *nth));
    }
    let left = available.saturating_sub(taken(&all));
    for (nth, width) in &mut all {
        if Some(*nth) == flexible {
            *width = wish.min(*width + left);
        }
        *width = (*width).min(available);
    }
    all
}

/// A text of at most this width: `…` stands for what is cut off.
#[must_use]
pub fn shorten(text: &str, available: usize) -> String {
    if width(text) <= available {
        return text.to_owned();
    }
    let mut kept = text.to_owned();
    while width(&kept) >= available && kept.pop().is_some() {}
    if available > 0 {
        kept.push('…');
    }
    kept
}

/// The lines of a text that is wrapped between words. A word that is too long is shortened.
#[must_use]
pub fn wrap(text: &str, available: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() {
            line.push_str(word);
        } else if width(line) + 1 + width(word) <= available {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| shorten(line, available)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;
    use crate::tables::Narrow;

    const TABLE: Table = Table {
        title: "x",
        columns: &[" id", "name", " spare", " last"],
        narrow: Narrow { leave_out: &["spare"], flexible: "name", wraps: false },
        rows: Vec::new(),
    };

    /// The heads that are shown, and their widths.
    fn shown(sorted: Option<usize>, available: usize) -> Vec<(&'static str, usize)> {
        let cells = ["12345", &"n".repeat(40), "123456", "1234"].map(Cell::text);
        let table = Table { rows: vec![cells.to_vec()], ..TABLE };
        let columns = columns(&table, sorted, available);
        columns.into_iter().map(|(nth, width)| (table.column(nth).0, width)).collect()
    }

    #[test]
    fn columns_are_left_out_from_the_least_important_one_on_and_none_is_cut() {
        assert_eq!(shown(None, 99), [("id", 5), ("name", 40), ("spare", 6), ("last", 4)]);
        assert_eq!(shown(None, 40), [("id", 5), ("name", 22), ("spare", 6), ("last", 4)]);
        assert_eq!(shown(None, 33), [("id", 5), ("name", 22), ("last", 4)]);
        assert_eq!(shown(Some(2), 33), [("id", 5), ("name", 20), ("spare", 6)]);
        assert_eq!(shown(None, 22), [("id", 5), ("name", 16)]);
        assert_eq!(shown(None, 21), [("id", 5)]);
        assert_eq!(shown(Some(2), 8), [("spare", 6)]);
        assert_eq!(shown(None, 2), [("id", 2)]);
    }

    #[test]
    fn what_is_cut_off_is_marked_and_lines_are_wrapped_between_words() {
        let short = |available| shorten("abcde", available);
        assert_eq!([5, 4, 1, 0].map(short), ["abcde", "abc…", "…", ""]);
        assert_eq!(shorten("日本語", 5), "日本…");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two three", 4), ["one", "two", "thr…"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
