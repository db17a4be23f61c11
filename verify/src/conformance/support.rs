//! What is supported, operation × transport, as the repository's README shows it: the cells of this project's own columns
//! are what the cases of the suite came to, so that they are true or the run fails. Rows without cases name a stage of the
//! checker.

use std::fmt::Write;

use super::{
    CONFINED, Outcome, RXE_LOOP, RXE_LOOP_2, VERBS_LOOP, VERBS_RXE, arming, atomic_writes, atomics,
    budget, channels, completions, connecting, costs, datagram_failures, datagrams, failures,
    failures_local, flushes, ignoring, immediate, interleaved, invalidation, killed, limits, lists,
    local_errors, many, moderation, numbers, objects, operations, overrun, polling, posting,
    processes, shared_events, shared_receives, sleepers, states, timers, transitions,
    transitions_unreliable, unreliable, waking, window_rights, windows,
};

/// What encloses the table in the README.
const MARKS: [&str; 2] = ["<!-- cargo verify conformance: begin -->", "<!-- end -->"];

/// The cell of what nobody has tried.
const UNTESTED: &str = "untested";
/// That of what is not there.
const NONE: &str = "–";
/// That of what is there, and passes every case.
const ALL: &str = "✓";
/// The same as in the column of Soft-RoCE.
const AS_RXE: &str = "as Soft-RoCE";

/// The columns of this project: the heading, and the transports whose cases it has.
const OURS: [(&str, &[&str]); 3] =
    [("`loop0`", &[RXE_LOOP, RXE_LOOP_2]), ("C ABI", &[VERBS_LOOP]), ("Soft-RoCE", &[VERBS_RXE])];

/// The columns of others: the crates in the versions that were read.
const OTHERS: [&str; 4] = ["sideway 0.4", "ibverbs 0.9", "UCX", "libibverbs, rxe of Linux 6.1"];

/// A row of the table.
struct Row {
    what: &'static str,
    shown: Shown,
    others: [&'static str; OTHERS.len()],
}

/// What shows that it is supported.
enum Shown {
    /// These cases of the suite.
    Cases(&'static [&'static [&'static str]]),
    /// A stage of the checker, on these transports.
    Stage(&'static str, [&'static str; OURS.len()]),
    /// It is not supported.
    Nowhere,
}

use Shown::{Cases, Nowhere, Stage};

const ROWS: &[Row] = &[
    Row {
        what: "RC: SEND, WRITE, READ, immediate data",
        shown: Cases(&[
            operations::NAMES,
            immediate::NAMES,
            lists::NAMES,
            posting::NAMES,
            limits::NAMES,
        ]),
        others: [ALL, "SEND", "own", AS_RXE],
    },
    Row { what: "atomics", shown: Cases(&[atomics::NAMES]), others: [ALL, NONE, "own", AS_RXE] },
    Row {
        what: "UC",
        shown: Cases(&[unreliable::NAMES, local_errors::NAMES]),
        others: [ALL, "SEND", NONE, AS_RXE],
    },
    Row {
        what: "UD, address handles",
        shown: Cases(&[datagrams::NAMES, datagram_failures::NAMES]),
        others: [NONE, NONE, "inside", AS_RXE],
    },
    Row {
        what: "shared receive queues",
        shown: Cases(&[shared_receives::NAMES, shared_events::NAMES]),
        others: [NONE, NONE, "inside", AS_RXE],
    },
    Row {
        what: "memory windows (type 2)",
        shown: Cases(&[windows::NAMES, window_rights::NAMES, invalidation::NAMES]),
        others: [NONE, NONE, NONE, ALL],
    },
    Row {
        what: "ATOMIC_WRITE, FLUSH",
        shown: Cases(&[atomic_writes::NAMES, flushes::NAMES]),
        others: [NONE; 4],
    },
    Row {
        what: "completion queues: polling, events",
        shown: Cases(&[
            polling::NAMES,
            completions::NAMES,
            numbers::NAMES,
            costs::NAMES,
            arming::NAMES,
            channels::NAMES,
            sleepers::NAMES,
            waking::NAMES,
        ]),
        others: ["polling", "polling", "own", AS_RXE],
    },
    Row { what: "moderated events", shown: Cases(&[moderation::NAMES]), others: [NONE; 4] },
    Row {
        what: "queues that ignore overruns",
        shown: Cases(&[ignoring::NAMES]),
        others: [NONE; 4],
    },
    Row {
        what: "states, flushes, resizing",
        shown: Cases(&[
            states::NAMES,
            transitions::NAMES,
            transitions_unreliable::NAMES,
            objects::NAMES,
            many::NAMES,
        ]),
        others: ["partly", "partly", NONE, AS_RXE],
    },
    Row {
        what: "failures, RNR retries, timeouts",
        shown: Cases(&[failures::NAMES, failures_local::NAMES, timers::NAMES]),
        others: ["device's", "device's", "own", AS_RXE],
    },
    Row {
        what: "overrun, reported",
        shown: Cases(&[overrun::NAMES, budget::NAMES]),
        others: [NONE, NONE, NONE, AS_RXE],
    },
    Row {
        what: "connecting by rdma_cm",
        shown: Cases(&[connecting::NAMES, interleaved::NAMES, killed::NAMES]),
        others: [ALL, NONE, "own", AS_RXE],
    },
    Row {
        what: "killed processes, corrupted memory",
        shown: Cases(&[processes::NAMES]),
        others: [NONE; 4],
    },
    Row {
        what: "no kernel module, no root",
        shown: Stage("abi", [ALL, ALL, NONE]),
        others: [NONE, NONE, ALL, NONE],
    },
    Row { what: "faults by seed", shown: Stage("test", [ALL, ALL, NONE]), others: [NONE; 4] },
    Row {
        what: "between machines",
        shown: Stage("soft-roce", [NONE, NONE, ALL]),
        others: [ALL; 4],
    },
    Row { what: "multicast", shown: Nowhere, others: [NONE, NONE, NONE, ALL] },
    Row {
        what: "XRC, on-demand paging, device memory, timestamps",
        shown: Nowhere,
        others: ["partly", NONE, "inside", NONE],
    },
];

/// The stages of the checker that a row names.
pub fn stages() -> impl Iterator<Item = &'static str> {
    ROWS.iter().filter_map(|row| if let Stage(name, _) = row.shown { Some(name) } else { None })
}

/// The table as Markdown, with its marks.
#[must_use]
pub fn table(outcomes: &[Outcome]) -> String {
    let [begin, end] = MARKS;
    let ours = OURS.map(|(heading, _)| heading);
    let headings = [&[""], &ours[..], &["card"], &OTHERS].concat();
    let mut table = format!("{begin}\n| {} |\n", headings.join(" | "));
    let _ = writeln!(table, "|{}", "---|".repeat(headings.len()));
    for row in ROWS {
        let ours = OURS.map(|(_, transports)| transports);
        let ours: Vec<_> = match &row.shown {
            Cases(cases) => ours.iter().map(|it| came_to(it, cases, outcomes)).collect(),
            Stage(_, cells) => cells.iter().map(|cell| (*cell).to_owned()).collect(),
            Nowhere => ours.iter().map(|_| NONE.to_owned()).collect(),
        };
        let [_, abi, rxe] = &ours[..] else { unreachable!("there are three") };
        // What Soft-RoCE lacks, a card may have, where the transport reaches it.
        let is_reached = rxe != NONE || matches!(row.shown, Cases(_)) && abi != NONE;
        let card = if is_reached { UNTESTED } else { NONE };
        let others = row.others.map(|cell| if cell == AS_RXE { rxe } else { cell });
        let _ = writeln!(
            table,
            "| {} | {} | {card} | {} |",
            row.what,
            ours.join(" | "),
            others.join(" | ")
        );
    }
    table + end
}

/// What these cases came to on these transports, apart from those that do not apply there.
fn came_to(transports: &[&str], cases: &[&[&str]], outcomes: &[Outcome]) -> String {
    let is_one = |outcome: &&Outcome| {
        transports.contains(&outcome.transport)
            && cases.iter().any(|names| names.contains(&outcome.case.name))
            && !CONFINED.iter().any(|one| one.explains(outcome))
    };
    let results: Vec<_> = outcomes.iter().filter(is_one).map(|one| one.result.is_ok()).collect();
    match (results.iter().filter(|passed| **passed).count(), results.len()) {
        (_, 0) => NONE.to_owned(),
        (passed, of) if passed == of => ALL.to_owned(),
        (passed, of) => format!("{passed}/{of}"),
    }
}

/// The page with this table in place of the one that it has; `None` if it has none.
#[must_use]
pub fn with_table(page: &str, table: &str) -> Option<String> {
    let [begin, end] = MARKS;
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{table}{after}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{Case, ENGINE, TRANSPORTS};
    use super::*;

    #[test]
    fn each_case_of_a_transport_is_in_one_row() {
        let of_row = |row: &Row| if let Cases(cases) = row.shown { cases.concat() } else { vec![] };
        let rows: Vec<_> = ROWS.iter().flat_map(of_row).collect();
        let transports = TRANSPORTS.iter().filter(|transport| transport.name != ENGINE);
        let cases = transports.flat_map(|transport| (transport.cases)());
        for case in cases.map(|case| case.name).collect::<BTreeSet<_>>() {
            let count = rows.iter().filter(|name| **name == case).count();
            assert_eq!(count, 1, "{case}");
        }
    }

    #[test]
    fn a_cell_counts_what_deviates_and_leaves_out_what_does_not_apply() {
        let outcome = |transport, name, result: Result<(), &str>| {
            let case = Case { name, run: || {} };
            Outcome { transport, case, result: result.map_err(str::to_owned) }
        };
        let [one, other] = [atomics::NAMES[0], atomics::NAMES[1]];
        let cell = |outcomes: &[Outcome]| came_to(&[VERBS_RXE], &[atomics::NAMES], outcomes);
        assert_eq!(cell(&[outcome(RXE_LOOP, one, Ok(()))]), NONE);
        assert_eq!(cell(&[outcome(VERBS_RXE, one, Ok(()))]), ALL);
        let deviates = outcome(VERBS_RXE, other, Err("it does not"));
        assert_eq!(cell(&[outcome(VERBS_RXE, one, Ok(())), deviates]), "1/2");
        let of_flushes = |says| {
            let outcome = outcome(VERBS_RXE, flushes::NAMES[0], Err(says));
            came_to(&[VERBS_RXE], &[flushes::NAMES], &[outcome])
        };
        let confined = CONFINED.iter().find(|one| one.cases == flushes::NAMES).unwrap();
        assert_eq!([confined.says, "it panicked"].map(of_flushes), [NONE, "0/1"]);
    }

    #[test]
    fn the_table_replaces_what_stands_between_the_marks() {
        let table = table(&[]);
        let [begin, end] = MARKS;
        let page = |inside: &str| format!("# Title\n{inside}\nmore\n");
        let old = page(&format!("{begin}\nold\n{end}"));
        assert_eq!(with_table(&old, &table), Some(page(&table)));
        assert_eq!(with_table("# Title", &table), None);
    }
}
