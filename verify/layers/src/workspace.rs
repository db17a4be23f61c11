//! The crates of the workspace, from `cargo metadata`: their targets, and what they depend on by a path.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use cargo_metadata::{Dependency, DependencyKind, Metadata, MetadataCommand, Package};

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
    pub dependencies: Vec<Declared>,
}

/// A line of a manifest.
#[derive(Debug)]
pub struct Declared {
    /// The name in paths.
    pub name: String,
    /// The folder of the crate.
    pub folder: String,
    /// Where it is declared.
    pub at: Place,
}

/// The workspace that this folder is in.
pub fn read(folder: &Path) -> Result<Workspace> {
    let mut metadata = MetadataCommand::new();
    metadata.current_dir(folder).no_deps().other_options(["--offline".to_owned()]);
    let Metadata { packages, workspace_root, .. } = metadata.exec()?;
    let root = workspace_root.into_std_path_buf();
    let crates = packages.into_iter().map(|package| one(package, &root)).collect::<Result<_>>()?;
    Ok(Workspace { root, crates })
}

fn one(package: Package, workspace: &Path) -> Result<Crate> {
    let Package { name, manifest_path, targets, dependencies, .. } = package;
    let text = read_text(manifest_path.as_std_path())?;
    let folder = manifest_path.as_std_path().parent().unwrap_or(workspace);
    let library =
        targets.iter().find(|it| it.kind.iter().any(|kind| kind.to_string().contains("lib")));
    let library = library.map_or_else(|| name.to_string(), |target| target.name.clone());
    let counted = targets.iter().filter(|target| !target.is_test() && !target.is_example());
    let dependencies = dependencies.into_iter().filter(|it| it.kind != DependencyKind::Development);
    let of_workspace = dependencies.filter_map(|Dependency { name, rename, path, .. }| {
        let name = rename.unwrap_or(name);
        let line = text.lines().position(|line| line.starts_with(&name));
        let file = relative(manifest_path.as_std_path(), workspace).into();
        let at = Place { file, line: line.map_or(1, |line| line + 1) };
        let folder = relative(path?.as_std_path(), workspace);
        Some(Declared { name: name.replace('-', "_"), folder, at })
    });
    Ok(Crate {
        folder: relative(folder, workspace),
        library: library.replace('-', "_"),
        roots: counted.map(|it| relative(it.src_path.as_std_path(), folder)).collect(),
        dependencies: of_workspace.collect(),
    })
}

fn relative(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}
