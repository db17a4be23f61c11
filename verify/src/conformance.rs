//! The conformance suite: a case for each observable rule of the contract, written once and run on every transport.
//!
//! ```
//! use verify::conformance::{cases, rules};
//! use verify::loopback::Loopback;
//!
//! let cases = cases::<Loopback>();
//! let case = cases.iter().find(|case| case.name == "p03_empty_is_no_error").unwrap();
//! assert_eq!(case.rule(), "P3");
//! assert!(rules().iter().any(|rule| rule.id == case.rule()));
//! (case.run)(); // panics if the transport does not follow the rule
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `rules` | the rules of the contract's page, and why some can't be tested on a transport |
//! | `deviations` | known deviations of the transports |
//! | `confined` | cases that do not apply to a transport |
//! | `stand`, `plan`, `expect` | what the cases are written with: two ends, their setup, waiting with a deadline |
//! | `line`, `changes`, `window`, `shared`, `way` | the same for failures, state transitions, memory windows, shared receive queues and datagrams |
//! | `peer` | the same for connecting by addresses: one side of a connection, the passive one [far](Device::open_far) |
//! | `engine` | the engine's own queues, which no transport is needed for |
//! | `run` | running cases in this process |
//! | `drive` | running cases in other processes, so that a case that panics, hangs or crashes fails alone |
//! | `verdict` | the table of results, and what is wrong with it |
//! | [`support`] | the README's table of what is supported |
//! | the others | the cases, by subject |
//!
//! The name of a case starts with its rule: `q05_…` tests [Q5](cq_core::contract#q5). To add one, write the function:
//! `build.rs` lists it. A case assumes only what the contract guarantees: the order within one queue, not across queues;
//! the capacities that the device reports; that an expected completion or event arrives before a deadline.
//!
//! To add a transport with the traits of [`cq_verbs::device`], implement `Transport` of `verify/src/adapter.rs`, which makes it a
//! [`Device`], and name it in [`TRANSPORTS`]. A case that fails then is a bug of the
//! transport, assumes too much, or needs a row in `verify/DEVIATIONS.md`, which says what the device does instead, and
//! why. If such a case tests other behavior as well, split it.

use crate::across::Across;
use crate::device::Device;
use crate::far::Far;
use crate::loopback::{LikeRxe, Loopback};
use crate::model::Model;

mod arming;
mod atomic_writes;
mod atomics;
mod budget;
mod changes;
mod channels;
mod completions;
mod confined;
mod connecting;
mod costs;
mod datagram_failures;
mod datagrams;
mod deviations;
mod drive;
mod engine;
mod expect;
mod failures;
mod failures_local;
mod flushes;
mod ignoring;
mod immediate;
mod interleaved;
mod invalidation;
mod killed;
mod limits;
mod line;
mod lists;
mod local_errors;
mod many;
mod moderation;
mod numbers;
mod objects;
mod operations;
mod overrun;
mod peer;
mod plan;
mod polling;
mod posting;
mod processes;
mod rules;
mod run;
#[cfg(test)]
mod sabotage;
mod shared;
mod shared_events;
mod shared_receives;
mod sleepers;
mod stand;
mod states;
pub mod support;
mod timers;
mod transitions;
mod transitions_unreliable;
mod unreliable;
mod verdict;
mod waking;
mod way;
mod window;
mod window_rights;
mod windows;

pub use confined::{CONFINED, Confined};
pub use deviations::{Deviation, deviations};
pub use drive::{Outcome, Part, Progress, run, run_side_by_side};
use engine::ENGINE;
pub use rules::{Rule, hidden, rules};
pub use run::{named, run_here};
pub use verdict::Verdict;

/// A test of one rule.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The rule and what is tested: `c08_failed_unsignaled_send_completes`.
    pub name: &'static str,
    /// Runs the test; panics with a message if the rule is violated.
    pub run: fn(),
}

impl Case {
    /// The rule that it tests: `C8`.
    ///
    /// # Panics
    /// Its name does not start with a rule.
    #[must_use]
    pub fn rule(&self) -> String {
        let (rule, _) = self.name.split_once('_').expect("a case is named RULE_WHAT");
        let (chapter, number) = rule.split_at(1);
        let number: u32 = number.parse().expect("a rule is a letter and a number");
        format!("{}{number}", chapter.to_uppercase())
    }
}

/// A transport under test, or the engine.
#[derive(Clone, Copy, Debug)]
pub struct Transport {
    /// The heading of its column.
    pub name: &'static str,
    /// Its cases.
    pub cases: fn() -> Vec<Case>,
    /// Where they can run.
    pub runs: Runs,
}

/// Where a transport's cases can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// On any machine.
    Anywhere,
    /// On any machine with libibverbs, by a program that is built with the feature `verbs` and preloads the loopback's
    /// C ABI.
    Preloaded,
    /// On a machine with an RDMA device, by a program that is built with the feature `verbs`.
    OnADevice,
}

impl Runs {
    /// Whether this program was built with what they need.
    #[must_use]
    pub const fn here(self) -> bool {
        matches!(self, Self::Anywhere) || cfg!(feature = "verbs")
    }
}

/// The columns of the table.
pub const TRANSPORTS: &[Transport] = &[
    Transport { name: "model", cases: cases::<Model>, runs: Runs::Anywhere },
    Transport { name: RXE_LOOP, cases: on_loopback, runs: Runs::Anywhere },
    Transport { name: LIKE_RXE, cases: real::<LikeRxe>, runs: Runs::Anywhere },
    Transport { name: RXE_LOOP_2, cases: on_two_processes, runs: Runs::Anywhere },
    Transport { name: VERBS_LOOP, cases: on_verbs, runs: Runs::Preloaded },
    Transport { name: VERBS_RXE, cases: on_rxe, runs: Runs::OnADevice },
    Transport { name: ENGINE, cases: engine::cases, runs: Runs::Anywhere },
];

/// The loopback.
const RXE_LOOP: &str = "rxe-loop";

/// The loopback, with the ends of every connection in two processes.
const RXE_LOOP_2: &str = "rxe-loop, two processes";

/// The loopback that imitates Soft-RoCE.
const LIKE_RXE: &str = "rxe-loop as rxe";

/// `transport-verbs` on the loopback, through its C ABI.
const VERBS_LOOP: &str = "verbs-loop";

/// `transport-verbs` on Linux' Soft-RoCE driver.
const VERBS_RXE: &str = "verbs-rxe";

fn on_loopback() -> Vec<Case> {
    [real::<Loopback>(), killed::cases::<Loopback>(), processes::cases::<Loopback>()].concat()
}

fn on_two_processes() -> Vec<Case> {
    [real::<Across>(), killed::cases::<Far>(), processes::cases::<Far>()].concat()
}

#[cfg(feature = "verbs")]
fn on_verbs() -> Vec<Case> {
    real::<crate::verbs::Verbs>()
}

/// The cases, by name only: this program can't run them.
#[cfg(not(feature = "verbs"))]
fn on_verbs() -> Vec<Case> {
    let elsewhere = |case| Case { run: || panic!("built without the feature `verbs`"), ..case };
    real::<Model>().into_iter().map(elsewhere).collect()
}

/// Those that Soft-RoCE does not hide.
fn on_rxe() -> Vec<Case> {
    on_verbs().into_iter().filter(|case| hidden(&case.rule(), VERBS_RXE).is_none()).collect()
}

/// Every case, for a transport other than the model.
fn real<D: Device>() -> Vec<Case> {
    [cases::<D>(), costs::cases::<D>()].concat()
}

/// The cases that also run on the model, for one transport.
#[must_use]
pub fn cases<D: Device>() -> Vec<Case> {
    include!(concat!(env!("OUT_DIR"), "/everywhere.rs")).concat()
}

/// Makes the list of a module's cases, from their names.
macro_rules! chapter {
    ($($case:ident,)+) => {
        /// Their names.
        #[allow(dead_code)]
        pub const NAMES: &[&str] = &[$(stringify!($case)),+];

        /// The cases of this module.
        pub fn cases<D: $crate::device::Device>() -> Vec<$crate::conformance::Case> {
            vec![$($crate::conformance::Case { name: stringify!($case), run: $case::<D> }),+]
        }
    };
}
use chapter;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_lead_to_a_rule_of_the_page() {
        let known: BTreeSet<_> = rules().into_iter().map(|rule| rule.id).collect();
        let mut names = BTreeSet::new();
        for case in on_loopback() {
            assert!(names.insert(case.name), "{} is there twice", case.name);
            assert!(known.contains(case.rule().as_str()), "{}: no such rule", case.name);
        }
    }

    #[test]
    fn every_transport_has_a_case_of_every_rule_or_a_reason_why_not() {
        for Transport { name, cases, .. } in TRANSPORTS {
            let judged: BTreeSet<_> = cases().iter().map(Case::rule).collect();
            for rule in rules() {
                let hidden = hidden(rule.id, name).is_some();
                assert!(judged.contains(rule.id) != hidden, "{name}, {}", rule.id);
            }
        }
    }
}
