//! What the results come to: the table rule × transport, and what is wrong with it.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};

use super::{CONFINED, Confined, DEVIATIONS, Deviation, Outcome, Rule, TRANSPORTS, hidden, rules};

/// How wide a statement may be on a terminal.
const STATEMENT: usize = 64;

/// The judgement of a run.
#[derive(Debug)]
pub struct Verdict {
    rows: Vec<Row>,
    columns: Vec<&'static str>,
    known: Known,
    faults: Vec<String>,
    cases: usize,
    missing: Vec<(&'static str, String)>,
}

/// What is known beforehand.
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

/// What a transport came to under a rule.
#[derive(Debug, PartialEq, Eq)]
enum Cell {
    /// No case can see the rule.
    Hidden,
    /// There is no case, though one could see it.
    Empty,
    /// So many cases passed, can't exist there, or deviate as is written down; the numbers of those notes.
    Holds { passed: usize, confined: usize, notes: Vec<usize> },
    /// So many failed.
    Fails { failed: usize, of: usize },
}

impl Verdict {
    /// Judges these outcomes by the page's rules and the known deviations. Transports that could not run are
    /// `missing`, for that reason.
    #[must_use]
    pub fn of(outcomes: &[Outcome], missing: &[(&'static str, String)]) -> Self {
        let ran = |name: &&str| !missing.iter().any(|(missing, _)| missing == name);
        let columns = TRANSPORTS.iter().map(|transport| transport.name).filter(ran);
        let columns: Vec<_> = columns.collect();
        let deviations = DEVIATIONS.iter().filter(|one| columns.contains(&one.transport)).copied();
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
        faults.extend(known.confined.iter().filter_map(|known| at_large(known, outcomes)));
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

    /// What is wrong, a line each.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// All of it in a line.
    #[must_use]
    pub fn summary(&self) -> String {
        let judged = self.rows.iter().filter(|row| !row.cells.contains(&Cell::Hidden)).count();
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
        let _ = write!(page, "\n– cannot be seen from outside, or cannot exist there:\n\n");
        for Row { rule, .. } in &self.rows {
            if let Some(why) = hidden(rule.id) {
                let _ = writeln!(page, "- {}: {why}.", rule.id);
            }
        }
        for Confined { transport, case, why, .. } in &self.known.confined {
            let _ = writeln!(page, "- `{case}` on {transport}: {why}.");
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

    /// What the numbers in the table stand for; why is on the page.
    fn notes(&self) -> String {
        let mut notes = String::new();
        for Confined { transport, case, why, .. } in &self.known.confined {
            let _ = writeln!(notes, "– {transport}, {case}: {why}");
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
    /// The place in the list of a deviation that is known of this case.
    fn deviation(&self, outcome: &Outcome) -> Option<usize> {
        let of = |one: &Deviation| one.is_of(outcome.transport, &outcome.case);
        self.deviations.iter().position(of)
    }

    /// Whether this case can't exist there.
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

/// What is wrong with a deviation that is written down.
fn stale(deviation: &Deviation, outcomes: &[Outcome]) -> Option<String> {
    let Deviation { transport, case, .. } = deviation;
    let of = |outcome: &&Outcome| deviation.is_of(outcome.transport, &outcome.case);
    match outcomes.iter().find(of).map(|outcome| &outcome.result) {
        None => Some(format!("{transport}: there is no case {case}, which should deviate")),
        Some(Ok(())) => Some(format!(
            "{transport}: {case} does not deviate any more: take its line out of deviations.rs"
        )),
        Some(Err(_)) => None,
    }
}

/// What is wrong with a case that is written down as one that can't exist. If it fails in another way, it
/// is told as any other.
fn at_large(confined: &Confined, outcomes: &[Outcome]) -> Option<String> {
    let Confined { transport, case, .. } = confined;
    let of = |outcome: &&Outcome| confined.is_of(outcome.transport, &outcome.case);
    match outcomes.iter().find(of).map(|outcome| &outcome.result) {
        None => Some(format!("{transport}: there is no case {case}, which should not exist there")),
        Some(Ok(())) => {
            Some(format!("{transport}: {case} can exist there: take its line out of confined.rs"))
        }
        Some(Err(_)) => None,
    }
}

fn cell(rule: &Rule, column: &str, outcomes: &[Outcome], known: &Known) -> Cell {
    if hidden(rule.id).is_some() {
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

/// Ascending numbers, those that follow each other as `first–last`.
fn runs(numbers: &[usize]) -> Vec<String> {
    let follow = |a: &usize, b: &usize| a + 1 == *b;
    let runs = numbers.chunk_by(follow).map(|run| match run {
        [first, .., last] => format!("{first}–{last}"),
        _ => run[0].to_string(),
    });
    runs.collect()
}

/// The text, or its beginning.
fn cut(text: &str, width: usize) -> String {
    let plain = text.replace('`', "");
    if plain.chars().count() <= width {
        return plain;
    }
    plain.chars().take(width - 1).collect::<String>() + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [Rule; 3] = [
        Rule { id: "C8", statement: "Every one. Once." },
        Rule { id: "P5", statement: "No system call." },
        Rule { id: "N6", statement: "No wake-up is lost." },
    ];
    use crate::conformance::Case;

    const C8: &str = "c08_once";
    const N6: &str = "n06_awake";
    const SILENT: Deviation =
        Deviation { transport: "a", case: N6, instead: "it sleeps", why: "it is tired" };

    fn outcome(transport: &'static str, name: &'static str, result: Result<(), &str>) -> Outcome {
        let result = result.map_err(str::to_owned);
        Outcome { transport, case: Case { name, run: || {} }, result }
    }

    fn judge(outcomes: &[Outcome], deviations: &[Deviation]) -> Verdict {
        let known = Known { deviations: deviations.to_vec(), ..Known::default() };
        Verdict::judge(outcomes, &RULES, vec!["a"], known)
    }

    #[test]
    fn a_case_that_cannot_exist_must_say_so() {
        let alone = Confined { transport: "a", case: N6, says: "alone", why: "it takes two" };
        let judge = |result| {
            let known = Known { confined: vec![alone], ..Known::default() };
            let outcomes = [outcome("a", C8, Ok(())), outcome("a", N6, result)];
            Verdict::judge(&outcomes, &RULES, vec!["a"], known)
        };
        let verdict = judge(Err("alone (x.rs:1)"));
        assert_eq!(verdict.faults(), &[] as &[String]);
        assert!(verdict.markdown().contains("| N6 | No wake-up is lost | – |"), "and no mark");
        assert!(
            verdict.text().contains("it takes two") && verdict.markdown().contains("takes two")
        );
        assert_eq!(judge(Err("asleep")).faults(), ["a: n06_awake failed: asleep"]);
        assert!(judge(Ok(())).faults().join("").contains("n06_awake can exist there"));
    }

    #[test]
    fn all_that_hold_and_what_cannot_be_seen_are_no_fault() {
        let verdict = judge(&[outcome("a", C8, Ok(())), outcome("a", N6, Ok(()))], &[]);
        assert_eq!(verdict.faults(), &[] as &[String]);
        assert!(verdict.markdown().contains("| C8 | Every one | ✓ 1 |"), "{}", verdict.markdown());
        assert!(verdict.markdown().contains("| P5 | No system call | – |"));
        assert!(verdict.summary().starts_with("0 faults"), "{}", verdict.summary());
    }

    #[test]
    fn a_rule_without_a_case_is_a_fault() {
        let verdict = judge(&[outcome("a", C8, Ok(()))], &[]);
        assert_eq!(verdict.faults(), ["a: no case of N6"]);
        assert!(verdict.text().contains("NO CASE"));
    }

    #[test]
    fn a_failed_case_is_a_fault_with_its_reason() {
        let verdict = judge(&[outcome("a", C8, Err("twice")), outcome("a", N6, Ok(()))], &[]);
        assert_eq!(verdict.faults(), ["a: c08_once failed: twice"]);
        assert!(verdict.text().contains("FAILED 1 of 1"));
    }

    #[test]
    fn a_known_deviation_is_a_note_until_it_passes() {
        let fails = [outcome("a", C8, Ok(())), outcome("a", N6, Err("asleep"))];
        let verdict = judge(&fails, &[SILENT]);
        assert_eq!(verdict.faults(), &[] as &[String]);
        assert!(verdict.markdown().contains("✗ 0 [1]") && verdict.text().contains("it sleeps"));
        assert!(verdict.markdown().contains("it is tired"), "{}", verdict.markdown());

        let passes = [outcome("a", C8, Ok(())), outcome("a", N6, Ok(()))];
        let faults = judge(&passes, &[SILENT]).faults().join("");
        assert!(faults.contains("n06_awake does not deviate any more"), "{faults}");
    }

    #[test]
    fn a_transport_that_could_not_run_is_named_with_the_reason_and_has_no_column() {
        let verdict = Verdict::of(&[], &[("verbs-rxe", "no QEMU".to_owned())]);
        assert!(verdict.summary().ends_with("; without verbs-rxe: no QEMU"));
        assert!(!verdict.header().contains(&"verbs-rxe".to_owned()));
        let about_it = |fault: &&String| fault.starts_with("verbs-rxe");
        assert_eq!(verdict.faults().iter().find(about_it), None, "nothing was judged");
        assert!(verdict.markdown().contains("**verbs-rxe did not run: no QEMU**"));
    }

    #[test]
    fn notes_that_follow_each_other_are_a_range() {
        assert_eq!(runs(&[1, 3, 4, 5, 9, 10]), ["1", "3–5", "9–10"]);
    }

    #[test]
    fn a_deviation_of_no_case_is_a_fault() {
        let outcomes = [outcome("a", C8, Ok(())), outcome("a", N6, Ok(()))];
        let gone = Deviation { case: "c08_gone", ..SILENT };
        let faults = judge(&outcomes, &[gone]).faults().join("");
        assert!(faults.contains("there is no case c08_gone"), "{faults}");
    }
}
