//! Faults that are planted in small workspaces, each of which is found, and nothing else; and what is no fault.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use verify_layers::{Fault, LayersError, check, table};

mod circles;
mod crates;
mod files;
mod passes;
mod up;

/// A workspace in a folder of its own, which goes when this does.
struct Workspace(PathBuf);

impl Workspace {
    fn new(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("verify-layers.{}.{nth}", process::id()));
        let workspace = Self(root);
        for (path, text) in files {
            let file = workspace.0.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        workspace
    }

    fn check(&self) -> Result<Vec<Fault>, LayersError> {
        let table = table::read(&self.0.join(table::PATH))?;
        Ok(check(Path::new(&self.0), &table, &[])?.faults)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// What is wrong with a workspace of the crate `a`, which has these layers and files.
fn faults(layers: &[&str], files: &[(&str, &str)]) -> Vec<String> {
    let layers = layers.iter().map(|layer| format!("{layer:?},")).collect::<String>();
    let table = format!("[a]\nuses = []\n\"src/lib.rs\" = [{layers}]\n");
    let paths: Vec<_> = files.iter().map(|(path, _)| format!("a/src/{path}")).collect();
    let mut all = vec![
        ("Cargo.toml", "[workspace]\nmembers = ['a']"),
        ("a/Cargo.toml", "[package]\nname = 'a'"),
        ("verify/layers.toml", table.as_str()),
    ];
    all.extend(paths.iter().map(String::as_str).zip(files.iter().map(|(_, text)| *text)));
    said(&Workspace::new(&all))
}

fn said(workspace: &Workspace) -> Vec<String> {
    workspace.check().unwrap().iter().map(Fault::to_string).collect()
}

/// The crate `a` has the modules `high`, `low` and `base`, in this order; what is wrong if they say this.
fn three(high: &str, base: &str, low: &str) -> Vec<String> {
    let root =
        "pub mod high; pub mod low; pub mod base;\npub use crate::high::Top;\npub struct Own;";
    let files = [("lib.rs", root), ("high.rs", high), ("low.rs", low), ("base.rs", base)];
    faults(&["high", "low", "base"], &files)
}

/// A module with something to use.
const TOP: &str = "pub struct Top; pub fn top() {} pub mod inner { pub struct Deep; }";
