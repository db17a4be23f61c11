//! Known deviations of transports from the contract, as the page `verify/DEVIATIONS.md` lists them. A case that is listed
//! must fail; if it passes, the run fails until its row is removed.

use super::{Case, LIKE_RXE, VERBS_RXE};

/// A deviation of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Which transport.
    pub transport: &'static str,
    /// The case that fails, and with it the rule.
    pub case: &'static str,
    /// What happens instead.
    pub instead: &'static str,
    /// The cause.
    pub why: &'static str,
}

impl Deviation {
    /// Whether it affects this case on this transport.
    #[must_use]
    pub fn is_of(&self, transport: &str, case: &Case) -> bool {
        (self.transport, self.case) == (transport, case.name)
    }
}

const PAGE: &str = include_str!("../../DEVIATIONS.md");
/// The heading of the second of its tables.
const ALONE: &str = "\n## The loopback as Soft-RoCE\n";

/// All known deviations: those of Soft-RoCE, also as the loopback imitates them, and those of the imitation alone.
///
/// # Panics
/// The page has a row that is none.
pub fn deviations() -> impl Iterator<Item = Deviation> {
    let (rxe, alone) = PAGE.split_once(ALONE).expect("the page has two tables");
    let of_rxe = [VERBS_RXE, LIKE_RXE].map(|it| rows(rxe).filter_map(move |row| of_rxe(row, it)));
    let alone = rows(alone).map(|row| {
        let [case, instead, why] = cells(row);
        Deviation { transport: LIKE_RXE, case, instead, why }
    });
    of_rxe.into_iter().flatten().chain(alone)
}

/// What a row of Soft-RoCE's table says of a transport.
fn of_rxe(row: &'static str, transport: &'static str) -> Option<Deviation> {
    let [case, instead, why, imitated] = cells(row);
    assert!(imitated == "yes" || imitated.starts_with("no: "), "whether it is imitated: {row}");
    let is_of = transport == VERBS_RXE || imitated == "yes";
    is_of.then_some(Deviation { transport, case, instead, why })
}

fn rows(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| line.starts_with("| `"))
}

fn cells<const N: usize>(row: &'static str) -> [&'static str; N] {
    let cells = row.trim_matches(['|', ' ']).split(" | ").map(|cell| cell.trim_matches('`'));
    let cells: Vec<_> = cells.collect();
    cells.try_into().unwrap_or_else(|_| panic!("a row has other cells than its table: {row}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_read_and_nothing_is_known_twice() {
        let rows = PAGE.lines().filter(|line| line.starts_with('|') && !line.starts_with("|-"));
        let known: BTreeSet<_> = deviations().map(|one| (one.transport, one.case)).collect();
        assert_eq!(known.len(), deviations().count(), "a case is there twice");
        // But for the two headings.
        let cases: BTreeSet<_> = known.iter().map(|(_, case)| case).collect();
        assert_eq!(cases.len(), rows.count() - 2);
    }
}
