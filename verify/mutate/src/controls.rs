//! Controls: wrong texts for steps that a protocol cannot do without, by which models show that they would notice. A
//! control stands in `verify/controls.toml` and not in the sources, which hold the right algorithm alone. It is planted in a
//! copy of the workspace of its own, where it is chosen as a mutant is, so that all of them cost one build.
//!
//! ```toml
//! [[control]]
//! name = "NeverWeaken"
//! why = "a weaker arm leaves a stronger one in force"
//! file = "cq-core/src/queue/arm.rs"
//! of = "armed < wanted"    # an expression, or statements; there exactly once
//! instead = "true"         # the same; nothing, where a statement is to be missing
//!
//! [[control.fails]]
//! test = "arm::n04_arming_again_never_weakens"
//! models = ["any, then solicited"]    # each by itself; the whole test, where it is not said
//! expects = "lost wake-up"            # in its first panic
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `list` | the list, and what is wrong with an entry |
//! | `place` | where an entry is planted, and how |
//! | `trial` | a model with a control, or with none, and what is to become of it |

use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use crate::attempt::{self, AttemptError};
use crate::checks::{self, Check, ChecksError};
use crate::compile::{CompileError, Copy, World};
use crate::plant::Planting;
use crate::progress::{bar, tell};
use crate::tree::{Tree, TreeError};
use crate::workers;

mod list;
mod place;
mod trial;

use self::list::{Control, Flaw, PATH};
use self::trial::{Report, Trial, Tried};

/// The controls can't be tried.
#[derive(Debug, thiserror::Error)]
pub enum ControlsError {
    /// The list, or an entry, is wrong.
    #[error("{PATH} is wrong")]
    Flaw(#[from] Flaw),
    /// The copy can't be written.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// It can't be built.
    #[error("the controls of {PATH} can't be compiled")]
    Compile(#[from] CompileError),
    /// The models can't be listed.
    #[error(transparent)]
    Checks(#[from] ChecksError),
    /// A model can't be run.
    #[error(transparent)]
    Attempt(#[from] AttemptError),
    /// Nobody reads the report.
    #[error("cannot report")]
    Output(#[from] io::Error),
}

/// Tries the controls with one of these texts in their names, each on the models that it names; whether all fail as
/// they must, and hold without.
pub fn run(
    root: &Path,
    target: &Path,
    only: &[String],
    jobs: usize,
) -> Result<bool, ControlsError> {
    let start = Instant::now();
    let controls = list::load(root)?;
    let models = build(root, target, &controls, start)?;
    let built = start.elapsed();
    let trials = trial::all(&controls, &models, only)?;
    attempt::bound_memory();
    attempt::clear_when_interrupted();
    let report = Report { tried: try_all(&trials, jobs)?, built, taken: start.elapsed() };
    let (table, complaints, summary) = (report.table(), report.complaints(), report.summary());
    writeln!(io::stdout(), "{table}\n\n{complaints}{summary}")?;
    Ok(report.is_well())
}

/// The models of a copy with all controls in.
fn build(
    root: &Path,
    target: &Path,
    controls: &[Control],
    start: Instant,
) -> Result<Vec<Check>, ControlsError> {
    let planting = Planting::of(place::plant(root, controls)?);
    let tree = Tree::new(root, &target.join("tree"))?;
    let copy = Copy::new(&tree, &planting, target)?;
    tell("building the loom models with the controls", start);
    let mut models = Vec::new();
    for artifact in copy.build_whole(World::Loom, &checks::MODELS)? {
        models.extend(checks::models_of(&artifact)?);
    }
    tell("built", start);
    Ok(models)
}

fn try_all<'a>(trials: &'a [Trial<'a>], jobs: usize) -> Result<Vec<Tried<'a>>, AttemptError> {
    let (bar, tried) = (bar("models", trials.len()), Mutex::new(Vec::new()));
    let trials: Vec<_> = trials.iter().collect();
    workers::each(jobs, &trials, |nth, &trial| {
        workers::push(&tried, (nth, trial.run()?));
        bar.inc(1);
        Ok::<_, AttemptError>(true)
    })?;
    bar.finish_and_clear();
    let mut tried = workers::into_inner(tried);
    tried.sort_by_key(|(nth, _)| *nth);
    Ok(tried.into_iter().map(|(_, tried)| tried).collect())
}
