//! What is said at the end: a table of areas, the survivors that nobody explains, one line for all.

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

use crate::checks::Outcome;
use crate::kept::{self, Kept};
use crate::plant::Mutant;
use crate::sources::AREAS;

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
    /// How many checks there were.
    pub checks: usize,
}

/// What became of some mutants, by their number.
#[derive(Default)]
struct Counts {
    tried: usize,
    noticed: usize,
    explained: usize,
    survived: usize,
}

impl Report<'_> {
    /// Whether nothing is to be mended, and something was shown.
    pub fn is_well(&self) -> bool {
        let survived = self.counts(|_| true).survived;
        self.stale().is_empty() && survived == 0 && !self.tried.is_empty()
    }

    fn stale(&self) -> Vec<String> {
        self.kept.stale(self.planted, &self.tried)
    }

    fn counts(&self, is_counted: impl Fn(&Mutant) -> bool) -> Counts {
        let mut counts = Counts::default();
        for (mutant, outcome) in self.tried.iter().filter(|(mutant, _)| is_counted(mutant)) {
            counts.tried += 1;
            *match outcome {
                Outcome::Noticed { .. } => &mut counts.noticed,
                Outcome::Survived { .. } if self.kept.explains(mutant) => &mut counts.explained,
                Outcome::Survived { .. } => &mut counts.survived,
            } += 1;
        }
        counts
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(ASCII_MARKDOWN);
        table.set_header(["area", "planted", "tried", "noticed", "explained", "survived"]);
        for area in AREAS {
            let planted = self.planted.iter().filter(|mutant| mutant.area == area).count();
            let counts = self.counts(|mutant| mutant.area == area);
            let Counts { tried, noticed, explained, survived } = counts;
            let numbers = [planted, tried, noticed, explained, survived].map(|it| it.to_string());
            table.add_row([area.to_owned()].into_iter().chain(numbers));
        }
        table.to_string()
    }

    /// The survivors that nobody explains, and the entries that are stale.
    pub fn complaints(&self) -> String {
        let survivors = self.tried.iter().filter_map(|(mutant, outcome)| match outcome {
            Outcome::Survived { reached, reached_by } if !self.kept.explains(mutant) => {
                let some = reached_by[..reached_by.len().min(NAMED)].join("; ");
                let reached = match reached {
                    0 => "no check reaches it".to_owned(),
                    many => format!("reached by {many}, such as {some}"),
                };
                Some(format!("{}\n    {reached}\n", survivor(mutant)))
            }
            _ => None,
        });
        survivors.chain(self.stale().iter().map(|entry| format!("stale: {entry}\n"))).collect()
    }

    /// All in one line.
    pub fn summary(&self) -> String {
        let Counts { tried, noticed, explained, survived } = self.counts(|_| true);
        let stale = match self.stale().len() {
            0 => String::new(),
            count => format!("; {count} stale entries in {}", kept::PATH),
        };
        format!(
            "{tried} of {} mutants tried on {} checks: {noticed} noticed, {explained} explained, {survived} survived{stale}",
            self.planted.len(),
            self.checks,
        )
    }
}

/// A survivor, by its place in the sources, and as the kept list has it.
fn survivor(Mutant { name, line, operator, number, .. }: &Mutant) -> String {
    format!("{}:{line} [{operator}, number {number}]\n    {}", name.file, name.in_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Kind;

    #[test]
    fn a_report_is_well_if_something_was_noticed_and_nothing_survived() {
        let (kept, one, two) = (Kept::default(), Mutant::numbered(1), Mutant::numbered(2));
        let planted = [&one, &two];
        let noticed = Outcome::Noticed { kind: Kind::Engine, by: "a test".into(), late: false };
        let survived = Outcome::Survived { reached: 1, reached_by: vec!["a test".into()] };
        for (outcomes, is_well, said) in [
            (vec![&noticed, &noticed], true, "2 noticed, 0 explained, 0 survived"),
            (vec![&noticed, &survived], false, "1 noticed, 0 explained, 1 survived"),
            (vec![], false, "0 of 2 mutants tried on 3 checks"),
        ] {
            let tried = planted.into_iter().zip(outcomes.into_iter().cloned()).collect();
            let report = Report { kept: &kept, planted: &planted, tried, checks: 3 };
            assert_eq!(report.is_well(), is_well, "{said}");
            assert!(report.summary().contains(said), "{}", report.summary());
            let complaint = "a.rs:1 [drop, number 2]\n    f: 2\n    reached by 1, such as a test\n";
            assert_eq!(report.complaints() == complaint, said.contains("1 survived"));
        }
    }
}
