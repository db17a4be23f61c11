//! Cases that do not apply to a transport. The table shows them. They run nevertheless, and must fail with the listed
//! message; if one does not, the run fails until its entry is removed.

use super::stand::{NO_OPERATION, NOT_OFFERED};
use super::{
    Case, Outcome, RXE_LOOP_2, VERBS_LOOP, VERBS_RXE, atomic_writes, connecting, flushes, ignoring,
    interleaved, invalidation, moderation, window_rights, windows,
};
use crate::across::WITHIN;

/// Cases that do not apply to a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confined {
    /// Which transport.
    pub transport: &'static str,
    /// The cases.
    pub cases: &'static [&'static str],
    /// The message with which they fail.
    pub says: &'static str,
    /// Why they do not apply.
    pub why: &'static str,
}

impl Confined {
    /// Whether it is this case on this transport.
    #[must_use]
    pub fn is_of(&self, transport: &str, case: &Case) -> bool {
        self.transport == transport && self.cases.contains(&case.name)
    }

    /// Whether the case failed as it must.
    #[must_use]
    pub fn explains(&self, Outcome { transport, case, result }: &Outcome) -> bool {
        let says = result.as_ref().is_err_and(|why| why.starts_with(self.says));
        says && self.is_of(transport, case)
    }

    /// The case, or the first one and the number of others.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self.cases {
            [one] => format!("`{one}`"),
            [first, ..] => format!("{} cases as `{first}`", self.cases.len()),
            [] => "no case".to_owned(),
        }
    }
}

/// All of them.
pub const CONFINED: &[Confined] = &[
    Confined {
        transport: RXE_LOOP_2,
        cases: &["q06_an_sge_that_overlaps_its_target_arrives_as_it_was"],
        says: WITHIN,
        why: "where both are the same memory, the queue pair is connected to itself",
    },
    Confined {
        transport: RXE_LOOP_2,
        cases: &["q06_a_datagram_may_go_to_its_own_queue_pair"],
        says: WITHIN,
        why: "what goes to its own queue pair stays in its process",
    },
    on_the_model(connecting::NAMES),
    on_the_model(interleaved::NAMES),
    on_rxe(atomic_writes::NAMES, NO_OPERATION, NEWER),
    on_rxe(flushes::NAMES, NO_OPERATION, NEWER),
    on_rxe(windows::NAMES, NOT_OFFERED, UNBOUND),
    on_rxe(window_rights::NAMES, NOT_OFFERED, UNBOUND),
    on_rxe(invalidation::NAMES, NOT_OFFERED, UNBOUND),
    on_rxe(OF_UNRELIABLE_WINDOWS, NOT_OFFERED, UNBOUND),
    on_rxe(moderation::NAMES, NOT_OFFERED, "rxe has no modify_cq: EOPNOTSUPP"),
    on_rxe(ignoring::NAMES, NOT_OFFERED, MISSED),
    on_loop(atomic_writes::NAMES, NO_OPERATION, "the operation is newer than rdma-sys"),
    on_loop(flushes::NAMES, NO_OPERATION, "the operation is newer than rdma-sys"),
    on_loop(windows::NAMES, NOT_OFFERED, UNBOUND),
    on_loop(window_rights::NAMES, NOT_OFFERED, UNBOUND),
    on_loop(invalidation::NAMES, NOT_OFFERED, UNBOUND),
    on_loop(OF_UNRELIABLE_WINDOWS, NOT_OFFERED, UNBOUND),
    on_loop(ignoring::NAMES, NOT_OFFERED, MISSED),
];

const AS_DATA: &str =
    "the model has the order of a connection's events as data, which the cases compare with";

const OF_UNRELIABLE_WINDOWS: &[&str] = &["q06_a_window_opens_for_an_unreliable_connection"];
const NEWER: &str = "the operation is newer than rdma-sys and than rxe of Linux 6.1";
const UNBOUND: &str = "rdma-sys does not have the operands of BIND_MW";
const MISSED: &str =
    "queues that ignore overruns are made by an extended call, which rdma-sys misses";

const fn on_the_model(cases: Cases) -> Confined {
    Confined { transport: "model", cases, says: NOT_OFFERED, why: AS_DATA }
}

const fn on_rxe(cases: Cases, says: &'static str, why: &'static str) -> Confined {
    Confined { transport: VERBS_RXE, cases, says, why }
}

const fn on_loop(cases: Cases, says: &'static str, why: &'static str) -> Confined {
    Confined { transport: VERBS_LOOP, cases, says, why }
}

type Cases = &'static [&'static str];
