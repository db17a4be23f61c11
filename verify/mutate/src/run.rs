//! A run: planting, building, the baseline, the mutants, the report.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::attempt::{self, AttemptError};
use crate::baseline::{Baseline, BaselineError};
use crate::checks::{self, Check, ChecksError};
use crate::choose::{Filter, shuffled};
use crate::compile::{CompileError, Copy};
use crate::constants::Constants;
use crate::controls::{self, ControlsError};
use crate::hunt::{Hunt, Pass};
use crate::kept::{Kept, KeptError};
use crate::outcome::Outcome;
use crate::plant::{Knowledge, Mutant, Name, Operator, Planting, plant};
use crate::progress::{bar, say, tell};
use crate::record::{Record, RecordError};
use crate::report::Report;
use crate::signatures::Signatures;
use crate::sources::{self, Area, SourceError};
use crate::tree::{Tree, TreeError};
use crate::workers;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error(transparent)]
    Checks(#[from] ChecksError),
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    #[error(transparent)]
    Attempt(#[from] AttemptError),
    #[error(transparent)]
    Kept(#[from] KeptError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Controls(#[from] ControlsError),
    #[error("cannot report")]
    Output(#[from] io::Error),
    #[error("cannot make the folder {path}: {error}")]
    Folder { path: PathBuf, error: io::Error },
    #[error("there is no such mutant: --list names all of them")]
    None,
}

/// The workspace, wherever this was called from.
fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// Does what is asked; whether nothing is to be mended.
pub fn run(arguments: &Arguments) -> Result<bool, RunError> {
    let (root, target) = (root(), root().join("target/mutate"));
    std::fs::create_dir_all(&target)
        .map_err(|error| RunError::Folder { path: target.clone(), error })?;
    if arguments.controls {
        let jobs = arguments.jobs.unwrap_or_else(cores);
        return Ok(controls::run(root, &target.join("controls"), &arguments.only, jobs)?);
    }
    let tree = Tree::new(root, &target.join("tree"))?;
    let planting = planting(root, &tree)?;
    if arguments.list {
        return list(&planting, &arguments.filter()).map(|()| true);
    }
    let kept = Kept::load(root)?;
    let mut copy = Copy::new(&tree, &planting, &target)?;
    let (checks, more) = build(&mut copy, arguments)?;
    attempt::bound_memory();
    attempt::clear_when_interrupted();
    let jobs = arguments.jobs.unwrap_or_else(jobs);
    let mut baseline = Baseline::load(&target, copy.sources());
    measure(&mut baseline, &checks, &target, (planting.mutants.len(), jobs))?;
    let mutants: Vec<&Mutant> =
        planting.mutants.iter().filter(|mutant| !copy.refused.contains(&mutant.number)).collect();
    let deadline =
        (!arguments.long).then(|| Instant::now() + Duration::from_secs(arguments.seconds));
    let hunt = Hunt::new((&checks, &more), &baseline, &kept, deadline);
    let path = root.join("target/verify/mutants.jsonl");
    let (record, known) = Record::open(&path, copy.sources(), arguments.old())?;
    let wanted = wanted(&mutants, &kept, arguments);
    if wanted.is_empty() {
        return Err(RunError::None);
    }
    let mut tried = try_all(&wanted, &known, &hunt, (&record, jobs))?;
    tried.sort_by_key(|(mutant, _)| mutant.number);
    let mut stale = kept.gone(mutants.iter().copied());
    stale.extend(tried.iter().filter_map(|(mutant, outcome)| kept.contradicted(mutant, outcome)));
    let checks = checks.len() + more.len();
    let report = Report { kept: &kept, planted: &mutants, tried, stale, checks };
    let (table, complaints, summary) = (report.table(), report.complaints(), report.summary());
    writeln!(io::stdout(), "{table}\n\n{complaints}{summary}")?;
    Ok(report.is_well())
}

/// The checks, but for those that are to be left out.
fn build(copy: &mut Copy<'_>, arguments: &Arguments) -> Result<(Vec<Check>, Vec<Check>), RunError> {
    let start = Instant::now();
    let (mut checks, more) = checks::build(copy, arguments.long, |what| tell(what, start))?;
    let is_out = |check: &Check| arguments.without.iter().any(|text| check.name.contains(text));
    checks.retain(|check| !is_out(check));
    tell("built", start);
    Ok((checks, more))
}

fn planting(root: &Path, tree: &Tree) -> Result<Planting, RunError> {
    let mut constants = Constants::default();
    // What is no Rust, cargo will say.
    tree.rust()?.iter().filter_map(|(_, text)| text.parse().ok()).for_each(|it| constants.add(it));
    constants.close();
    let sources = sources::read(root)?;
    let mut signatures = Signatures::new();
    sources.iter().for_each(|source| signatures.add(&source.syntax));
    Ok(plant(&sources, &Knowledge { constants, signatures }))
}

fn list(planting: &Planting, filter: &Filter) -> Result<(), RunError> {
    let mut out = io::stdout().lock();
    for mutant in planting.mutants.iter().filter(|mutant| filter.takes(mutant)) {
        let Mutant { number, line, operator, name, .. } = mutant;
        let (file, function, change) = (&name.file, &name.function, &name.change);
        writeln!(out, "{number} {operator} {file}:{line} {function}: {change}")?;
    }
    Ok(())
}

/// What is tried: all in the order of the sources, a sample of them, or some of the engine's at random, of those that its
/// tests are to notice.
fn wanted<'a>(mutants: &[&'a Mutant], kept: &Kept, arguments: &Arguments) -> Vec<&'a Mutant> {
    let filter = arguments.filter();
    let chosen = mutants.iter().copied().filter(|mutant| filter.takes(mutant));
    if let Some(count) = arguments.sample {
        let mut sample = shuffled(chosen.collect(), arguments.seed);
        sample.truncate(count);
        return sample;
    }
    if arguments.long {
        return chosen.filter(|mutant| !(arguments.again && kept.explains(mutant))).collect();
    }
    let quick = |mutant: &&Mutant| {
        let for_models = mutant.operator.is_for_loom() || mutant.operator == Operator::Site;
        mutant.area == Area::Core && !for_models && !kept.is_for_all_checks(mutant)
    };
    shuffled(chosen.filter(quick).collect(), arguments.seed)
}

fn jobs() -> usize {
    // Tests wait for timers, too.
    cores() + 1
}

fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

fn measure(
    baseline: &mut Baseline,
    checks: &[Check],
    target: &Path,
    (mutants, jobs): (usize, usize),
) -> Result<(), RunError> {
    let bar = bar("checks without a mutant", checks.len());
    let tell = |nth: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(nth as u64);
    };
    let unsteady = baseline.complete(checks, target, mutants, (jobs, &tell))?;
    bar.finish_and_clear();
    for check in unsteady {
        say(format_args!("{check} failed once though no mutant was on"));
    }
    Ok(())
}

type Tried<'a> = Vec<(&'a Mutant, Outcome)>;

/// Tries what is not known yet: all on quick checks, then what is left on slow ones.
fn try_all<'a>(
    mutants: &[&'a Mutant],
    known: &BTreeMap<Name, Outcome>,
    hunt: &Hunt<'_>,
    (record, jobs): (&Record, usize),
) -> Result<Tried<'a>, RunError> {
    let mut tried: Tried<'_> = Vec::new();
    let (mut new, mut undecided) = (Vec::new(), Vec::new());
    for &mutant in mutants {
        match known.get(&mutant.name) {
            None => new.push(mutant),
            Some(Outcome::Undecided) => undecided.push(mutant),
            Some(outcome) => tried.push((mutant, outcome.clone())),
        }
    }
    for (outcome, mutant) in try_pass(&new, Pass::Quick, hunt, (record, jobs))? {
        match outcome {
            Outcome::Undecided => undecided.push(mutant),
            outcome => tried.push((mutant, outcome)),
        }
    }
    if hunt.is_share() {
        tried.extend(undecided.into_iter().map(|mutant| (mutant, Outcome::Undecided)));
        return Ok(tried);
    }
    let slow = try_pass(&undecided, Pass::Slow, hunt, (record, jobs))?;
    tried.extend(slow.into_iter().map(|(outcome, mutant)| (mutant, outcome)));
    Ok(tried)
}

fn try_pass<'a>(
    mutants: &[&'a Mutant],
    pass: Pass,
    hunt: &Hunt<'_>,
    (record, jobs): (&Record, usize),
) -> Result<Vec<(Outcome, &'a Mutant)>, RunError> {
    let what = match pass {
        Pass::Quick => "mutants on quick checks",
        Pass::Slow => "mutants on slow checks",
    };
    let (bar, tried) = (bar(what, mutants.len()), Mutex::new(Vec::new()));
    workers::each(jobs, mutants, |_, &mutant| {
        if !hunt.goes_on() {
            return Ok(false);
        }
        let start = Instant::now();
        let outcome = hunt.try_out(mutant, pass)?;
        record.add(mutant, &outcome, start.elapsed().as_secs_f64())?;
        workers::push(&tried, (outcome, mutant));
        bar.inc(1);
        Ok::<_, RunError>(true)
    })?;
    bar.finish_and_clear();
    Ok(workers::into_inner(tried))
}
