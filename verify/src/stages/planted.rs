//! Faults that are planted one at a time in a copy of the workspace: there the stage that claims to find such a fault must
//! fail, and say what is expected.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::{env, io};

use serde::Deserialize;
use walkdir::WalkDir;

use super::{last_words, named};
use crate::run::{EXPECTED, Job, ROOT, Stop, log_path, root};

/// Where the lists are, that of the fuzz targets beside them, and where the copy is; relative to [`root`].
const LISTS: [&str; 2] = ["verify/planted.toml", "verify/fuzz/planted.toml"];
const COPY: &str = "target/planted";

/// A fault.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    /// What is wrong, in words.
    what: String,
    /// The stage that must find it.
    stage: String,
    file: String,
    /// The right text, which the file has once.
    of: String,
    /// The wrong one.
    instead: String,
    /// What the stage's log must have.
    says: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    fault: Vec<Fault>,
}

/// Sees whether each fault can be planted, and plants it with `--long`.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let mut faults = Vec::new();
    for list in LISTS {
        let List { fault } = toml::from_str(&fs::read_to_string(root().join(list))?)
            .map_err(|error| Stop::Failed(format!("{list} is wrong: {error}")))?;
        faults.extend(fault);
    }
    let copy = root().join(COPY);
    for fault in &faults {
        let text = fault.planted(&fs::read_to_string(root().join(&fault.file))?)?;
        if job.long {
            mirror(&copy)?;
            fs::write(copy.join(&fault.file), text)?;
            fault.must_be_found(&copy, job)?;
        }
    }
    let found = if job.long { "was found" } else { "can be planted" };
    Ok(format!("each of {} faults {found}", faults.len()))
}

impl Fault {
    /// The text of the file with the fault.
    fn planted(&self, text: &str) -> Result<String, Stop> {
        let Self { what, file, of, instead, .. } = self;
        named(&self.stage).map_err(Stop::Failed)?;
        match text.matches(of).count() {
            1 => Ok(text.replace(of, instead)),
            count => {
                let why = format!("\"{what}\" can't be planted: {file} has {count} times: {of}");
                Err(Stop::Failed(why))
            }
        }
    }

    /// Runs its stage in the copy.
    fn must_be_found(&self, copy: &Path, job: &mut Job) -> Result<(), Stop> {
        let log = copy.join(log_path(&self.stage));
        fs::write(&log, "")?;
        let mut stage = Command::new(env::current_exe()?);
        stage.args(["--alone", &self.stage, "--show"]).env(ROOT, copy).env(EXPECTED, &self.says);
        let (status, said) = job.attempt(&format!("{}: {}", self.stage, self.what), &mut stage)?;
        let log = String::from_utf8_lossy(&fs::read(log)?).into_owned();
        let why = if status.success() {
            "the stage passed"
        } else if !(said.contains(&self.says) || log.contains(&self.says)) {
            "the stage failed for another reason"
        } else {
            return Ok(());
        };
        let says = &self.says;
        Err(Stop::Failed(format!("{}, must say {says:?}: {why}{}", self.what, last_words(&log))))
    }
}

/// Makes the copy what the workspace is, but for what is built. Files that are alike are left alone, since cargo goes by
/// their times.
fn mirror(copy: &Path) -> io::Result<()> {
    let is_source = |name: &str| !["target", ".git"].contains(&name);
    let files = WalkDir::new(root()).into_iter();
    for entry in files.filter_entry(|entry| is_source(&entry.file_name().to_string_lossy())) {
        let entry = entry?;
        let to = copy.join(entry.path().strip_prefix(root()).expect("it is walked"));
        if entry.file_type().is_dir() {
            fs::create_dir_all(to)?;
        } else if fs::read(&to).ok() != Some(fs::read(entry.path())?) {
            fs::copy(entry.path(), to)?;
        }
    }
    fs::create_dir_all(copy.join("target/verify"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_not_there_once_is_a_fault_of_the_list() {
        let fault = |stage: &str| Fault {
            what: "it waits".into(),
            stage: stage.into(),
            file: "a.rs".into(),
            of: "look()".into(),
            instead: "sleep()".into(),
            says: "hung".into(),
        };
        assert_eq!(fault("miri").planted("{ look() }").unwrap(), "{ sleep() }");
        for text in ["", "look() + look()"] {
            let why = fault("miri").planted(text).unwrap_err().to_string();
            assert!(why.contains("\"it waits\" can't be planted: a.rs has"), "{why}");
        }
        assert!(fault("mirror").planted("look()").is_err(), "no stage");
    }
}
