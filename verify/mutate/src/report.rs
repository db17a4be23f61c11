//! What is said at the end: a table of areas, the survivors that nobody explains, one line for all.

use std::fmt::Write;

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

use crate::checks::Kind;
use crate::kept::{Kept, Stale};
use crate::outcome::Outcome;
use crate::plant::Mutant;
use crate::sources::Area;

/// How many checks are named that reach a survivor.
const NAMED: usize = 4;

/// What became of the mutants that were tried.
#[derive(Debug)]
pub struct Report<'a> {
    /// The list of those that are explained.
    pub kept: &'a Kept,
    /// Mutants that compile.
    pub planted: &'a [&'a Mutant],
    /// Those that were tried, in the order of the sources.
    pub tried: Vec<(&'a Mutant, Outcome)>,
    /// Entries of the list that are wrong.
    pub stale: Vec<Stale>,
    /// How many checks there were.
    pub checks: usize,
}

impl Report<'_> {
    /// Whether nothing is to be mended, and something was shown.
    pub fn is_well(&self) -> bool {
        let [noticed, undecided] = self.counts();
        let has_shown = noticed > 0 || (undecided == 0 && !self.tried.is_empty());
        self.stale.is_empty() && self.unexplained().next().is_none() && has_shown
    }

    /// How many were noticed, and of how many is not said.
    fn counts(&self) -> [usize; 2] {
        let count =
            |is: fn(&Outcome) -> bool| self.tried.iter().filter(|(_, outcome)| is(outcome)).count();
        let noticed = count(|outcome| matches!(outcome, Outcome::Noticed { .. }));
        [noticed, count(|outcome| *outcome == Outcome::Undecided)]
    }

    fn unexplained(&self) -> impl Iterator<Item = &(&Mutant, Outcome)> {
        self.tried
            .iter()
            .filter(|(mutant, outcome)| is_survivor(outcome) && !self.kept.explains(mutant))
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(ASCII_MARKDOWN);
        let columns = ["area", "planted", "tried", "noticed", "by", "explained", "survived"];
        table.set_header(columns);
        for area in Area::ALL {
            table.add_row(self.row(area));
        }
        table.to_string()
    }

    fn row(&self, area: Area) -> Vec<String> {
        let planted = self.planted.iter().filter(|mutant| mutant.area == area).count();
        let tried: Vec<_> = self.tried.iter().filter(|(mutant, _)| mutant.area == area).collect();
        let by = |kind: Kind| {
            let is_by = |outcome: &Outcome| matches!(outcome, Outcome::Noticed { kind: by, .. } if *by == kind);
            let count = tried.iter().filter(|(_, outcome)| is_by(outcome)).count();
            (count > 0).then(|| format!("{} {count}", kind.name()))
        };
        let noticed =
            tried.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Noticed { .. }));
        let survivors = || tried.iter().filter(|(_, outcome)| is_survivor(outcome));
        let explained = survivors().filter(|(mutant, _)| self.kept.explains(mutant)).count();
        let kinds: Vec<String> = Kind::ALL.into_iter().filter_map(by).collect();
        vec![
            area.name().to_owned(),
            planted.to_string(),
            tried.len().to_string(),
            noticed.count().to_string(),
            kinds.join(", "),
            explained.to_string(),
            (survivors().count() - explained).to_string(),
        ]
    }

    /// The survivors that nobody explains, and the entries that are stale.
    pub fn complaints(&self) -> String {
        let mut text = String::new();
        for (mutant, outcome) in self.unexplained() {
            let Outcome::Survived { reached, reached_by } = outcome else { continue };
            let some = reached_by[..reached_by.len().min(NAMED)].join("; ");
            let reached = match reached {
                0 => "no check reaches it".to_owned(),
                many => format!("reached by {many}, such as {some}"),
            };
            // Writing to a string never fails.
            let _ = writeln!(text, "{}\n    {reached}", survivor(mutant));
        }
        for stale in &self.stale {
            let _ = writeln!(text, "stale: {stale}");
        }
        text
    }

    /// All in one line.
    pub fn summary(&self) -> String {
        let ([noticed, undecided], planted) = (self.counts(), self.planted.len());
        let tried = self.tried.len();
        let survived = self.unexplained().count();
        let explained = self
            .tried
            .iter()
            .filter(|(mutant, outcome)| is_survivor(outcome) && self.kept.explains(mutant))
            .count();
        let left = match undecided {
            0 => String::new(),
            count => format!("; {count} under way when the time was over"),
        };
        let stale = match self.stale.len() {
            0 => String::new(),
            count => format!("; {count} stale entries in {}", crate::kept::PATH),
        };
        format!(
            "{tried} of {planted} mutants tried on {} checks: {noticed} noticed, {explained} explained, {survived} survived{left}{stale}",
            self.checks
        )
    }
}

/// A survivor, by its place in the sources.
pub fn survivor(mutant: &Mutant) -> String {
    let Mutant { name, line, operator, number, .. } = mutant;
    format!(
        "{}:{line} {} [{operator}, number {number}]\n    {}{}",
        name.file,
        name.function,
        name.change,
        if name.nth > 1 { format!(" (nth = {})", name.nth) } else { String::new() }
    )
}

const fn is_survivor(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Survived { .. })
}
