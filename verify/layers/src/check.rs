//! The whole check, crate by crate, against the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use walkdir::WalkDir;

use crate::arrows::{self, Outward};
use crate::judge::Target;
use crate::tree::{self, Place, read_text};
use crate::workspace::{self, Crate, Workspace};

/// Where the table is, relative to the workspace.
pub const TABLE: &str = "verify/layers.toml";

/// The table, by the folders of the crates.
type Table = BTreeMap<String, CrateTable>;

/// What the table says about a crate.
#[derive(Deserialize)]
struct CrateTable {
    /// The folders of the crates that it may use.
    uses: Vec<String>,
    /// By the root of each target that has modules: its layers, from top to bottom.
    #[serde(flatten)]
    targets: BTreeMap<String, Vec<String>>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// How many crates were read.
    pub crates: usize,
    /// How many modules they have, the roots of their targets among them.
    pub modules: usize,
    /// How many arrows there are between their modules.
    pub arrows: usize,
    /// What is wrong, a line each.
    pub faults: BTreeSet<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crates, modules, arrows, faults } = self;
        write!(f, "{crates} crates, {modules} modules, {} arrows, ", thousands(*arrows))?;
        match faults.len() {
            0 => write!(f, "none up, no circle"),
            1 => write!(f, "1 fault"),
            several => write!(f, "{several} faults"),
        }
    }
}

fn thousands(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", thousands(number / 1000), number % 1000),
    }
}

/// Checks the crates in these folders of the workspace; all of them, if none is named.
///
/// # Errors
/// A manifest, the table or a source can't be read, or a crate is named that does not exist.
pub fn check(root: &Path, table: Option<&Path>, only: &[String]) -> Result<Report> {
    let workspace = workspace::read(root)?;
    let path = table.map_or_else(|| root.join(TABLE), Path::to_owned);
    let table: Table = toml::from_str(&read_text(&path)?)
        .with_context(|| format!("{} is wrong", path.display()))?;
    let known = |folder: &String| workspace.crates.iter().any(|it| it.folder == *folder);
    if let Some(unknown) = only.iter().find(|folder| !known(folder)) {
        bail!("the workspace has no crate `{unknown}`");
    }
    let mut report = Report::default();
    if only.is_empty() {
        let named = table.keys().chain(table.values().flat_map(|it| &it.uses));
        let unknown = named.filter(|folder| !known(folder));
        report.faults.extend(
            unknown.map(|folder| format!("{TABLE}: the workspace has no crate `{folder}`")),
        );
    }
    for krate in workspace.crates.iter().filter(|it| only.is_empty() || only.contains(&it.folder)) {
        report.crates += 1;
        match table.get(&krate.folder) {
            Some(table) => Check { workspace: &workspace, krate, table }.run(&mut report)?,
            None => {
                report.faults.insert(format!("{TABLE}: no table for the crate `{}`", krate.folder));
            }
        }
    }
    Ok(report)
}

struct Check<'a> {
    workspace: &'a Workspace,
    krate: &'a Crate,
    table: &'a CrateTable,
}

impl Check<'_> {
    fn run(&self, report: &mut Report) -> Result<()> {
        let (folder, root) = (&self.krate.folder, &self.workspace.root);
        let targets = self.table.targets.keys();
        report.faults.extend(
            targets.filter(|it| !self.krate.roots.contains(*it)).map(|target| {
                format!("{TABLE}: `{folder}` has no target with the root `{target}`")
            }),
        );
        let mut reached = BTreeSet::new();
        for target in &self.krate.roots {
            self.target(target, &mut reached, report)?;
        }
        for it in &self.krate.dependencies {
            self.may_use(&it.folder, &it.at, &it.name, &mut report.faults);
        }
        let sources = ["src", "benches"].map(|sources| root.join(folder).join(sources));
        for entry in sources.iter().filter(|it| it.is_dir()).flat_map(WalkDir::new) {
            let file = entry?.into_path();
            let relative = file.strip_prefix(root).unwrap_or(&file);
            if file.extension().is_some_and(|end| end == "rs") && !reached.contains(relative) {
                report.faults.insert(format!(
                    "{}: file in no module; declare it with `mod`, or remove it",
                    relative.display()
                ));
            }
        }
        Ok(())
    }

    fn target(
        &self,
        root: &str,
        reached: &mut BTreeSet<PathBuf>,
        report: &mut Report,
    ) -> Result<()> {
        let (folder, faults) = (&self.krate.folder, &mut report.faults);
        let tree =
            tree::read(&self.workspace.root, &Path::new(folder).join(root), reached, faults)?;
        let found = arrows::find(&tree);
        let layers = self.table.targets.get(root).map_or(&[][..], |layers| layers);
        Target::new(folder, root, &tree, layers, faults).judge(&found.inner, faults);
        report.modules += tree.product().count();
        report.arrows += found.inner.len();
        // Paths into other crates of the workspace.
        let libraries = self.workspace.crates.iter().map(|it| (&it.library, &it.folder));
        let renamed = self.krate.dependencies.iter().map(|it| (&it.name, &it.folder));
        let known: BTreeMap<_, _> = libraries.chain(renamed).collect();
        for Outward { name, at, path } in &found.outward {
            if let Some(&to) = known.get(name).filter(|it| **it != folder) {
                self.may_use(to, at, path, faults);
            }
        }
        Ok(())
    }

    fn may_use(&self, to: &String, at: &Place, path: &str, faults: &mut BTreeSet<String>) {
        if !self.table.uses.contains(to) {
            let from = &self.krate.folder;
            faults.insert(format!("{at}: `{path}`: the crate `{from}` may not use `{to}`"));
        }
    }
}
