//! Threads of a model that are killed at one of their steps, as processes that share memory can be. Each store, swap
//! and compare-exchange is a step. Exists under loom only.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

/// When a thread dies.
#[derive(Clone, Copy)]
enum Fate {
    Lives,
    /// After this many more steps.
    Dies(u32),
    /// Its further steps have no effect.
    Dead,
}

loom::thread_local! {
    static FATE: Cell<Fate> = Cell::new(Fate::Lives);
}

/// The panic payload of a killed thread.
struct Killed;

/// Runs `life` up to its step number `steps`, counted from 0, which has no effect any more. Returns `None` if `life`
/// reached that step.
///
/// # Panics
/// `life` panics.
pub fn killed_at<R>(steps: u32, life: impl FnOnce() -> R) -> Option<R> {
    FATE.with(|fate| fate.set(Fate::Dies(steps)));
    let lived = panic::catch_unwind(AssertUnwindSafe(life));
    FATE.with(|fate| fate.set(Fate::Lives));
    match lived {
        Err(why) if !why.is::<Killed>() => panic::resume_unwind(why),
        lived => lived.ok(),
    }
}

/// Called before each step. Returns `false` if the step must have no effect, because the thread is dead and unwinding.
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
