//! The rules, as the contract's page states them, and those that no case can see.

/// The page: rules are stated there and nowhere else.
const PAGE: &str = include_str!("../../CONTRACT.md");

/// A rule of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its number: `C8`.
    pub id: &'static str,
    /// What it says.
    pub statement: &'static str,
}

impl Rule {
    /// The first sentence of it.
    #[must_use]
    pub fn in_short(&self) -> &'static str {
        let end = self.statement.find(". ").unwrap_or(self.statement.len());
        self.statement[..end].trim_end_matches('.')
    }
}

/// What nothing that a transport does can show, with what shows it instead.
const HIDDEN: &[(&str, &str)] = &[
    ("C1", "asserted when cq-core compiles"),
    ("C2", "unit tests of cq-core"),
    ("C3", "unit tests of cq-core"),
    ("C12", "unit tests of cq-core"),
    ("P5", "tests of each transport, which count system calls and allocations"),
    ("P7", "unit tests of cq-core, over a transport that lies"),
    ("X1", "the column of two processes, and tests of the loopback"),
    ("X2", "tests of the loopback, with processes that race and are killed"),
    ("X3", "tests of the loopback that kill processes, and loom models"),
    ("X4", "tests of the loopback that scribble over its memory"),
    ("X5", "tests of the loopback, with memory of either kind in two processes"),
    ("X6", "the column of two processes, in its cases of N6"),
    ("X7", "tests of the loopback, in such surroundings"),
];

/// Every rule of the page, in its order.
#[must_use]
pub fn rules() -> Vec<Rule> {
    PAGE.lines().filter_map(rule).collect()
}

/// Why no case can see this rule, where that is so.
#[must_use]
pub fn hidden(id: &str) -> Option<&'static str> {
    HIDDEN.iter().find(|hidden| hidden.0 == id).map(|hidden| hidden.1)
}

/// A row of a table whose first cell is a rule's number.
fn rule(line: &'static str) -> Option<Rule> {
    let (id, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
    let (chapter, number) = id.split_at_checked(1)?;
    let named = chapter.chars().all(char::is_uppercase) && number.parse::<u32>().is_ok();
    let (statement, _source) = rest.rsplit_once(" | ")?;
    named.then_some(Rule { id, statement })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_rules_are_told_from_other_rows() {
        let row = "| N6 | No wake-up is lost: none. Ever. | `ibv_get_cq_event(3)` |";
        let found = rule(row).unwrap();
        assert_eq!((found.id, found.in_short()), ("N6", "No wake-up is lost: none"));
        for other in ["| rule | what holds | source |", "|---|---|---|", "text", "| LOC | x | y |"]
        {
            assert_eq!(rule(other), None, "{other}");
        }
    }

    #[test]
    fn the_page_has_every_chapter_and_what_is_hidden_is_on_it() {
        let ids: Vec<_> = rules().into_iter().map(|rule| rule.id).collect();
        for id in ["C1", "P1", "O1", "N1", "Q1", "X1"].iter().chain(HIDDEN.iter().map(|(id, _)| id))
        {
            assert!(ids.contains(id), "{id}");
        }
    }
}
