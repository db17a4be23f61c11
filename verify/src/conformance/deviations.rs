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

/// All known deviations: those of Soft-RoCE, also as the loopback imitates them, and those of the imitation alone.
///
/// # Panics
/// A row of the page is none.
pub fn deviations() -> impl Iterator<Item = Deviation> {
    let rows = include_str!("../../DEVIATIONS.md").lines().filter(|line| line.starts_with("| `"));
    [VERBS_RXE, LIKE_RXE].into_iter().flat_map(move |it| rows.clone().filter_map(|row| of(row, it)))
}

/// What a row says of a transport. One of Soft-RoCE has a last cell: whether the loopback imitates it.
fn of(row: &'static str, transport: &'static str) -> Option<Deviation> {
    let cells: Vec<_> = row.trim_matches(['|', ' ']).split(" | ").collect();
    let (is_of, [case, instead, why]) = match cells[..] {
        [case, instead, why] => (transport == LIKE_RXE, [case, instead, why]),
        [case, instead, why, "yes"] => (true, [case, instead, why]),
        [case, instead, why, no] if no.starts_with("no: ") => {
            (transport == VERBS_RXE, [case, instead, why])
        }
        _ => panic!("a row of verify/DEVIATIONS.md has other cells than its heading: {row}"),
    };
    is_of.then(|| Deviation { transport, case: case.trim_matches('`'), instead, why })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_read_and_nothing_is_known_twice() {
        let page = include_str!("../../DEVIATIONS.md");
        let rows = page.lines().filter(|line| line.starts_with('|') && !line.starts_with("|-"));
        let known: BTreeSet<_> = deviations().map(|one| (one.transport, one.case)).collect();
        assert_eq!(known.len(), deviations().count(), "a case is there twice");
        // But for the two headings.
        let cases: BTreeSet<_> = known.iter().map(|(_, case)| case).collect();
        assert_eq!(cases.len(), rows.count() - 2);
    }
}
