//! Building the mutated copy. A mutant may be something that the compiler refuses: what it says is traced back to the
//! mutants that stand there, these are left out, and it is asked again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::plant::{Planting, Rendered};
use crate::tree::{Tree, TreeError};

/// As often as it is asked at most.
const ROUNDS: usize = 20;

/// For whom the copy is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// Tests.
    Normal,
    /// Loom models.
    Loom,
}

impl World {
    const fn flags(self) -> &'static str {
        match self {
            Self::Normal => "--cap-lints=allow",
            Self::Loom => "--cap-lints=allow --cfg loom",
        }
    }

    const fn folder(self) -> &'static str {
        match self {
            Self::Normal => "build",
            Self::Loom => "loom",
        }
    }
}

/// The copy can't be built.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The copy can't be written.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Cargo can't be run.
    #[error("cannot run cargo: {0}")]
    Cargo(io::Error),
    /// The compiler refuses something that is not a mutant's.
    #[error(
        "the mutated copy does not compile, and no mutant explains it; does the workspace? {0}"
    )]
    Unexplained(String),
    /// It goes on refusing.
    #[error("the mutated copy does not compile after {ROUNDS} rounds of leaving mutants out: {0}")]
    Endless(String),
    /// The compiler refuses something where nothing can be left out.
    #[error("the copy does not compile: {0}")]
    Refused(String),
    /// What was found can't be kept.
    #[error("cannot keep {path}: {error}")]
    Keep {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A program that was built.
#[derive(Clone, Debug, Deserialize)]
pub struct Artifact {
    /// What it was built from.
    pub target: Target,
    /// Where the package is.
    pub manifest_path: PathBuf,
    /// Where the program is.
    pub executable: Option<PathBuf>,
    /// How it was built.
    pub profile: Profile,
}

/// What a program was built from.
#[derive(Clone, Debug, Deserialize)]
pub struct Target {
    /// What it is called.
    pub name: String,
    /// `lib`, `test`, `bin`.
    pub kind: Vec<String>,
}

/// How a program was built.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Profile {
    /// As a test.
    pub test: bool,
}

#[derive(Deserialize)]
#[serde(tag = "reason")]
enum Message {
    #[serde(rename = "compiler-artifact")]
    Built(Artifact),
    #[serde(rename = "compiler-message")]
    Said { message: Diagnostic },
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    rendered: Option<String>,
    spans: Vec<Place>,
}

impl Diagnostic {
    /// As the compiler shows it.
    fn text(&self) -> String {
        self.rendered.clone().unwrap_or_else(|| self.message.clone())
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Place {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
    expansion: Option<Box<Expansion>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Expansion {
    span: Place,
}

/// Which mutants the compiler refuses, and of which sources that was found.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Found {
    sources: u64,
    refused: BTreeSet<u32>,
}

/// The copy, and what is left out of it.
#[derive(Debug)]
pub struct Copy<'a> {
    tree: &'a Tree,
    planting: &'a Planting,
    target: &'a Path,
    /// Mutants that do not compile.
    pub refused: BTreeSet<u32>,
    mutated: Vec<(String, Rendered)>,
    sources: u64,
}

impl<'a> Copy<'a> {
    /// Writes the copy, without what is known not to compile.
    pub fn new(
        tree: &'a Tree,
        planting: &'a Planting,
        target: &'a Path,
    ) -> Result<Self, CompileError> {
        let sources = fingerprint(planting);
        let known = fs::read(target.join(FOUND)).ok();
        let known = known.and_then(|text| serde_json::from_slice::<Found>(&text).ok());
        let refused = known.filter(|found| found.sources == sources);
        let refused = refused.map(|found| found.refused).unwrap_or_default();
        let mutated = tree.write(planting, &refused)?;
        Ok(Self { tree, planting, target, refused, mutated, sources })
    }

    /// Runs `cargo` with these arguments in the copy until it compiles.
    pub fn build(
        &mut self,
        world: World,
        arguments: &[&str],
        mut tell: impl FnMut(&str),
    ) -> Result<Vec<Artifact>, CompileError> {
        let mut last = String::new();
        for _ in 0..ROUNDS {
            let (artifacts, errors) = self.cargo(world, arguments)?;
            if errors.is_empty() {
                self.keep()?;
                return Ok(artifacts);
            }
            let before = self.refused.len();
            for error in &errors {
                self.refuse(error);
            }
            last = errors[0].text();
            if self.refused.len() == before {
                return Err(CompileError::Unexplained(last));
            }
            tell(&format!("{} mutants do not compile", self.refused.len()));
            self.mutated = self.tree.write(self.planting, &self.refused)?;
        }
        Err(CompileError::Endless(last))
    }

    /// Runs `cargo` with these arguments in the copy, of which nothing is left out.
    pub fn build_whole(
        &self,
        world: World,
        arguments: &[&str],
    ) -> Result<Vec<Artifact>, CompileError> {
        let (artifacts, errors) = self.cargo(world, arguments)?;
        errors.first().map_or(Ok(artifacts), |error| Err(CompileError::Refused(error.text())))
    }

    fn cargo(
        &self,
        world: World,
        arguments: &[&str],
    ) -> Result<(Vec<Artifact>, Vec<Diagnostic>), CompileError> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command.args(arguments).args(["--locked", "--message-format=json"]);
        command.current_dir(self.tree.path()).stdin(Stdio::null());
        command.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", world.flags());
        command.env("CARGO_TARGET_DIR", self.target.join(world.folder()));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.as_mut().map_err(|error| CompileError::Cargo(copied(error)))?;
        let noise =
            child.stderr.take().map(|noise| std::thread::spawn(|| io::read_to_string(noise)));
        let (mut artifacts, mut errors) = (Vec::new(), Vec::new());
        for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            match serde_json::from_str(&line.map_err(CompileError::Cargo)?) {
                Ok(Message::Built(artifact)) => artifacts.push(artifact),
                Ok(Message::Said { message }) if message.level == "error" => {
                    errors.push(message);
                }
                _ => {}
            }
        }
        let status = child.wait().map_err(CompileError::Cargo)?;
        let said = noise.and_then(|noise| noise.join().ok()).and_then(Result::ok);
        if !status.success() && errors.is_empty() {
            return Err(CompileError::Unexplained(said.unwrap_or_default()));
        }
        Ok((artifacts, errors))
    }

    /// Leaves out what an error is about: the mutants at its spans, or else all of the function there.
    fn refuse(&mut self, error: &Diagnostic) {
        let (primary, others): (Vec<_>, Vec<_>) =
            error.spans.iter().partition(|place| place.is_primary);
        for places in [primary, others] {
            let found: Vec<u32> = places.iter().flat_map(|place| self.mutants_at(place)).collect();
            if !found.is_empty() {
                self.refused.extend(found);
                return;
            }
        }
        let near: Vec<u32> =
            error.spans.iter().flat_map(|place| self.mutants_near(place)).collect();
        self.refused.extend(near);
    }

    /// The innermost mutant around a place, or else those within it.
    fn mutants_at(&self, place: &Place) -> Vec<u32> {
        let Some(places) = self.places(place) else {
            let outside = place.expansion.as_ref();
            return outside.map(|it| self.mutants_at(&it.span)).unwrap_or_default();
        };
        let Range { start, end } = place.byte_start..place.byte_end;
        let around = places.iter().filter(|(_, at)| at.start <= start && end <= at.end);
        if let Some((mutant, _)) = around.min_by_key(|(_, at)| at.len()) {
            return vec![*mutant];
        }
        let within = places.iter().filter(|(_, at)| start <= at.start && at.end <= end);
        within.map(|(mutant, _)| *mutant).collect()
    }

    /// Those of the same line, or else of the function.
    fn mutants_near(&self, place: &Place) -> Vec<u32> {
        let Some((path, file)) = self.mutated.iter().find(|(path, _)| *path == place.file_name)
        else {
            return Vec::new();
        };
        let line = file.text[..place.byte_start.min(file.text.len())].matches('\n').count();
        let Some(planted) = self.planting.files.iter().find(|file| file.path == *path) else {
            return Vec::new();
        };
        let start = planted.text.split_inclusive('\n').take(line).map(str::len).sum::<usize>();
        let functions = planted.functions.iter().filter(|body| body.contains(&start));
        let Some(function) = functions.min_by_key(|body| body.len()) else { return Vec::new() };
        let within = planted.edits.iter().filter(|edit| function.contains(&edit.around.start));
        within.filter_map(|edit| edit.mutant).collect()
    }

    fn places(&self, place: &Place) -> Option<&[(u32, Range<usize>)]> {
        let file = self.mutated.iter().find(|(path, _)| *path == place.file_name);
        file.map(|(_, rendered)| &rendered.places[..])
    }

    fn keep(&self) -> Result<(), CompileError> {
        let path = self.target.join(FOUND);
        let found = Found { sources: self.sources, refused: self.refused.clone() };
        let text = serde_json::to_vec(&found).unwrap_or_default();
        fs::write(&path, text).map_err(|error| CompileError::Keep { path, error })
    }

    /// Changes with the sources, and with what is planted in them.
    pub const fn sources(&self) -> u64 {
        self.sources
    }
}

const FOUND: &str = "refused.json";

fn copied(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

fn fingerprint(planting: &Planting) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in &planting.files {
        (&file.path, &file.text).hash(&mut hasher);
        for edit in &file.edits {
            (&edit.before, &edit.after, edit.around.start, edit.mutant).hash(&mut hasher);
        }
    }
    hasher.finish()
}
