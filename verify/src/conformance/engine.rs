//! The engine's own queues, as a column of the table: the checks of [`cq_testing::rules`] on every kind of software queue, each
//! with completions and three other entries.

use cq_core::wc::Wc;
use cq_testing::entries::{Bytes4, Bytes16, Spare2};
use cq_testing::rules::{Check, of_an_entry};

use super::Case;

/// The column.
pub(super) const ENGINE: &str = "engine";

macro_rules! cases {
    ($($check:ident,)+) => {
        /// A case for each check.
        pub(super) fn cases() -> Vec<Case> {
            vec![$(Case { name: stringify!($check), run: || run(stringify!($check)) }),+]
        }
    };
}

cases! {
    p01_order,
    p02_polled_is_gone,
    p03_empty_is_no_error,
    p04_the_rest_stays,
    p05_returns,
    p06_empty_buffer,
    p07_no_more_than_asked,
    o01_the_capacity_is_kept,
    o03_the_overrun_comes_last,
    o05_an_overrun_wakes,
    o07_polled_slots_are_free,
    n01_one_event_for_an_arm,
    n02_arming_raises_nothing,
    n03_solicited,
    n04_never_weakens,
    n05_an_event_may_find_nothing,
    n06_no_wake_up_is_lost,
    s01_full_is_no_overrun,
    s02_closed_by_the_producer,
    s03_nobody_polls,
    s04_failed_by_the_consumer,
    s07_in_place,
    s08_as_pushed,
}

/// What is checked, with each entry.
fn checks() -> [(&'static str, Vec<Check>); 4] {
    [
        ("completions", of_an_entry::<Wc>()),
        ("entries of 16 bytes", of_an_entry::<Bytes16>()),
        ("entries of 4 bytes", of_an_entry::<Bytes4>()),
        ("entries with two spare bits", of_an_entry::<Spare2>()),
    ]
}

fn run(name: &str) {
    for (entries, checks) in checks() {
        for (_, check) in checks.into_iter().filter(|(check, _)| *check == name) {
            if let Err(broken) = check() {
                panic!("with {entries} {broken}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_check_is_a_case() {
        let cases: BTreeSet<_> = cases().into_iter().map(|case| case.name).collect();
        for (entries, checks) in checks() {
            let checks: BTreeSet<_> = checks.into_iter().map(|(name, _)| name).collect();
            assert_eq!(checks, cases, "{entries}");
        }
    }
}
