//! The crates of the workspace, from `cargo metadata`: their targets, and what they depend on by a path.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::tree::{Place, read_text};

/// A workspace.
#[derive(Debug)]
pub struct Workspace {
    /// Its folder.
    pub root: PathBuf,
    /// Its crates.
    pub crates: Vec<Crate>,
}

/// A crate of the workspace.
#[derive(Debug)]
pub struct Crate {
    /// Its folder, relative to the workspace: its name in the table.
    pub folder: String,
    /// The name of its library in paths.
    pub library: String,
    /// The roots of its targets, relative to its folder; tests and examples are left out.
    pub roots: BTreeSet<String>,
    /// The crates of the workspace that its product code depends on, by their folders.
    pub dependencies: Vec<Dependency>,
}

/// A line of a manifest.
#[derive(Debug)]
pub struct Dependency {
    /// The name in paths.
    pub name: String,
    /// The folder of the crate.
    pub folder: String,
    /// Where it is declared.
    pub at: Place,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
    dependencies: Vec<Declared>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Declared {
    name: String,
    rename: Option<String>,
    kind: Option<String>,
    path: Option<PathBuf>,
}

/// The workspace that this folder is in.
pub fn read(folder: &Path) -> Result<Workspace> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version=1"];
    let output = Command::new(cargo).args(arguments).current_dir(folder).output();
    let output = output.context("cannot run cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let Metadata { packages, workspace_root: root } = serde_json::from_slice(&output.stdout)?;
    let crates = packages.into_iter().map(|package| one(package, &root)).collect::<Result<_>>()?;
    Ok(Workspace { root, crates })
}

fn one(package: Package, workspace: &Path) -> Result<Crate> {
    let Package { name, manifest_path, targets, dependencies } = package;
    let text = read_text(&manifest_path)?;
    let folder = manifest_path.parent().unwrap_or(workspace);
    let is_counted =
        |target: &&Target| !target.kind.iter().any(|it| it == "test" || it == "example");
    let library = targets.iter().find(|it| it.kind.iter().any(|kind| kind.contains("lib")));
    let dependencies = dependencies.into_iter().filter(|it| it.kind.as_deref() != Some("dev"));
    let of_workspace = dependencies.filter_map(|Declared { name, rename, path, .. }| {
        let name = rename.unwrap_or(name);
        let line = text.lines().position(|line| line.starts_with(&name));
        let file = relative(&manifest_path, workspace).into();
        let at = Place { file, line: line.map_or(1, |line| line + 1) };
        Some(Dependency { name: name.replace('-', "_"), folder: relative(&path?, workspace), at })
    });
    Ok(Crate {
        folder: relative(folder, workspace),
        library: library.map_or(name, |target| target.name.clone()).replace('-', "_"),
        roots: targets.iter().filter(is_counted).map(|it| relative(&it.src_path, folder)).collect(),
        dependencies: of_workspace.collect(),
    })
}

fn relative(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}
