//! Random programs, run on two devices side by side: what they complete, queue by queue, and what their
//! memory holds then has to be equal, and every call has to be obeyed or refused alike.
//!
//! ```
//! use verify::differential::{FULL, Plan, run};
//! use verify::model::Model;
//!
//! // A device agrees with itself.
//! let plan = Plan { programs: 20, seed: 1, dialect: &FULL };
//! let tally = run::<Model, Model>(&plan, |_| ()).unwrap();
//! println!("{tally}");
//! ```
//!
//! A program that shows a difference is shrunk: steps, requests and numbers that are not needed are left
//! out, until what stays is small enough to be read.
//!
//! # What is not compared
//! Which of several reasons a request is refused for; when an overrun comes ([O1](cq_core::contract#o1)), so there is
//! none; how the completions of different queues mix; what becomes of a request whose memory is deregistered; what a
//! global route says; which of two that wait gets the next receive of a shared queue, so that nobody waits there. What
//! waits either waits for ever, or so short that it has ended before the next step. A device that is known to deviate
//! has a [`Dialect`] of its own, which says what else is left out and why.

mod dialect;
mod end;
mod judge;
mod machine;
mod program;
mod seen;
mod strategy;
mod words;

pub use self::dialect::{Dialect, FULL, Omission, SOFT_ROCE, TWO_PROCESSES, VERBS_LOOP, Why};
pub use self::program::{
    Change, Data, EndShape, MAIN, Op, Piece, Place, Program, Region, Request, SMALL, Shape, Step,
    Target,
};

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use cq_core::wc::WcStatus;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use self::seen::Completed;
use crate::device::Device;

/// How long a device may take for a step. Nothing here takes that long.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 20_000 });
/// The same for a device that has been found to differ, and has to do so again and again. The model needs none.
const SHRINKING: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 200 });
/// How many smaller programs are tried then.
const SHRINKS: u32 = if cfg!(test) { 150 } else { 20_000 };

/// How many programs, and which.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many.
    pub programs: u32,
    /// The same seed gives the same programs.
    pub seed: u64,
    /// What they do.
    pub dialect: &'static Dialect,
}

/// A program that two devices carry out differently.
#[derive(Debug, thiserror::Error)]
#[error("{why}\nby the program, shrunk: {program:#?}")]
pub struct Disagreement {
    /// As small as it could be made.
    pub program: Program,
    /// What they did differently.
    pub why: String,
}

/// What programs did, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many there were.
    pub programs: u32,
    steps: usize,
    /// How often a request ended so, by the number of the status.
    ended: BTreeMap<u32, u64>,
}

impl Tally {
    /// Counts a program and what it completed.
    fn add(&mut self, program: &Program, completed: &Completed) {
        self.programs += 1;
        self.steps += program.steps.len();
        for done in completed.iter().flatten() {
            *self.ended.entry(done.status().0).or_default() += 1;
        }
    }

    /// How many requests ended so.
    pub fn count(&self, status: WcStatus) -> u64 {
        self.ended.get(&status.0).copied().unwrap_or(0)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps", self.steps)?;
        for (status, count) in &self.ended {
            write!(f, ", {count} × {}", WcStatus(*status))?;
        }
        Ok(())
    }
}

/// Runs so many programs on the reference `R` and on the device `D`; `progress` is told how many have
/// agreed. Returns what they did.
///
/// # Errors
/// The first disagreement, shrunk.
pub fn run<R: Device, D: Device>(
    plan: &Plan,
    progress: impl Fn(u32),
) -> Result<Tally, Box<Disagreement>> {
    let config = Config {
        cases: plan.programs,
        failure_persistence: None,
        max_shrink_iters: SHRINKS,
        rng_seed: RngSeed::Fixed(plan.seed),
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let patience = Cell::new(PATIENCE);
    let tally = RefCell::new(Tally::default());
    let result = runner.run(&strategy::program(plan.dialect), |program| {
        let compared = judge::compare::<R, D>(&program, plan.dialect, patience.get());
        let completed = compared.map_err(|difference| {
            patience.set(SHRINKING);
            TestCaseError::fail(difference)
        })?;
        let mut tally = tally.borrow_mut();
        tally.add(&program, &completed);
        progress(tally.programs);
        Ok(())
    });
    match result {
        Ok(()) => Ok(tally.into_inner()),
        Err(TestError::Fail(why, program)) => {
            Err(Box::new(Disagreement { program, why: why.to_string() }))
        }
        Err(TestError::Abort(why)) => unreachable!("no program is rejected: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use cq_core::wc::WcStatus as S;

    use super::*;
    use crate::broken::How::*;
    use crate::broken::{Broken, How};
    use crate::model::Model;

    const fn plan(dialect: &'static Dialect) -> Plan {
        Plan { programs: 1000, seed: 1, dialect }
    }

    /// Whether a model that is broken in each of these ways is told from a sound one; side by side.
    fn controls(ways: &[How], dialect: &'static Dialect) {
        thread::scope(|scope| {
            for how in ways {
                scope.spawn(move || {
                    let found = how.with(|| run::<Model, Broken>(&plan(dialect), |_| ()));
                    let found = found.expect_err("nobody noticed");
                    assert!(found.program.steps.len() <= 8, "{how:?} is not shrunk: {found}");
                });
            }
        });
    }

    #[test]
    fn a_sound_model_agrees_with_itself() {
        let few = Plan { programs: 300, ..plan(&FULL) };
        run::<Model, Broken>(&few, |_| ()).unwrap();
    }

    #[test]
    fn the_same_seed_finds_the_same_program() {
        let find = || {
            let found = HandsOutTwice.with(|| run::<Model, Broken>(&plan(&FULL), |_| ()));
            found.unwrap_err().to_string()
        };
        assert_eq!(find(), find());
    }

    #[test]
    fn every_sabotage_is_found_and_shrunk() {
        let ways = [
            SwapsTwoStatuses,
            SkipsAFlush,
            LosesSolicited,
            GivesASlotEarly,
            HandsOutTwice,
            LosesAnEvent,
            ReportsNothing,
            ForgetsToResize,
            FlushesSharedReceives,
            ForgetsTheRoute,
            IgnoresQueueKeys,
            ReachesALimitTwice,
            Rebinds,
            BindsOnce,
        ];
        controls(&ways, &FULL);
    }

    /// Those that break nothing of what is left out.
    #[test]
    fn a_dialect_finds_sabotage_too() {
        let ways = [SwapsTwoStatuses, SkipsAFlush, HandsOutTwice, LosesAnEvent, ForgetsToResize];
        controls(&ways, &SOFT_ROCE);
    }

    #[test]
    fn a_dialect_still_has_every_way_to_end() {
        let few = Plan { programs: 100, ..plan(&SOFT_ROCE) };
        let tally = run::<Model, Broken>(&few, |_| ()).unwrap();
        for status in [
            S::SUCCESS,
            S::LOC_PROT_ERR,
            S::WR_FLUSH_ERR,
            S::REM_ACCESS_ERR,
            S::REM_INV_REQ_ERR,
            S::RETRY_EXC_ERR,
            S::RNR_RETRY_EXC_ERR,
        ] {
            assert!(tally.count(status) > 0, "no request ends as {status}: {tally}");
        }
    }
}
