//! A cell of a table: its text, how it is sorted, its emphasis.

use std::cmp::Ordering;

/// What a cell is to say by its color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing.
    #[default]
    Plain,
    /// It is of no interest.
    Dim,
    /// It deserves a look.
    Warn,
    /// Something is wrong.
    Bad,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// Its emphasis.
    pub tone: Tone,
    /// By what it is sorted, before its text: a missing number comes last.
    number: Option<f64>,
}

impl Cell {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain, number: None }
    }

    /// A text that is sorted by a number.
    pub fn by(text: impl Into<String>, number: f64) -> Self {
        Self { number: Some(number), ..Self::text(text) }
    }

    /// Nothing to show.
    #[must_use]
    pub fn none() -> Self {
        Self::text("-").tone(Tone::Dim)
    }

    /// A whole number.
    pub fn number(number: impl Into<u64>) -> Self {
        let number = number.into();
        Self::by(number.to_string(), number as f64)
    }

    /// A whole number; nothing for 0.
    pub fn nonzero(number: impl Into<u64>) -> Self {
        match number.into() {
            0 => Self { number: Some(0.0), ..Self::none() },
            number => Self::number(number),
        }
    }

    /// A number of a queue pair or a key; nothing for 0.
    #[must_use]
    pub fn hex(number: u32) -> Self {
        if number == 0 { Self::none() } else { Self::by(format!("{number:#x}"), number.into()) }
    }

    /// How many of how many are in use, in a warning tone from four fifths on.
    #[must_use]
    pub fn fill(used: u32, of: u32) -> Self {
        let share = f64::from(used) / f64::from(of.max(1));
        let tone = if share >= 0.8 && of > 0 { Tone::Warn } else { Tone::Plain };
        Self::by(format!("{used}/{of}"), share).tone(tone)
    }

    /// A rate.
    #[must_use]
    pub fn rate(rate: Option<f64>) -> Self {
        match rate {
            None => Self::none(),
            Some(rate) => {
                Self::by(short(rate), rate).tone(if rate == 0.0 { Tone::Dim } else { Tone::Plain })
            }
        }
    }

    /// A time in seconds.
    #[must_use]
    pub fn time(seconds: Option<f64>) -> Self {
        seconds.map_or_else(Self::none, |seconds| Self::by(duration(seconds), seconds))
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(bytes: u64) -> Self {
        Self::by(binary(bytes), bytes as f64)
    }

    /// The same cell with this emphasis.
    #[must_use]
    pub fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// The order of two cells of a column.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let by_number = match (self.number, other.number) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        by_number.then_with(|| self.text.cmp(&other.text))
    }
}

/// A number in three to five characters.
#[must_use]
pub fn short(number: f64) -> String {
    for (unit, suffix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if number >= unit * 10.0 {
            return format!("{:.1}{suffix}", number / unit);
        }
    }
    if number > 0.0 && number < 10.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

/// How many of something there are: `1 process`, `2 processes`.
#[must_use]
pub fn count(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// Bytes in binary multiples.
#[must_use]
pub fn binary(bytes: u64) -> String {
    for (shift, suffix) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >= 1 << shift {
            return format!("{:.1} {suffix}", bytes as f64 / (1_u64 << shift) as f64);
        }
    }
    format!("{bytes} B")
}

/// A time.
#[must_use]
pub fn duration(seconds: f64) -> String {
    match seconds as u64 {
        0..60 => format!("{seconds:.1} s"),
        whole @ 60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        whole => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let of = |numbers: &[f64]| numbers.iter().copied().map(short).collect::<Vec<_>>();
        assert_eq!(of(&[0.0, 0.25, 9.9, 10.0, 9999.0]), ["0", "0.2", "9.9", "10", "9999"]);
        assert_eq!(of(&[10_000.0, 2.5e7, 3e12]), ["10.0k", "25.0M", "3000.0G"]);
        assert_eq!([0, 1, 2].map(|n| count(n, "cat", "cats")), ["0 cats", "1 cat", "2 cats"]);
        assert_eq!([0, 1023, 1024, 52 << 20].map(binary), ["0 B", "1023 B", "1.0 KiB", "52.0 MiB"]);
        assert_eq!([0.04, 61.0, 7260.0].map(duration), ["0.0 s", "1 min 01 s", "2 h 01 min"]);
    }

    #[test]
    fn what_is_missing_comes_last_and_texts_are_sorted_as_texts() {
        let mut cells = [Cell::none(), Cell::number(10_u64), Cell::number(9_u64), Cell::text("a")];
        cells.sort_by(Cell::compare);
        assert_eq!(cells.map(|cell| cell.text), ["9", "10", "-", "a"]);
    }

    #[test]
    fn a_queue_that_is_nearly_full_deserves_a_look() {
        let tones = [(0, 0), (3, 4), (4, 5), (5, 5)].map(|(used, of)| Cell::fill(used, of).tone);
        assert_eq!(tones, [Tone::Plain, Tone::Plain, Tone::Warn, Tone::Warn]);
    }
}
