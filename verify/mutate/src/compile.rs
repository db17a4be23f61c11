//! Building the mutated copy. A mutant may be something that the compiler refuses: what it says is traced back to the
//! mutants that stand there, these are left out, and it is asked again.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::diagnostic::{Diagnostic, DiagnosticLevel, DiagnosticSpan};
use cargo_metadata::{Artifact, Message};

use crate::notes;
use crate::plant::{Planting, Rendered};
use crate::tree::Tree;
use crate::workers::say;

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

/// The copy, and what is left out of it.
#[derive(Debug)]
pub struct Copy<'a> {
    tree: &'a Tree,
    planting: &'a Planting,
    target: &'a Path,
    /// Mutants that do not compile.
    pub refused: BTreeSet<u32>,
    mutated: Vec<(String, Rendered)>,
    /// Changes with the sources, and with what is planted in them.
    pub sources: u64,
}

const FOUND: &str = "refused.json";

impl<'a> Copy<'a> {
    /// Writes the copy, without what is known not to compile.
    pub fn new(tree: &'a Tree, planting: &'a Planting, target: &'a Path) -> Result<Self> {
        let sources = fingerprint(planting);
        let refused = notes::load(&target.join(FOUND), sources).unwrap_or_default();
        let mutated = tree.write(planting, &refused)?;
        Ok(Self { tree, planting, target, refused, mutated, sources })
    }

    /// Runs `cargo` with these arguments in the copy until it compiles.
    pub fn build(&mut self, world: World, arguments: &str) -> Result<Vec<Artifact>> {
        let mut last = String::new();
        for _ in 0..ROUNDS {
            let (artifacts, errors) = self.cargo(world, arguments)?;
            let Some(first) = errors.first() else {
                notes::keep(&self.target.join(FOUND), self.sources, &self.refused)?;
                return Ok(artifacts);
            };
            last = text(first);
            let before = self.refused.len();
            for error in &errors {
                self.refuse(error);
            }
            ensure!(
                self.refused.len() > before,
                "the mutated copy does not compile, and no mutant explains it; does the workspace? {last}"
            );
            say(format_args!("{} mutants do not compile", self.refused.len()));
            self.mutated = self.tree.write(self.planting, &self.refused)?;
        }
        bail!(
            "the mutated copy does not compile after {ROUNDS} rounds of leaving mutants out: {last}"
        )
    }

    /// Runs `cargo` with these arguments in the copy, of which nothing is left out.
    pub fn build_whole(&self, world: World, arguments: &str) -> Result<Vec<Artifact>> {
        let (artifacts, errors) = self.cargo(world, arguments)?;
        let first = errors.first().map(text);
        ensure!(first.is_none(), "the copy does not compile: {}", first.unwrap_or_default());
        Ok(artifacts)
    }

    fn cargo(&self, world: World, arguments: &str) -> Result<(Vec<Artifact>, Vec<Diagnostic>)> {
        let (flags, folder) = match world {
            World::Normal => ("--cap-lints=allow", "build"),
            World::Loom => ("--cap-lints=allow --cfg loom", "loom"),
        };
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments.split(' ')).args(["--locked", "--message-format=json"]);
        command.current_dir(self.tree.path()).stdin(Stdio::null());
        command.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", flags);
        command.env("CARGO_TARGET_DIR", self.target.join(folder));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.context("cannot run cargo")?;
        let noise =
            child.stderr.take().map(|noise| std::thread::spawn(|| io::read_to_string(noise)));
        let (mut artifacts, mut errors) = (Vec::new(), Vec::new());
        let said = child.stdout.take().map(BufReader::new);
        for message in said.into_iter().flat_map(Message::parse_stream) {
            match message.context("cannot read what cargo says")? {
                Message::CompilerArtifact(artifact) => artifacts.push(artifact),
                Message::CompilerMessage(it) if it.message.level == DiagnosticLevel::Error => {
                    errors.push(it.message);
                }
                _ => {}
            }
        }
        let status = child.wait().context("cannot run cargo")?;
        let said = noise.and_then(|noise| noise.join().ok()).and_then(Result::ok);
        ensure!(
            status.success() || !errors.is_empty(),
            "cargo cannot build the copy: {}",
            said.unwrap_or_default()
        );
        Ok((artifacts, errors))
    }

    /// Leaves out what an error is about: the mutants at its spans, or else all of the function there.
    fn refuse(&mut self, error: &Diagnostic) {
        let (primary, others): (Vec<_>, Vec<_>) =
            error.spans.iter().partition(|place| place.is_primary);
        let mut found = Vec::new();
        for places in [primary, others] {
            if found.is_empty() {
                found = places.iter().flat_map(|place| self.mutants_at(place)).collect();
            }
        }
        if found.is_empty() {
            found = error.spans.iter().flat_map(|place| self.mutants_near(place)).collect();
        }
        self.refused.extend(found);
    }

    /// The innermost mutant around a place, or else those within it.
    fn mutants_at(&self, place: &DiagnosticSpan) -> Vec<u32> {
        let Some(Rendered { places, .. }) = self.rendered(place) else {
            let outside = place.expansion.as_ref();
            return outside.map(|it| self.mutants_at(&it.span)).unwrap_or_default();
        };
        let Range { start, end } = bytes(place);
        let around = places.iter().filter(|(_, at)| at.start <= start && end <= at.end);
        if let Some((mutant, _)) = around.min_by_key(|(_, at)| at.len()) {
            return vec![*mutant];
        }
        let within = places.iter().filter(|(_, at)| start <= at.start && at.end <= end);
        within.map(|(mutant, _)| *mutant).collect()
    }

    /// Those of the function.
    fn mutants_near(&self, place: &DiagnosticSpan) -> Vec<u32> {
        let planted = self.planting.files.iter().find(|file| file.path == place.file_name);
        let (Some(file), Some(planted)) = (self.rendered(place), planted) else {
            return Vec::new();
        };
        let line = file.text[..bytes(place).start.min(file.text.len())].matches('\n').count();
        let start = planted.text.split_inclusive('\n').take(line).map(str::len).sum::<usize>();
        let functions = planted.functions.iter().filter(|body| body.contains(&start));
        let Some(function) = functions.min_by_key(|body| body.len()) else { return Vec::new() };
        let within = planted.edits.iter().filter(|edit| function.contains(&edit.around.start));
        within.filter_map(|edit| edit.mutant).collect()
    }

    fn rendered(&self, place: &DiagnosticSpan) -> Option<&Rendered> {
        let file = self.mutated.iter().find(|(path, _)| *path == place.file_name);
        file.map(|(_, rendered)| rendered)
    }
}

const fn bytes(place: &DiagnosticSpan) -> Range<usize> {
    place.byte_start as usize..place.byte_end as usize
}

/// As the compiler shows it.
fn text(error: &Diagnostic) -> String {
    error.rendered.clone().unwrap_or_else(|| error.message.clone())
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
