//! The engine's own queues, as a column of the table: the checks of [`cq_testing::rules`] on every kind of software queue, each
//! with completions and three other entries.

use cq_core::wc::Wc;
use cq_testing::entries::{Bytes4, Bytes16, Spare2};
use cq_testing::rules::{self, Check, Ran};

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
    n03_others_raise_nothing,
    n03_solicited,
    n03_failure,
    n03_failed_receive,
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
        ("completions", rules::entry::<Wc>().collect()),
        ("entries of 16 bytes", rules::entry::<Bytes16>().collect()),
        ("entries of 4 bytes", rules::entry::<Bytes4>().collect()),
        ("entries with two spare bits", rules::entry::<Spare2>().collect()),
    ]
}

fn run(name: &str) {
    for (entries, checks) in checks() {
        match rules::run(checks.into_iter().filter(|check| check.name == name)) {
            Ok(Ran { not_applicable: 0, .. }) => {}
            Ok(ran) => panic!("with {entries} {ran}"),
            Err(broken) => panic!("with {entries} {broken}"),
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
            let checks: BTreeSet<_> = checks.into_iter().map(|check| check.name).collect();
            assert_eq!(checks, cases, "{entries}");
        }
    }
}
