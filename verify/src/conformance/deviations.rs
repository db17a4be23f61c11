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
    include_str!("../../DEVIATIONS.md").lines().filter(|line| line.starts_with("| `")).flat_map(of)
}

/// What a row says of one transport, or of two. One of Soft-RoCE has a last cell: whether it is imitated.
fn of(row: &'static str) -> impl Iterator<Item = Deviation> {
    let cells: Vec<_> = row.trim_matches(['|', ' ']).split(" | ").collect();
    let all = |case: &'static str, transports: &'static [&str], instead, why| {
        let case = case.trim_matches('`');
        let one = move |&transport: &&'static str| Deviation { transport, case, instead, why };
        transports.iter().map(one)
    };
    match cells[..] {
        [case, instead, why, "yes"] => all(case, &[VERBS_RXE, LIKE_RXE], instead, why),
        [case, instead, why, no] if no.starts_with("no: ") => all(case, &[VERBS_RXE], instead, why),
        [case, instead, why] => all(case, &[LIKE_RXE], instead, why),
        _ => panic!("a row of verify/DEVIATIONS.md has other cells than its heading: {row}"),
    }
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
