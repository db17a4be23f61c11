//! What became of each mutant, line by line, in `target/verify/mutants.jsonl`: after new tests only what was not noticed is
//! tried again.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::checks::Outcome;
use crate::plant::{Mutant, Name};

/// A line.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    mutant: &'a Mutant,
    #[serde(flatten)]
    outcome: &'a Outcome,
    seconds: f64,
}

/// What counts of a line in a later run.
#[derive(Deserialize)]
struct Known {
    #[serde(flatten)]
    name: Name,
    #[serde(flatten)]
    outcome: Outcome,
}

/// The file.
#[derive(Debug)]
pub struct Record(Mutex<File>);

impl Record {
    /// Opens the file. Emptied, if what older runs noticed does not count.
    pub fn open(path: &Path, counts: bool) -> Result<Self> {
        let cannot = || format!("cannot keep {}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(path)).with_context(cannot)?;
        let mut options = OpenOptions::new();
        options.create(true).append(counts).write(true).truncate(!counts);
        Ok(Self(Mutex::new(options.open(path).with_context(cannot)?)))
    }

    /// One more.
    pub fn add(&self, mutant: &Mutant, outcome: &Outcome, seconds: f64) -> Result<()> {
        let line = serde_json::to_string(&Line { mutant, outcome, seconds })?;
        // It begins with a line's end, since the last line of a run that was interrupted may lack its own.
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(format!("\n{line}").as_bytes())
            .context("cannot keep what became of a mutant")
    }
}

/// The mutants that older runs noticed, whatever has changed since, by the last line of each. One that was cut off is as if
/// it were not there.
pub fn noticed(path: &Path) -> BTreeSet<Name> {
    let mut noticed = BTreeSet::new();
    let lines = File::open(path).into_iter().flat_map(|file| BufReader::new(file).lines());
    for line in lines.map_while(Result::ok) {
        let Ok(Known { name, outcome }) = serde_json::from_str(&line) else { continue };
        match outcome {
            Outcome::Noticed { .. } => _ = noticed.insert(name),
            _ => _ = noticed.remove(&name),
        }
    }
    noticed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Kind;

    #[test]
    fn a_run_goes_on_with_what_an_older_one_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mutants.jsonl");
        let mutant = Mutant::numbered(7);
        let survived = Outcome::Survived { reached: 1, reached_by: vec!["t".into()] };
        let late = Outcome::Noticed { kind: Kind::Engine, by: "t".into(), late: true };
        for (counts, outcome, expected) in
            [(false, &survived, 0), (true, &late, 1), (false, &late, 1)]
        {
            Record::open(&path, counts).unwrap().add(&mutant, outcome, 0.5).unwrap();
            OpenOptions::new().append(true).open(&path).unwrap().write_all(b"\n{\"cut").unwrap();
            assert_eq!(noticed(&path).len(), expected, "{outcome:?}");
        }
    }
}
