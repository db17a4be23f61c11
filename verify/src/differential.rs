//! Random programs, run on two devices side by side: what they complete, queue by queue, and what their
//! memory holds then has to be equal, and every call has to be obeyed or refused alike.
//!
//! ```
//! use verify::differential::{Plan, run};
//! use verify::model::Model;
//!
//! // A device agrees with itself.
//! run::<Model, Model>(&Plan { programs: 20, seed: 1 }, |_| ()).unwrap();
//! ```
//!
//! A program that shows a difference is shrunk: steps, requests and numbers that are not needed are left
//! out, until what stays is small enough to be read.
//!
//! # What is not compared
//! Which of several reasons a request is refused for; when an overrun comes (O1), so there is none; how the
//! completions of different queues mix. What waits either waits for ever, or so short that it has ended
//! before the next step.

mod judge;
mod machine;
mod program;
mod strategy;

pub use self::judge::Difference;
pub use self::program::{
    Change, Data, EndShape, Op, Piece, Place, Program, Region, Request, Shape, Step,
};

use std::cell::{Cell, RefCell};
use std::time::Duration;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::device::Device;

/// How long a device may take for a step. Nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(20);
/// The same for a device that has been found to differ, and has to do so again and again.
const SHRINKING: Duration = Duration::from_millis(200);

/// How many programs, and which.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many.
    pub programs: u32,
    /// The same seed gives the same programs.
    pub seed: u64,
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

/// Runs so many programs on the reference `R` and on the device `D`; `progress` is told how many have
/// agreed.
///
/// # Errors
/// The first disagreement, shrunk.
pub fn run<R: Device, D: Device>(
    plan: &Plan,
    mut progress: impl FnMut(u32),
) -> Result<(), Box<Disagreement>> {
    let config = Config {
        cases: plan.programs,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&plan.seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let patience = Cell::new(PATIENCE);
    let (agreed, progress) = (Cell::new(0), RefCell::new(&mut progress));
    let result = runner.run(&strategy::program(), |program| {
        judge::compare::<R, D>(&program, patience.get()).map_err(|difference| {
            patience.set(SHRINKING);
            TestCaseError::fail(difference.to_string())
        })?;
        agreed.set(agreed.get() + 1);
        (progress.borrow_mut())(agreed.get());
        Ok(())
    });
    match result {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, program)) => {
            Err(Box::new(Disagreement { program, why: why.to_string() }))
        }
        Err(TestError::Abort(why)) => unreachable!("no program is rejected: {why}"),
    }
}
