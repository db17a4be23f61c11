//! The libraries as packages: a dry run of publishing all of them, in the order of their dependencies; each package complete
//! in itself, and all built from the packages alone.
//!
//! `cargo publish` would build what it packs, too, but once only in a target directory: it takes a package of the workspace for
//! one of a registry, which never changes, and builds with its first version of it. The stage `features` chooses features and
//! the compiler.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use cargo_metadata::{Metadata, MetadataCommand, Package};

use super::libibverbs;
use crate::run::{Job, Stop, cargo, root};

mod features;
mod manifest;
mod tarball;

pub use self::manifest::libraries;

/// Where the packages are made, and built; relative to [`root`].
const TARGET: &str = "target/publish";
/// Where they are unpacked.
const SOURCES: &str = "target/publish/sources";

/// Packs the libraries, judges what is in the packages, and builds each.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let metadata = metadata(job)?;
    let libraries = libraries(&metadata);
    let dependencies = manifest::dependencies(&metadata, &libraries);
    let mut faults = manifest::faults(&libraries, &dependencies);
    for package in metadata.workspace_packages() {
        faults.extend(features::faults(package)?);
    }
    faults.extend(pack(job, &libraries)?);
    for package in &libraries {
        faults.extend(tarball::faults(&root().join(SOURCES).join(folder(package)))?);
    }
    for fault in &faults {
        job.log(fault)?;
    }
    if !faults.is_empty() {
        return Err(Stop::Failed(faults.join("; ")));
    }
    check(job)?;
    let names: Vec<_> = libraries.iter().map(|package| package.name.as_str()).collect();
    let (count, names) = (dependencies.len(), names.join(", "));
    Ok(format!("{names}: built from their packages, with {count} dependencies"))
}

/// The packages of the workspace and all that they depend on.
pub fn metadata(job: &mut Job) -> Result<Metadata, Stop> {
    // Of one platform: the packages of all others would be fetched for nothing.
    let mut metadata = cargo(&["metadata", "--format-version", "1", "--locked", "--all-features"]);
    metadata.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let told = job.ask("cargo metadata", &mut metadata)?;
    MetadataCommand::parse(told).map_err(|error| Stop::Failed(error.to_string()))
}

/// The name of the folder in a package's tarball.
fn folder(package: &Package) -> String {
    format!("{}-{}", package.name, package.version)
}

/// Runs `cargo publish` without the upload, and unpacks the tarballs, in a workspace of their own with the dependencies of this
/// one: what cargo warned of meanwhile.
fn pack(job: &mut Job, libraries: &[&Package]) -> Result<Vec<String>, Stop> {
    let tarballs = root().join(TARGET).join("package");
    // Those of an earlier run could be taken for new ones.
    remove(&tarballs)?;
    let mut publish = cargo(&["publish", "--dry-run", "--locked", "--no-verify", "--allow-dirty"]);
    publish.args(["--workspace", "--target-dir", TARGET]);
    let output = job.run("cargo publish --dry-run", &mut publish)?;
    let sources = root().join(SOURCES);
    remove(&sources)?;
    fs::create_dir_all(&sources)?;
    for library in libraries {
        let tarball = tarball::find(&tarballs, &folder(library))?;
        // With the time of now: all files in it are as old as each other, and cargo would not see that they changed.
        let mut unpack = Command::new("tar");
        unpack.args(["-xzm", "-C", SOURCES, "-f"]).arg(tarball);
        job.run(&format!("unpacking {}", library.name), &mut unpack)?;
    }
    fs::write(sources.join("Cargo.toml"), workspace(libraries))?;
    fs::copy(root().join("Cargo.lock"), sources.join("Cargo.lock"))?;
    Ok(tarball::warnings(&output))
}

/// Removes a folder, if there is one.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The manifest of a workspace of the unpacked packages, which find each other there instead of in the registry.
fn workspace(libraries: &[&Package]) -> String {
    let members: Vec<_> = libraries.iter().map(|package| folder(package)).collect();
    let patch =
        |package: &&Package| format!("{} = {{ path = \"{}\" }}\n", package.name, folder(package));
    let patches: String = libraries.iter().map(patch).collect();
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = {members:?}\n\n\
         [patch.crates-io]\n{patches}\n[profile.dev]\ndebug = false\n"
    )
}

/// Builds all that they have.
fn check(job: &mut Job) -> Result<(), Stop> {
    let mut check = cargo(&["check", "--workspace", "--all-features"]);
    check.arg("--manifest-path").arg(Path::new(SOURCES).join("Cargo.toml"));
    check.env("CARGO_TARGET_DIR", TARGET);
    job.run("cargo check of the packages", libibverbs::with_libclang(&mut check)).map(drop)
}
