//! The whole check, crate by crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::arrows::{self, Outward};
use crate::fault::{Fault, LayersError};
use crate::judge::judge;
use crate::place::Target;
use crate::table::{CrateTable, Layers, Table};
use crate::tree;
use crate::workspace::{Crate, crates, entries};

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// How many crates were read.
    pub crates: usize,
    /// How many modules they have, the roots of their targets among them.
    pub modules: usize,
    /// How many arrows there are between their modules.
    pub arrows: usize,
    /// What is wrong, sorted.
    pub faults: Vec<Fault>,
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
pub fn check(root: &Path, table: &Table, only: &[String]) -> Result<Report, LayersError> {
    let crates = crates(root)?;
    let known = |folder: &String| crates.iter().any(|it| it.folder == *folder);
    if let Some(unknown) = only.iter().find(|folder| !known(folder)) {
        return Err(LayersError::UnknownCrate(unknown.clone()));
    }
    let mut report = Report::default();
    if only.is_empty() {
        let named = table.keys().chain(table.values().flat_map(|it| &it.uses));
        let unknown: BTreeSet<_> = named.filter(|folder| !known(folder)).collect();
        report.faults.extend(unknown.into_iter().cloned().map(Fault::NoSuchCrate));
    }
    for krate in crates.iter().filter(|it| only.is_empty() || only.contains(&it.folder)) {
        Check { root, krate, crates: &crates, report: &mut report }.run(table)?;
    }
    report.faults.sort();
    report.faults.dedup();
    Ok(report)
}

struct Check<'a> {
    root: &'a Path,
    krate: &'a Crate,
    crates: &'a [Crate],
    report: &'a mut Report,
}

impl Check<'_> {
    fn run(&mut self, table: &Table) -> Result<(), LayersError> {
        self.report.crates += 1;
        let folder = &self.krate.folder;
        let Some(table) = table.get(folder) else {
            self.report.faults.push(Fault::NoTable(folder.clone()));
            return Ok(());
        };
        for target in table.targets.keys() {
            if !self.krate.roots.contains(Path::new(target)) {
                let (krate, target) = (folder.clone(), target.clone());
                self.report.faults.push(Fault::NoSuchTarget { krate, target });
            }
        }
        let mut reached = BTreeSet::new();
        for root in &self.krate.roots {
            self.target(root, table, &mut reached)?;
        }
        self.manifest(table);
        let mut files = Vec::new();
        for sources in ["src", "benches"] {
            source_files(&self.root.join(folder).join(sources), &mut files)?;
        }
        let relative = files.iter().filter_map(|file| file.strip_prefix(self.root).ok());
        let lost = relative.filter(|file| !reached.contains(*file));
        self.report.faults.extend(lost.map(|file| Fault::NoModule(file.display().to_string())));
        Ok(())
    }

    fn target(
        &mut self,
        root: &Path,
        table: &CrateTable,
        reached: &mut BTreeSet<PathBuf>,
    ) -> Result<(), LayersError> {
        let (folder, faults) = (&self.krate.folder, &mut self.report.faults);
        let tree = tree::read(self.root, &Path::new(folder).join(root), reached, faults)?;
        let found = arrows::find(&tree);
        let (name, none) = (root.display().to_string(), Layers::default());
        let layers = table.targets.get(&name).unwrap_or(&none);
        let target = Target::new(folder, &name, &tree, layers, faults);
        judge(&target, &found.inner, faults);
        self.report.modules += tree.product().count();
        self.report.arrows += found.inner.len();
        self.outward(&found.outward, table);
        Ok(())
    }

    /// Paths into other crates of the workspace.
    fn outward(&mut self, arrows: &BTreeSet<Outward>, table: &CrateTable) {
        let libraries = self.crates.iter().map(|it| (&it.library, &it.folder));
        let renamed = self.krate.dependencies.iter().map(|it| (&it.name, &it.folder));
        let known: BTreeMap<_, _> = libraries.chain(renamed).collect();
        for Outward { name, at, path } in arrows {
            let Some(&to) = known.get(name) else { continue };
            if *to != self.krate.folder && !table.uses.contains(to) {
                let (from, to) = (self.krate.folder.clone(), to.clone());
                let (at, path) = (at.clone(), path.clone());
                self.report.faults.push(Fault::Crate { at, path, from, to });
            }
        }
    }

    /// What the manifest depends on.
    fn manifest(&mut self, table: &CrateTable) {
        for dependency in &self.krate.dependencies {
            if !table.uses.contains(&dependency.folder) {
                self.report.faults.push(Fault::Crate {
                    at: dependency.at.clone(),
                    path: dependency.name.clone(),
                    from: self.krate.folder.clone(),
                    to: dependency.folder.clone(),
                });
            }
        }
    }
}

/// Adds all files of Rust in a folder.
fn source_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), LayersError> {
    for entry in entries(folder)? {
        if entry.is_dir() {
            source_files(&entry, files)?;
        } else if entry.extension().is_some_and(|end| end == "rs") {
            files.push(entry);
        }
    }
    Ok(())
}
