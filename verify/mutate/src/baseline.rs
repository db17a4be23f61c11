//! What each check does where no mutant is on: that it passes, how long it takes, and which mutants it reaches.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::attempt::{Ended, On, attempt};
use crate::checks::Check;
use crate::notes;
use crate::workers::{self, say};

/// What a check may take.
const LIMIT: Duration = Duration::from_secs(120);
const FILE: &str = "baseline.json";

/// What a check does by itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Known {
    /// The bytes of its program, hashed: another program, or another build of it, is measured anew.
    pub program: u64,
    /// How long it took.
    pub seconds: f64,
    /// The mutants that it reaches.
    pub reaches: BTreeSet<u32>,
}

/// What each check does by itself, by its name.
pub type Baseline = BTreeMap<String, Known>;

/// What these checks do: what was found before, if it was of these sources, and otherwise by running them, `jobs` at a time.
/// One that fails is run once more when nothing else runs.
pub fn measure(
    checks: &[Check],
    target: &Path,
    sources: u64,
    mutants: usize,
    jobs: usize,
) -> Result<Baseline> {
    let mut baseline: Baseline = notes::load(&target.join(FILE), sources).unwrap_or_default();
    let programs = programs(checks)?;
    let is_known = |check: &&Check| {
        baseline.get(&check.to_string()).is_some_and(|it| it.program == programs[&check.program])
    };
    let unknown: Vec<&Check> = checks.iter().filter(|check| !is_known(check)).collect();
    let mut broken = Vec::new();
    let record = |check: &&Check| record(check, programs[&check.program], target, mutants);
    let first = workers::map("checks without a mutant", jobs, &unknown, record)?;
    for (check, known) in unknown.iter().zip(first) {
        let known = match known {
            None => record(check)?.inspect(|_| say(format_args!("{check} failed once: no mutant"))),
            known => known,
        };
        match known {
            Some(known) => _ = baseline.insert(check.to_string(), known),
            None => broken.push(check.to_string()),
        }
    }
    notes::keep(&target.join(FILE), sources, &baseline)?;
    ensure!(
        broken.is_empty(),
        "checks fail though no mutant is on, so they show nothing: {}; mend them first, or give the machine less to do",
        broken.join(", ")
    );
    Ok(baseline)
}

/// The hash of each program's bytes.
fn programs(checks: &[Check]) -> Result<BTreeMap<&PathBuf, u64>> {
    let mut programs = BTreeMap::new();
    for Check { program, .. } in checks {
        if let Entry::Vacant(new) = programs.entry(program) {
            let bytes =
                fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            new.insert(hasher.finish());
        }
    }
    Ok(programs)
}

/// Runs a check and records what it reaches; `None` if it fails.
fn record(check: &Check, program: u64, target: &Path, mutants: usize) -> Result<Option<Known>> {
    let path = target.join(format!("reached.{:?}", std::thread::current().id()));
    let cannot = || format!("cannot record in {}", path.display());
    fs::write(&path, vec![0; mutants + 1]).with_context(cannot)?;
    let run = attempt(check, On::Recording(&path), LIMIT)?;
    let bytes = fs::read(&path).with_context(cannot)?;
    fs::remove_file(&path).with_context(cannot)?;
    let reached = bytes.iter().zip(0..).filter(|(byte, _)| **byte != 0);
    let reaches = reached.map(|(_, number)| number).collect();
    Ok((run.ended == Ended::Passed).then_some(Known { program, seconds: run.seconds, reaches }))
}
