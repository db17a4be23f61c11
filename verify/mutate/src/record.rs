//! What became of each mutant, line by line, in `target/verify/mutants.jsonl`: a run that was interrupted goes on
//! from there, and after new tests only what was not noticed is tried again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;
use crate::plant::{Mutant, Name, Operator};
use crate::sources::Area;
use crate::workers::lock;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    sources: u64,
    number: u32,
    line: usize,
    operator: Operator,
    area: Area,
    seconds: f64,
    #[serde(flatten)]
    name: Name,
    #[serde(flatten)]
    outcome: Outcome,
}

/// What of an older run counts in a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    /// Nothing: the file is emptied.
    Nothing,
    /// All that it found of the same sources.
    OfTheseSources,
    /// Which mutants were noticed, whatever has changed since.
    Noticed,
}

/// The file.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: Mutex<File>,
    sources: u64,
}

/// The file can't be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep {path}: {error}")]
pub struct RecordError {
    path: PathBuf,
    error: io::Error,
}

impl Record {
    /// Opens the file, and returns what counts of it.
    pub fn open(
        path: &Path,
        sources: u64,
        old: Old,
    ) -> Result<(Self, BTreeMap<Name, Outcome>), RecordError> {
        let failed = |error| RecordError { path: path.to_owned(), error };
        fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
        let mut known = read(path);
        known.retain(|_, line| match old {
            Old::Nothing => false,
            Old::OfTheseSources => line.sources == sources,
            Old::Noticed => matches!(line.outcome, Outcome::Noticed { .. }),
        });
        let known = known.into_iter().map(|(name, line)| (name, line.outcome)).collect();
        let mut options = OpenOptions::new();
        let is_new = old == Old::Nothing;
        options.create(true).append(!is_new).write(true).truncate(is_new);
        let mut file = options.open(path).map_err(failed)?;
        if !is_new {
            // Or what comes next would end a line that was cut off.
            file.write_all(b"\n").map_err(failed)?;
        }
        let file = Mutex::new(file);
        Ok((Self { path: path.to_owned(), file, sources }, known))
    }

    /// One more.
    pub fn add(&self, mutant: &Mutant, outcome: &Outcome, seconds: f64) -> Result<(), RecordError> {
        let Mutant { number, name, line, operator, area } = mutant.clone();
        let (sources, outcome) = (self.sources, outcome.clone());
        let line = Line { sources, number, line, operator, area, seconds, name, outcome };
        let failed = |error| RecordError { path: self.path.clone(), error };
        let mut text = serde_json::to_vec(&line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        lock(&self.file).write_all(&text).map_err(failed)
    }
}

/// The last line of each mutant. One that was cut off is as if it were not there.
fn read(path: &Path) -> BTreeMap<Name, Line> {
    let lines = File::open(path).into_iter().flat_map(|file| BufReader::new(file).lines());
    let lines = lines.map_while(Result::ok);
    let lines = lines.filter_map(|line| serde_json::from_str::<Line>(&line).ok());
    lines.map(|line| (line.name.clone(), line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Kind;

    #[test]
    fn a_run_goes_on_with_what_an_older_one_of_the_same_sources_found() {
        let path = std::env::temp_dir().join(format!("mutants-{}.jsonl", std::process::id()));
        let name = Name { file: "a.rs".into(), function: "f".into(), change: "x".into(), nth: 1 };
        let (number, line, operator, area) = (7, 3, Operator::Drop, Area::Core);
        let mutant = Mutant { number, name: name.clone(), line, operator, area };
        let survived = Outcome::Survived { reached: 1, reached_by: vec!["t".into()] };
        let (record, known) = Record::open(&path, 5, Old::Nothing).unwrap();
        assert!(known.is_empty());
        record.add(&mutant, &survived, 0.5).unwrap();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"cut").unwrap();
        let open = |sources, old| Record::open(&path, sources, old).unwrap();
        assert_eq!(open(5, Old::OfTheseSources).1.get(&name), Some(&survived));
        assert!(open(6, Old::OfTheseSources).1.is_empty());
        assert!(open(5, Old::Noticed).1.is_empty(), "it is tried again");
        let noticed = Outcome::Noticed { kind: Kind::Engine, by: "t".into(), late: false };
        open(6, Old::Noticed).0.add(&mutant, &noticed, 0.5).unwrap();
        assert_eq!(open(7, Old::Noticed).1.get(&name), Some(&noticed));
        fs::remove_file(path).unwrap();
    }
}
