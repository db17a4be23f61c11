//! The mutated copy of the workspace, under the target directory. A file is written only where its content
//! changes, so that cargo builds again only what it must.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use walkdir::WalkDir;

use crate::plant::{Planted, Planting, Rendered, render};

/// The module that knows which mutant is on.
const RUNTIME: &str = include_str!("../runtime/mutants.rs");
const RUNTIME_PATH: &str = "cq-core/src/mutants.rs";
const ROOT_OF_CORE: &str = "cq-core/src/lib.rs";
const MANIFEST: &str = "Cargo.toml";

/// As tests are built, but quick enough to be run thousands of times; what the cases themselves do takes no time.
const PROFILE: &str = "
[profile.mutate]
inherits = \"dev\"
opt-level = 1
debug = false
incremental = false

[profile.mutate.package.verify]
opt-level = 0
";

/// Where fabrics are, and where they are in the copy: in the folder that a check runs in, so that no mutant reaches
/// another's fabrics, or those of the machine. As long as the original, so that positions in files stay.
const SHARED_MEMORY: &str = "/dev/shm";
const OF_A_RUN: &str = "././././";

/// The copy.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    copy: PathBuf,
    files: Vec<String>,
}

impl Tree {
    /// Of the workspace at `root`, in the folder `copy`.
    pub fn new(root: &Path, copy: &Path) -> Result<Self> {
        let listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let output = Command::new("git").args(listing).current_dir(root).output();
        let output = output.context("cannot list the workspace's files by `git ls-files`")?;
        ensure!(
            output.status.success(),
            "cannot list the workspace's files by `git ls-files`: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let names = String::from_utf8_lossy(&output.stdout);
        let there = |name: &&str| !name.is_empty() && root.join(name).is_file();
        let files = names.split('\0').filter(there).map(str::to_owned);
        Ok(Self { root: root.to_owned(), copy: copy.to_owned(), files: files.collect() })
    }

    /// Where the copy is.
    pub fn path(&self) -> &Path {
        &self.copy
    }

    /// Writes every file, with the mutants in but those that are `excluded`. Returns the mutated ones.
    pub fn write(
        &self,
        planting: &Planting,
        excluded: &BTreeSet<u32>,
    ) -> Result<Vec<(String, Rendered)>> {
        let mut mutated = Vec::new();
        for path in &self.files {
            if let Some(file) = planting.files.iter().find(|file| file.path == *path) {
                let rendered = with_mutants(file, excluded);
                self.put(path, adapted(path, &rendered.text).as_bytes())?;
                mutated.push((path.clone(), rendered));
                continue;
            }
            let plain = String::from_utf8(read(&self.root.join(path))?);
            let plain = plain.map(|text| adapted(path, &text).into_bytes());
            self.put(path, &plain.unwrap_or_else(|error| error.into_bytes()))?;
        }
        let count = planting.mutants.len();
        self.put(RUNTIME_PATH, format!("{RUNTIME}\nconst COUNT: u32 = {count};\n").as_bytes())?;
        self.clear()?;
        Ok(mutated)
    }

    /// Writes a file, unless it says that already.
    fn put(&self, path: &str, content: &[u8]) -> Result<()> {
        let full = self.copy.join(path);
        if fs::read(&full).is_ok_and(|old| old == content) {
            return Ok(());
        }
        let folder = full.parent().unwrap_or(&self.copy);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&full, content));
        written.with_context(|| format!("cannot copy {path} to the mutated tree"))
    }

    /// Takes away what the workspace does not have any more, where cargo would find it by itself.
    fn clear(&self) -> Result<()> {
        let known: BTreeSet<PathBuf> = self.files.iter().map(|file| self.copy.join(file)).collect();
        let runtime = self.copy.join(RUNTIME_PATH);
        for entry in WalkDir::new(&self.copy) {
            let path = entry?.into_path();
            if path.is_file() && !known.contains(&path) && path != runtime {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The root of the engine has one module more, and fabrics lie elsewhere.
fn adapted(path: &str, text: &str) -> String {
    match path {
        MANIFEST => format!("{text}{PROFILE}"),
        ROOT_OF_CORE => format!("{text}\n#[doc(hidden)]\npub mod mutants;\n"),
        _ => text.replace(SHARED_MEMORY, OF_A_RUN),
    }
}

fn with_mutants(file: &Planted, excluded: &BTreeSet<u32>) -> Rendered {
    let is_in = |mutant: Option<u32>| mutant.is_none_or(|mutant| !excluded.contains(&mutant));
    let edits: Vec<_> = file.edits.iter().filter(|edit| is_in(edit.mutant)).cloned().collect();
    render(&file.text, &edits)
}
