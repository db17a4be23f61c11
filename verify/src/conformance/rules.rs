//! The rules of the contract's page, and why some can't be tested on a transport.

use super::{ENGINE, LIKE_RXE, RXE_LOOP, RXE_LOOP_2, VERBS_LOOP, VERBS_RXE, engine};

/// The contract's page.
const PAGE: &str = include_str!("../../CONTRACT.md");

/// A rule of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its number: `C8`.
    pub id: &'static str,
    /// Its text.
    pub statement: &'static str,
}

impl Rule {
    /// The first sentence of its text.
    #[must_use]
    pub fn in_short(&self) -> &'static str {
        let end = self.statement.find(". ").unwrap_or(self.statement.len());
        self.statement[..end].trim_end_matches('.')
    }
}

/// Why the rules between processes are tested on the loopback alone.
const OF_THE_SYSTEM: &str = "processes that share a device are the operating system's business";
/// Why they are not tested on the loopback that imitates Soft-RoCE.
const AS_IT_IS: &str = "the loopback's processes are what they are, whatever it imitates";
/// Why they are not tested again through the loopback's C ABI.
const BESIDE: &str = "what its processes do to each other is judged without the C between them";
/// Why the order of a receiver's event and the completion of its message is not tested on Soft-RoCE.
const ACKNOWLEDGED_LATER: &str =
    "rxe raises the event before it acknowledges the message, so an answer may come first";
/// Why the cost of polling is not tested on the model.
const TO_BE_READ: &str = "the model is there to be read, and may take its time";

/// Why the rules of software queues, and of librpma's calls, are tested on no transport.
const OF_THE_ENGINE: &str = "it is about the engine, which its own column, tests and models judge";
/// Why most rules are not tested on the engine's queues.
const OF_A_DEVICE: &str = "it is about a device, and the engine's queues have none";

/// Every rule, in the page's order.
#[must_use]
pub fn rules() -> Vec<Rule> {
    PAGE.lines().filter_map(rule).collect()
}

/// Why a rule can't be tested on a transport; `None` if it can.
#[must_use]
pub fn hidden(id: &str, transport: &str) -> Option<&'static str> {
    match (id, transport) {
        (id, ENGINE) if engine::cases().iter().any(|case| case.rule() == id) => None,
        (id, _) if id.starts_with(['S', 'R']) => Some(OF_THE_ENGINE),
        (_, ENGINE) => Some(OF_A_DEVICE),
        (_, RXE_LOOP | RXE_LOOP_2) => None,
        ("P5", "model") => Some(TO_BE_READ),
        ("N13", VERBS_RXE) => Some(ACKNOWLEDGED_LATER),
        (id, LIKE_RXE) => id.starts_with('X').then_some(AS_IT_IS),
        (id, VERBS_LOOP) => id.starts_with('X').then_some(BESIDE),
        (id, _) => id.starts_with('X').then_some(OF_THE_SYSTEM),
    }
}

/// Parses a row of a table whose first cell is a rule's number, after the anchor that documentation links to.
fn rule(line: &'static str) -> Option<Rule> {
    let (cell, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
    let (_anchor, id) = cell.rsplit_once('>')?;
    let (chapter, number) = id.split_at_checked(1)?;
    let named = chapter.chars().all(char::is_uppercase) && number.parse::<u32>().is_ok();
    let (statement, _source) = rest.rsplit_once(" | ")?;
    named.then_some(Rule { id, statement })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn rows_of_rules_are_told_from_other_rows() {
        let row =
            "| <a id=\"n6\"></a>N6 | No wake-up is lost: none. Ever. | `ibv_get_cq_event(3)` |";
        let found = rule(row).unwrap();
        assert_eq!((found.id, found.in_short()), ("N6", "No wake-up is lost: none"));
        for other in ["| rule | what holds | source |", "|---|---|---|", "text", "| LOC | x | y |"]
        {
            assert_eq!(rule(other), None, "{other}");
        }
    }

    #[test]
    fn the_page_has_every_chapter() {
        let ids: Vec<_> = rules().into_iter().map(|rule| rule.id).collect();
        for id in ["C1", "P1", "P5", "O1", "N1", "Q1", "M1", "S1", "R1", "X1"] {
            assert!(ids.contains(&id), "{id}");
        }
    }

    /// cq-core checks its own links.
    #[test]
    fn each_link_of_the_transports_documentation_leads_to_the_rule_that_it_names() {
        const LINK: &str = "](cq_core::contract#";
        let ids: Vec<_> = rules().into_iter().map(|rule| rule.id.to_owned()).collect();
        for package in ["transport-rxe-loop", "transport-rxe-loop/verbs-abi", "transport-verbs"] {
            let mut links = 0;
            let mut folders = vec![PathBuf::from(format!("../{package}/src"))];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_dir() {
                        folders.push(path);
                        continue;
                    }
                    let text = fs::read_to_string(&path).unwrap();
                    for (at, _) in text.match_indices(LINK) {
                        let rule = text[..at].rsplit('[').next().unwrap();
                        let anchor = text[at + LINK.len()..].split(')').next().unwrap();
                        assert_eq!(rule.to_lowercase(), anchor, "{}", path.display());
                        assert!(ids.iter().any(|id| id == rule), "{}: {rule}", path.display());
                        links += 1;
                    }
                }
            }
            assert!(links > 0, "{package}");
        }
    }

    #[test]
    fn nothing_is_hidden_of_the_loopback_but_the_engine_s_own() {
        let on =
            |transport| rules().iter().filter(|rule| hidden(rule.id, transport).is_some()).count();
        assert_eq!([RXE_LOOP, RXE_LOOP_2].map(on), [11, 11], "S1 to S8, R1 to R3");
        assert_eq!(
            ["model", LIKE_RXE, VERBS_LOOP, "verbs-rxe"].map(on),
            [19, 18, 18, 19],
            "S1 to S8, R1 to R3, X1 to X7, P5 of the model, and N13 of Soft-RoCE"
        );
    }
}
