//! The table of results, rule × transport, and the faults of a run.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};

use super::{CONFINED, Confined, Deviation, Outcome, Rule, TRANSPORTS, deviations, hidden, rules};

/// The width of a rule's text on a terminal, in columns.
const STATEMENT: usize = 64;

/// The evaluated results of a run.
#[derive(Debug)]
pub struct Verdict {
    rows: Vec<Row>,
    columns: Vec<&'static str>,
    known: Known,
    faults: Vec<String>,
    cases: usize,
    missing: Vec<(&'static str, String)>,
}

/// The lists that results are compared with.
#[derive(Clone, Debug, Default)]
struct Known {
    deviations: Vec<Deviation>,
    confined: Vec<Confined>,
}

#[derive(Debug)]
struct Row {
    rule: Rule,
    cells: Vec<Cell>,
}

/// The result of a transport under a rule.
#[derive(Debug, PartialEq, Eq)]
enum Cell {
    /// The rule can't be tested there.
    Hidden,
    /// It could be tested, but there is no case.
    Empty,
    /// The numbers of cases that passed, do not apply, or deviate as listed; and the numbers of these notes.
    Holds { passed: usize, confined: usize, notes: Vec<usize> },
    /// The number of failed cases.
    Fails { failed: usize, of: usize },
}

impl Verdict {
    /// Compares outcomes with the rules and the known deviations. `missing` are the transports that could not run, and why.
    #[must_use]
    pub fn of(outcomes: &[Outcome], missing: &[(&'static str, String)]) -> Self {
        let ran = |name: &&str| !missing.iter().any(|(missing, _)| missing == name);
        let columns = TRANSPORTS.iter().map(|transport| transport.name).filter(ran);
        let columns: Vec<_> = columns.collect();
        let deviations = deviations().filter(|one| columns.contains(&one.transport));
        let confined = CONFINED.iter().filter(|one| columns.contains(&one.transport)).copied();
        let known = Known { deviations: deviations.collect(), confined: confined.collect() };
        let missing = missing.to_vec();
        Self { missing, ..Self::judge(outcomes, &rules(), columns, known) }
    }

    fn judge(
        outcomes: &[Outcome],
        rules: &[Rule],
        columns: Vec<&'static str>,
        known: Known,
    ) -> Self {
        let mut faults = failures(outcomes, &known);
        faults.extend(known.deviations.iter().filter_map(|known| stale(known, outcomes)));
        faults.extend(known.confined.iter().flat_map(|known| at_large(known, outcomes)));
        let row = |rule: &Rule| {
            let cell = |column: &&str| cell(rule, column, outcomes, &known);
            Row { rule: *rule, cells: columns.iter().map(cell).collect() }
        };
        let rows: Vec<Row> = rules.iter().map(row).collect();
        for Row { rule, cells } in &rows {
            for (cell, column) in cells.iter().zip(&columns) {
                if *cell == Cell::Empty {
                    faults.push(format!("{column}: no case of {}", rule.id));
                }
            }
        }
        let (cases, missing) = (outcomes.len(), Vec::new());
        Self { rows, columns, known, faults, cases, missing }
    }

    /// The faults, one line each.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// A summary in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let judged = self
            .rows
            .iter()
            .filter(|row| row.cells.iter().any(|cell| *cell != Cell::Hidden))
            .count();
        let (columns, known) = (self.columns.join("; "), self.known.deviations.len());
        let (cases, faults) = (self.cases, self.faults.len());
        let missing = self.missing();
        format!(
            "{faults} faults, {known} known deviations in {cases} cases of {judged} rules: {columns}{missing}"
        )
    }

    /// The transports that could not run, and why.
    fn missing(&self) -> String {
        let without = |(name, why): &(&str, String)| format!("; without {name}: {why}");
        self.missing.iter().map(without).collect()
    }

    /// The table for a terminal, and the known deviations.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_BORDERS_ONLY);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.header());
        for Row { rule, cells } in &self.rows {
            let statement = cut(rule.in_short(), STATEMENT);
            let cells = cells.iter().map(Cell::in_words);
            table.add_row([rule.id.to_owned(), statement].into_iter().chain(cells));
        }
        format!("{table}\n{}", self.notes())
    }

    /// The same as Markdown, with the reasons why some rules have no case.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut page = "# Conformance\n\n".to_owned();
        let line = |page: &mut String, cells: &[String]| {
            let _ = writeln!(page, "| {} |", cells.join(" | "));
        };
        let header = self.header();
        line(&mut page, &header);
        let _ = writeln!(page, "|{}", "---|".repeat(header.len()));
        for Row { rule, cells } in &self.rows {
            let mut row = vec![rule.id.to_owned(), rule.in_short().to_owned()];
            row.extend(cells.iter().map(Cell::in_words));
            line(&mut page, &row);
        }
        let _ = write!(page, "\n– is not judged there, or cannot exist there:\n\n");
        for Row { rule, .. } in &self.rows {
            for (column, why) in
                self.columns.iter().filter_map(|one| Some((one, hidden(rule.id, one)?)))
            {
                let _ = writeln!(page, "- {} on {column}: {why}.", rule.id);
            }
        }
        for confined @ Confined { transport, why, .. } in &self.known.confined {
            let _ = writeln!(page, "- {} on {transport}: {why}.", confined.in_words());
        }
        for (name, why) in &self.missing {
            let _ = writeln!(page, "\n**{name} did not run: {why}**");
        }
        for fault in &self.faults {
            let _ = writeln!(page, "\n**{fault}**");
        }
        if !self.known.deviations.is_empty() {
            page.push_str("\n## Known deviations\n\n");
        }
        for (number, known) in self.known.deviations.iter().enumerate() {
            let Deviation { transport, case, instead, why } = known;
            let _ = writeln!(page, "- [{}] {transport}, `{case}`: {instead}. {why}.", number + 1);
        }
        page
    }

    fn header(&self) -> Vec<String> {
        let columns = self.columns.iter().map(|name| (*name).to_owned());
        ["rule".to_owned(), "what holds".to_owned()].into_iter().chain(columns).collect()
    }

    /// What the numbers in the table mean. The page has the reasons.
    fn notes(&self) -> String {
        let mut notes = String::new();
        for confined @ Confined { transport, why, .. } in &self.known.confined {
            let _ = writeln!(notes, "– {transport}, {}: {why}", confined.in_words());
        }
        for (number, known) in self.known.deviations.iter().enumerate() {
            let Deviation { transport, case, instead, .. } = known;
            let _ = writeln!(notes, "[{}] {transport}, {case}: {instead}", number + 1);
        }
        notes
    }
}

impl Cell {
    fn in_words(&self) -> String {
        match self {
            Self::Hidden => "–".to_owned(),
            Self::Empty => "NO CASE".to_owned(),
            Self::Holds { passed: 0, confined: 1.., notes } if notes.is_empty() => "–".to_owned(),
            Self::Holds { passed, confined, notes } => {
                let notes: String = runs(notes).iter().map(|run| format!(" [{run}]")).collect();
                let confined = if *confined > 0 { " –" } else { "" };
                let mark = if *passed > 0 { "✓" } else { "✗" };
                format!("{mark} {passed}{confined}{notes}")
            }
            Self::Fails { failed, of } => format!("FAILED {failed} of {of}"),
        }
    }
}

impl Known {
    /// The index of the known deviation that affects this case.
    fn deviation(&self, outcome: &Outcome) -> Option<usize> {
        let of = |one: &Deviation| one.is_of(outcome.transport, &outcome.case);
        self.deviations.iter().position(of)
    }

    /// Whether this case does not apply there.
    fn confines(&self, outcome: &Outcome) -> bool {
        self.confined.iter().any(|one| one.explains(outcome))
    }
}

fn failures(outcomes: &[Outcome], known: &Known) -> Vec<String> {
    let failed = |outcome: &Outcome| {
        let Outcome { transport, case, result } = outcome;
        let why = result.as_ref().err()?;
        let unknown = known.deviation(outcome).is_none() && !known.confines(outcome);
        unknown.then(|| format!("{transport}: {} failed: {why}", case.name))
    };
    outcomes.iter().filter_map(failed).collect()
}

/// What is wrong with a listed deviation.
fn stale(deviation: &Deviation, outcomes: &[Outcome]) -> Option<String> {
    let Deviation { transport, case, .. } = deviation;
    let of = |outcome: &&Outcome| deviation.is_of(outcome.transport, &outcome.case);
    match outcomes.iter().find(of).map(|outcome| &outcome.result) {
        None => Some(format!("{transport}: there is no case {case}, which should deviate")),
        Some(Ok(())) => Some(format!(
            "{transport}: {case} does not deviate any more: take its row out of verify/DEVIATIONS.md"
        )),
        Some(Err(_)) => None,
    }
}

/// What is wrong with cases that are listed as not applicable, apart from other failures.
fn at_large(confined: &Confined, outcomes: &[Outcome]) -> Vec<String> {
    let transport = confined.transport;
    let wrong = |case: &&str| {
        let of = |outcome: &&Outcome| outcome.transport == transport && outcome.case.name == *case;
        match outcomes.iter().find(of).map(|outcome| &outcome.result) {
            None => Some(format!("there is no case {case}, which should not exist there")),
            Some(Ok(())) => Some(format!("{case} can exist there: take it out of confined.rs")),
            Some(Err(_)) => None,
        }
    };
    let wrong = confined.cases.iter().filter_map(wrong);
    wrong.map(|what| format!("{transport}: {what}")).collect()
}

fn cell(rule: &Rule, column: &str, outcomes: &[Outcome], known: &Known) -> Cell {
    if hidden(rule.id, column).is_some() {
        return Cell::Hidden;
    }
    let mine = |outcome: &&Outcome| outcome.transport == column && outcome.case.rule() == rule.id;
    let (mut passed, mut confined, mut failed, mut notes) = (0, 0, 0, Vec::new());
    for outcome in outcomes.iter().filter(mine) {
        match (&outcome.result, known.deviation(outcome)) {
            (Ok(()), _) => passed += 1,
            (Err(_), Some(note)) => notes.push(note + 1),
            (Err(_), None) if known.confines(outcome) => confined += 1,
            (Err(_), None) => failed += 1,
        }
    }
    notes.sort_unstable();
    match (passed + confined + notes.len(), failed) {
        (0, 0) => Cell::Empty,
        (_, 0) => Cell::Holds { passed, confined, notes },
        (others, _) => Cell::Fails { failed, of: others + failed },
    }
}

/// Ascending numbers; consecutive ones as `first–last`.
fn runs(numbers: &[usize]) -> Vec<String> {
    let follow = |a: &usize, b: &usize| a + 1 == *b;
    let runs = numbers.chunk_by(follow).map(|run| match run {
        [first, .., last] => format!("{first}–{last}"),
        _ => run[0].to_string(),
    });
    runs.collect()
}

/// The text, truncated to a width.
fn cut(text: &str, width: usize) -> String {
    let plain = text.replace('`', "");
    if plain.chars().count() <= width {
        return plain;
    }
    plain.chars().take(width - 1).collect::<String>() + "…"
}

#[cfg(test)]
mod tests;
