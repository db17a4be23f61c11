//! Random programs, run on two devices: the completions of each queue, the content of memory, and the result of every
//! call must be equal.
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
//! A program that shows a difference is shrunk: steps, requests and numbers are removed as long as the difference remains.
//!
//! # What is not compared
//! - Which error a request gets if several apply.
//! - When an overrun happens ([O1](cq_core::contract#o1)): programs do not overrun queues.
//! - The order of completions of different queues.
//! - The result of a request whose memory is deregistered meanwhile.
//! - The content of a GRH.
//! - Which of two waiting queue pairs gets the next shared receive: programs do not wait there.
//!
//! Timeouts are infinite, or so short that they have passed before the next step. A device with known deviations has a
//! [`Dialect`], which lists what else is left out, and why.

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
    Change, Data, EndShape, MAIN, NamedSge, Op, Place, Program, Region, Request, SMALL, Shape,
    Step, Target,
};

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use cq_core::wc::WcStatus;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use self::seen::Completed;
use crate::device::Device;

/// The deadline of a step.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 20_000 });
/// The deadline while a difference is shrunk, for a device that has to reproduce it many times.
const SHRINKING: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 200 });
/// The number of smaller programs that are tried while shrinking.
const SHRINKS: u32 = if cfg!(test) { 150 } else { 20_000 };

/// How many programs, and which.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of programs.
    pub programs: u32,
    /// The same seed gives the same programs.
    pub seed: u64,
    /// What programs may do.
    pub dialect: &'static Dialect,
}

/// A program with different results on two devices.
#[derive(Debug, thiserror::Error)]
#[error("{why}\nby the program, shrunk: {program:#?}")]
pub struct Disagreement {
    /// The shrunk program.
    pub program: Program,
    /// The difference.
    pub why: String,
}

/// Statistics of the programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of programs.
    pub programs: u32,
    steps: usize,
    /// The number of completions by status.
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

    /// The number of completions with this status.
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

/// Runs programs on the reference `R` and on the device `D`. `progress` gets the number of programs that agreed.
///
/// # Errors
/// The first program with a difference, shrunk.
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
