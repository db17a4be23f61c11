//! What each check does where no mutant is on: that it passes, how long it takes, and which mutants it reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::attempt::{AttemptError, Ended, On, attempt};
use crate::checks::Check;
use crate::workers;

/// What a check may take.
const LIMIT: Duration = Duration::from_secs(120);
const FILE: &str = "baseline.json";

/// What a check does by itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Known {
    /// How long it took.
    pub seconds: f64,
    /// The mutants that it reaches.
    pub reaches: BTreeSet<u32>,
}

/// What each check does by itself, in the order of the checks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Baseline {
    sources: u64,
    known: BTreeMap<String, Known>,
}

/// It can't be said what the checks do.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// One can't be run.
    #[error(transparent)]
    Attempt(#[from] AttemptError),
    /// Checks fail.
    #[error(
        "checks fail though no mutant is on, so they show nothing: {}; mend them first, or give the machine less to do",
        .0.join(", ")
    )]
    Fail(Vec<String>),
    /// Notes can't be kept.
    #[error("cannot write {path}: {error}")]
    Keep {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl Baseline {
    /// What was found before, if it was of these sources.
    pub fn load(target: &Path, sources: u64) -> Self {
        let text = fs::read(target.join(FILE)).unwrap_or_default();
        let old = serde_json::from_slice::<Self>(&text).ok().filter(|old| old.sources == sources);
        old.unwrap_or(Self { sources, known: BTreeMap::new() })
    }

    /// Runs the checks that nothing is known of, `jobs` at a time. One that fails is run once more when
    /// nothing else runs.
    pub fn complete(
        &mut self,
        checks: &[Check],
        target: &Path,
        mutants: usize,
        (jobs, tell): (usize, &(dyn Fn(usize, usize) + Sync)),
    ) -> Result<Vec<String>, BaselineError> {
        let unknown: Vec<&Check> =
            checks.iter().filter(|check| !self.known.contains_key(&check.to_string())).collect();
        let (found, failed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        workers::each(jobs, &unknown, |nth, &check| {
            tell(nth, unknown.len());
            match record(check, target, mutants)? {
                Some(known) => workers::push(&found, (check.to_string(), known)),
                None => workers::push(&failed, check),
            }
            Ok::<_, BaselineError>(true)
        })?;
        self.known.extend(workers::into_inner(found));
        let (mut unsteady, mut broken) = (Vec::new(), Vec::new());
        for check in workers::into_inner(failed) {
            match record(check, target, mutants)? {
                Some(known) => {
                    self.known.insert(check.to_string(), known);
                    unsteady.push(check.to_string());
                }
                None => broken.push(check.to_string()),
            }
        }
        self.keep(target)?;
        if broken.is_empty() { Ok(unsteady) } else { Err(BaselineError::Fail(broken)) }
    }

    /// What is known of these checks.
    #[cfg(test)]
    pub fn of_checks(known: impl Iterator<Item = (String, Known)>) -> Self {
        Self { sources: 0, known: known.collect() }
    }

    /// What is known of a check.
    pub fn of(&self, check: &Check) -> Known {
        self.known.get(&check.to_string()).cloned().unwrap_or_default()
    }

    /// Whether a check reaches a mutant.
    pub fn reaches(&self, check: &Check, mutant: u32) -> bool {
        self.known.get(&check.to_string()).is_some_and(|known| known.reaches.contains(&mutant))
    }

    fn keep(&self, target: &Path) -> Result<(), BaselineError> {
        let path = target.join(FILE);
        let text = serde_json::to_vec(self).unwrap_or_default();
        fs::write(&path, text).map_err(|error| BaselineError::Keep { path, error })
    }
}

/// Runs a check and records what it reaches; `None` if it fails.
fn record(check: &Check, target: &Path, mutants: usize) -> Result<Option<Known>, BaselineError> {
    let name = format!("reached.{:?}", std::thread::current().id());
    let path = target.join(name);
    let keep = |error| BaselineError::Keep { path: path.clone(), error };
    fs::write(&path, vec![0; mutants + 1]).map_err(keep)?;
    let (ended, taken) = attempt(check, On::Recording(&path), LIMIT)?;
    let bytes = fs::read(&path).map_err(keep)?;
    fs::remove_file(&path).map_err(keep)?;
    if ended != Ended::Passed {
        return Ok(None);
    }
    let reached = bytes.iter().zip(0..).filter(|(byte, _)| **byte != 0);
    let reaches = reached.map(|(_, number)| number).collect();
    Ok(Some(Known { seconds: taken.as_secs_f64(), reaches }))
}
