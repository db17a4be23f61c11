//! The crates of the workspace, from their manifests: members, and what they depend on by a path.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::fault::{LayersError, Place};

/// A crate of the workspace.
#[derive(Debug)]
pub struct Crate {
    /// Its folder, relative to the workspace: its name in the table.
    pub folder: String,
    /// The name of its library in paths.
    pub library: String,
    /// The roots of its targets, relative to its folder; tests and examples are left out.
    pub roots: BTreeSet<PathBuf>,
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

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Manifest {
    workspace: Workspace,
    package: Option<Package>,
    lib: Option<Target>,
    bin: Vec<Target>,
    bench: Vec<Target>,
    #[serde(flatten)]
    depends: Sections,
    target: BTreeMap<String, Sections>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Workspace {
    members: Vec<String>,
    dependencies: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Target {
    name: Option<String>,
    path: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Sections {
    dependencies: BTreeMap<String, Entry>,
    build_dependencies: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Version(#[expect(dead_code, reason = "only dependencies with a path count")] String),
    Detailed {
        path: Option<PathBuf>,
        #[serde(default)]
        workspace: bool,
    },
}

/// The crates, in the order in which the workspace lists them.
pub fn crates(root: &Path) -> Result<Vec<Crate>, LayersError> {
    let shared = manifest(root, Path::new(""))?.1.workspace;
    let mut found: Vec<Crate> = Vec::new();
    let mut left: Vec<_> = shared.members.iter().rev().map(PathBuf::from).collect();
    while let Some(folder) = left.pop() {
        if found.iter().any(|it| Path::new(&it.folder) == folder) {
            continue;
        }
        let one = one(root, &folder, &shared)?;
        left.extend(one.dependencies.iter().map(|it| PathBuf::from(&it.folder)));
        found.push(one);
    }
    found.sort_by_key(|it| shared.members.iter().position(|member| *member == it.folder));
    Ok(found)
}

fn one(root: &Path, folder: &Path, shared: &Workspace) -> Result<Crate, LayersError> {
    let (text, manifest) = manifest(root, folder)?;
    let package = manifest.package.as_ref();
    let package =
        package.ok_or_else(|| LayersError::NoPackage(root.join(folder).join("Cargo.toml")))?;
    let library = manifest.lib.as_ref().and_then(|lib| lib.name.clone());
    Ok(Crate {
        folder: folder.display().to_string(),
        library: library.unwrap_or_else(|| package.name.replace('-', "_")),
        roots: roots(&root.join(folder), &manifest)?,
        dependencies: dependencies(folder, &text, &manifest, shared),
    })
}

fn manifest(root: &Path, folder: &Path) -> Result<(String, Manifest), LayersError> {
    let path = root.join(folder).join("Cargo.toml");
    let text = fs::read_to_string(&path)
        .map_err(|error| LayersError::Read { path: path.clone(), error })?;
    let parsed = toml::from_str(&text).map_err(|error| LayersError::Toml { path, error })?;
    Ok((text, parsed))
}

/// As cargo finds them.
fn roots(folder: &Path, manifest: &Manifest) -> Result<BTreeSet<PathBuf>, LayersError> {
    let named = manifest.lib.iter().chain(&manifest.bin).chain(&manifest.bench);
    let mut roots: BTreeSet<PathBuf> = named.filter_map(|target| target.path.clone()).collect();
    for single in ["src/lib.rs", "src/main.rs", "build.rs"] {
        if folder.join(single).is_file() {
            roots.insert(single.into());
        }
    }
    for several in ["src/bin", "benches"] {
        for entry in entries(&folder.join(several))? {
            let relative = Path::new(several).join(entry.file_name().unwrap_or_default());
            if entry.is_dir() {
                let main = relative.join("main.rs");
                roots.extend(folder.join(&main).is_file().then_some(main));
            } else if entry.extension().is_some_and(|end| end == "rs") {
                roots.insert(relative);
            }
        }
    }
    Ok(roots)
}

/// What is in a folder; nothing, where there is no such folder.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, LayersError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>();
    read().map_err(|error| LayersError::Read { path: folder.to_owned(), error })
}

fn dependencies(
    folder: &Path,
    text: &str,
    manifest: &Manifest,
    shared: &Workspace,
) -> Vec<Dependency> {
    let sections = manifest.target.values().chain([&manifest.depends]);
    let entries = sections.flat_map(|it| it.dependencies.iter().chain(&it.build_dependencies));
    let of_workspace = entries.filter_map(|(name, entry)| {
        let Entry::Detailed { path, workspace } = entry else { return None };
        let path = match (path, workspace.then(|| shared.dependencies.get(name)).flatten()) {
            (Some(path), _) => folder.join(path),
            (None, Some(Entry::Detailed { path: Some(path), .. })) => path.clone(),
            _ => return None,
        };
        let line = text.lines().position(|line| line.starts_with(name.as_str()));
        let at = Place { file: folder.join("Cargo.toml"), line: line.map_or(1, |line| line + 1) };
        let folder = normal(&path).display().to_string();
        Some(Dependency { name: name.replace('-', "_"), folder, at })
    });
    of_workspace.collect()
}

/// Without `.` and `..`.
pub fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, component| {
        match component {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            other => normal.push(other),
        }
        normal
    })
}
