//! Threads of a model that are killed at a step of theirs, as processes that share memory can be: each store
//! is one, and each taking of a lock. Exists under loom alone.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

/// When the thread dies.
#[derive(Clone, Copy)]
enum Fate {
    Lives,
    /// After so many more steps.
    Dies(u32),
    /// What it does from here on does not happen.
    Dead,
}

loom::thread_local! {
    static FATE: Cell<Fate> = Cell::new(Fate::Lives);
}

/// What a killed thread unwinds with.
struct Killed;

/// Runs `life` until it comes to its `steps`th step, from 0, which does not happen any more; `None` if it
/// came so far.
///
/// # Panics
/// `life` does.
pub fn killed_at<R>(steps: u32, life: impl FnOnce() -> R) -> Option<R> {
    FATE.with(|fate| fate.set(Fate::Dies(steps)));
    let lived = panic::catch_unwind(AssertUnwindSafe(life));
    FATE.with(|fate| fate.set(Fate::Lives));
    lived.map_err(expect_killed).ok()
}

fn expect_killed(why: Box<dyn Any + Send>) {
    if !why.is::<Killed>() {
        panic::resume_unwind(why);
    }
}

/// Stands before each step. False if the step does not happen: the thread is dead, and being cleared away.
pub fn step() -> bool {
    match FATE.with(Cell::get) {
        Fate::Lives => true,
        Fate::Dead => false,
        Fate::Dies(0) => {
            FATE.with(|fate| fate.set(Fate::Dead));
            panic::resume_unwind(Box::new(Killed))
        }
        Fate::Dies(left) => {
            FATE.with(|fate| fate.set(Fate::Dies(left - 1)));
            true
        }
    }
}
