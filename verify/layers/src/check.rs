//! The whole check, crate by crate, against the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand, Package};
use serde::Deserialize;
use walkdir::WalkDir;

use crate::judge::Target;
use crate::tree;

/// Where the table is, relative to the workspace.
pub const TABLE: &str = "verify/layers.toml";

/// The table, by the folders of the crates.
type Table = BTreeMap<String, CrateTable>;

/// What the table says about a crate.
#[derive(Deserialize)]
struct CrateTable {
    /// The folders of the crates that it may use.
    uses: BTreeSet<String>,
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
        write!(f, "{crates} crates, {modules} modules, {arrows} arrows, ")?;
        match faults.len() {
            0 => write!(f, "none up, no circle"),
            1 => write!(f, "1 fault"),
            several => write!(f, "{several} faults"),
        }
    }
}

/// Checks the crates of the workspace in this folder.
///
/// # Errors
/// A manifest or the table can't be read.
pub fn check(root: &Path) -> Result<Report> {
    let mut metadata = MetadataCommand::new();
    metadata.current_dir(root).no_deps().other_options(["--offline".to_owned()]);
    let metadata = metadata.exec()?;
    let root = metadata.workspace_root.as_std_path();
    let text =
        fs::read_to_string(root.join(TABLE)).with_context(|| format!("cannot read {TABLE}"))?;
    let table: Table = toml::from_str(&text).with_context(|| format!("{TABLE} is wrong"))?;
    let mut report = Report::default();
    let crates: BTreeMap<_, _> =
        metadata.packages.iter().map(|it| (folder(it.manifest_path.as_ref(), root), it)).collect();
    let named: BTreeSet<_> = table.keys().chain(table.values().flat_map(|it| &it.uses)).collect();
    let unknown = named.iter().filter(|it| !crates.contains_key(**it));
    let mut faults: BTreeSet<_> =
        unknown.map(|it| format!("{TABLE}: the workspace has no crate `{it}`")).collect();
    for (name, package) in &crates {
        report.crates += 1;
        match table.get(name) {
            Some(table) => one(root, name, package, table, &mut report)?,
            None => _ = faults.insert(format!("{TABLE}: no table for the crate `{name}`")),
        }
    }
    report.faults.append(&mut faults);
    Ok(report)
}

fn one(
    root: &Path,
    name: &str,
    package: &Package,
    table: &CrateTable,
    report: &mut Report,
) -> Result<()> {
    let counted = package.targets.iter().filter(|it| !it.is_test() && !it.is_example());
    let roots: BTreeSet<_> = counted.map(|it| relative(it.src_path.as_ref(), root)).collect();
    for target in table.targets.keys().filter(|it| !roots.contains(&Path::new(name).join(it))) {
        report.faults.insert(format!("{TABLE}: `{name}` has no target with the root `{target}`"));
    }
    let mut reached = BTreeSet::new();
    for target in &roots {
        let modules = tree::read(root, target, &mut reached, &mut report.faults);
        let layers = target.strip_prefix(name).ok().and_then(|it| table.targets.get(it.to_str()?));
        let target = target.display().to_string();
        let layers = layers.map_or(&[][..], Vec::as_slice);
        let target = Target::new(&target, &modules, layers, &mut report.faults);
        report.modules += target.product().count();
        report.arrows += target.judge(&mut report.faults);
    }
    let of_product =
        package.dependencies.iter().filter(|it| it.kind != DependencyKind::Development);
    let of_workspace = of_product.filter_map(|it| Some(relative(it.path.as_ref()?.as_ref(), root)));
    for uses in
        of_workspace.map(|it| it.display().to_string()).filter(|it| !table.uses.contains(it))
    {
        report.faults.insert(format!("{name}/Cargo.toml: the crate `{name}` may not use `{uses}`"));
    }
    let sources = ["src", "benches"].map(|sources| root.join(name).join(sources));
    for entry in sources.iter().filter(|it| it.is_dir()).flat_map(WalkDir::new) {
        let file = relative(entry?.path(), root);
        if file.extension().is_some_and(|end| end == "rs") && !reached.contains(&file) {
            let file = file.display();
            report
                .faults
                .insert(format!("{file}: file in no module; declare it with `mod`, or remove it"));
        }
    }
    Ok(())
}

fn folder(manifest: &Path, root: &Path) -> String {
    relative(manifest.parent().unwrap_or(manifest), root).display().to_string()
}

fn relative(path: &Path, folder: &Path) -> PathBuf {
    path.strip_prefix(folder).unwrap_or(path).to_owned()
}
