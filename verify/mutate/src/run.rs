//! A run: planting, building, the baseline, the mutants, the report.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::Path;
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::baseline;
use crate::checks::{self, Check, Outcome};
use crate::compile::Copy;
use crate::hunt::Hunt;
use crate::kept::Kept;
use crate::plant::{Mutant, Planting, plant};
use crate::record::{self, Record};
use crate::report::Report;
use crate::sources::{self, CORE};
use crate::tree::Tree;
use crate::{attempt, controls, workers};

/// How many mutants are tried where that is not said.
const SAMPLE: usize = 200;

/// Does what is asked; whether nothing is to be mended.
pub fn run(arguments: &Arguments) -> Result<bool> {
    // The workspace, wherever this was called from.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let root = root.context("this package is in no workspace")?;
    let target = root.join("target/mutate");
    let made = std::fs::create_dir_all(&target);
    made.with_context(|| format!("cannot make the folder {}", target.display()))?;
    let cores = available_parallelism().map_or(1, usize::from);
    if arguments.controls {
        let jobs = arguments.jobs.unwrap_or(cores);
        return controls::run(root, &target.join("controls"), &arguments.only, jobs);
    }
    // Tests wait for timers, too.
    let jobs = arguments.jobs.unwrap_or(cores + 1);
    let tree = Tree::new(root, &target.join("tree"))?;
    let planting = plant(&sources::read(root)?);
    if arguments.list {
        return list(&planting, arguments).map(|()| true);
    }
    let kept = Kept::load(root)?;
    let mut copy = Copy::new(&tree, &planting, &target)?;
    let mut checks = checks::build(&mut copy, arguments.long)?;
    let is_out = |check: &Check| arguments.without.iter().any(|text| check.name.contains(text));
    checks.retain(|check| !is_out(check));
    attempt::be_careful();
    let count = planting.mutants.len();
    let baseline = baseline::measure(&checks, &target, copy.sources, count, jobs)?;
    let mutants: Vec<&Mutant> =
        planting.mutants.iter().filter(|mutant| !copy.refused.contains(&mutant.number)).collect();
    let wanted = wanted(&mutants, &kept, arguments);
    ensure!(!wanted.is_empty(), "there is no such mutant: --list names all of them");
    let hunt = Hunt::new(&checks, &baseline, &kept);
    let file = root.join("target/verify/mutants.jsonl");
    let noticed = if arguments.again { record::noticed(&file) } else { Default::default() };
    let wanted: Vec<_> = wanted.into_iter().filter(|it| !noticed.contains(&it.name)).collect();
    if wanted.is_empty() {
        writeln!(io::stdout(), "all of them were noticed before: nothing is left to try")?;
        return Ok(true);
    }
    let record = Record::open(&file, arguments.again)?;
    let outcomes = workers::map("mutants", jobs, &wanted, |mutant| {
        let start = Instant::now();
        let outcome = hunt.try_out(mutant)?;
        record.add(mutant, &outcome, start.elapsed().as_secs_f64())?;
        Ok(outcome)
    })?;
    let mut tried: Vec<(&Mutant, Outcome)> = wanted.into_iter().zip(outcomes).collect();
    tried.sort_by_key(|(mutant, _)| mutant.number);
    let report = Report { kept: &kept, planted: &mutants, tried, checks: checks.len() };
    let (table, complaints, summary) = (report.table(), report.complaints(), report.summary());
    writeln!(io::stdout(), "{table}\n\n{complaints}{summary}")?;
    Ok(report.is_well())
}

fn list(planting: &Planting, arguments: &Arguments) -> Result<()> {
    let mut out = io::stdout().lock();
    for mutant in planting.mutants.iter().filter(|mutant| arguments.takes(mutant)) {
        let Mutant { number, line, operator, name, .. } = mutant;
        let (file, function, change) = (&name.file, &name.function, &name.change);
        writeln!(out, "{number} {operator} {file}:{line} {function}: {change}")?;
    }
    Ok(())
}

/// What is tried: all in the order of the sources, a sample of them, or some of the engine's at random, of those that its
/// tests are to notice.
fn wanted<'a>(mutants: &[&'a Mutant], kept: &Kept, arguments: &Arguments) -> Vec<&'a Mutant> {
    let mut chosen = mutants.to_owned();
    chosen.retain(|mutant| arguments.takes(mutant));
    if !arguments.long {
        chosen.retain(|mutant| {
            let is_for_loom = mutant.operator.is_for_loom();
            mutant.area == CORE && !is_for_loom && !kept.is_for_all_checks(mutant)
        });
    }
    if arguments.again {
        chosen.retain(|mutant| !kept.explains(mutant));
    }
    let most = arguments.sample.or_else(|| (!arguments.long).then_some(SAMPLE));
    if let Some(most) = most {
        shuffle(&mut chosen, arguments.seed);
        chosen.truncate(most);
    }
    chosen
}

/// Puts them into an order that the seed says: each one is as likely as any other to be among the first.
fn shuffle(mutants: &mut [&Mutant], seed: u64) {
    mutants.sort_by_cached_key(|mutant| {
        let mut hasher = DefaultHasher::new();
        (seed, mutant.number).hash(&mut hasher);
        hasher.finish()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64) -> Vec<u32> {
        let mutants: Vec<_> = (1..=5).map(Mutant::numbered).collect();
        let mut shuffled: Vec<_> = mutants.iter().collect();
        shuffle(&mut shuffled, seed);
        shuffled.iter().map(|mutant| mutant.number).collect()
    }

    #[test]
    fn a_seed_gives_one_order_of_all_and_any_mutant_comes_first_by_some_seed() {
        assert_eq!(order(1), order(1));
        let mut sorted = order(1);
        sorted.sort_unstable();
        assert_eq!(sorted, [1, 2, 3, 4, 5]);
        let first: std::collections::BTreeSet<u32> = (0..100).map(|seed| order(seed)[0]).collect();
        assert_eq!(first.len(), 5);
    }
}
