//! The files that mutants are planted in: those of the engine and of the device that are not there for tests
//! alone, found from the root of each crate by its `mod` items.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use proc_macro2::TokenStream;
use serde::{Deserialize, Serialize};
use syn::{Item, ItemMod};

use crate::worlds::{Worlds, branches};

/// A part of the workspace that is counted by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// The engine.
    Core,
    /// The words that processes share, which loom models.
    Protocol,
    /// The rest of the device.
    Device,
}

impl Area {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Core, Self::Protocol, Self::Device];

    /// As it is called in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "cq-core",
            Self::Protocol => "protocol",
            Self::Device => "rest of the device",
        }
    }

    fn of(path: &str) -> Self {
        let in_device = path.strip_prefix(DEVICE_SOURCES);
        match in_device {
            None => Self::Core,
            Some(path) if path.starts_with("protocol") || path.starts_with("sync") => {
                Self::Protocol
            }
            Some(_) => Self::Device,
        }
    }
}

const DEVICE_SOURCES: &str = "transport-rxe-loop/src/";

/// The crates: where they begin, and how the function is called in them that tells which mutant is on.
const CRATES: [(&str, &str, &str); 2] = [
    ("cq-core", "cq-core/src/lib.rs", "crate::mutants::on"),
    ("transport-rxe-loop", "transport-rxe-loop/src/lib.rs", "::cq_core::mutants::on"),
];

/// Nothing but hooks for tests.
const HOOKS: &str = "transport-rxe-loop/src/protocol/steps.rs";
/// Checks for the transports of others: what they notice is shown by faults that are planted in one.
const RULES: &str = "cq-core/src/testing/rules";

/// A file that mutants are planted in.
pub struct Source {
    /// Relative to the workspace.
    pub path: String,
    /// Its crate.
    pub package: String,
    /// Which part of the workspace it is counted for.
    pub area: Area,
    /// The builds that it is part of.
    pub worlds: Worlds,
    /// What it says.
    pub text: String,
    /// The same, parsed.
    pub syntax: syn::File,
    on: &'static str,
}

/// A file can't be planted.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It can't be read.
    #[error("cannot read {path}, which the crate's modules name: {error}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is no Rust.
    #[error("cannot parse {path}: {error}; does it compile?")]
    Parse {
        /// Which.
        path: String,
        /// Why.
        error: syn::Error,
    },
}

impl Source {
    /// A file with this text, in a crate.
    pub fn new(
        path: &str,
        worlds: Worlds,
        text: String,
        package: &str,
    ) -> Result<Self, SourceError> {
        let parsed = syn::parse_file(&text);
        let syntax = parsed.map_err(|error| SourceError::Parse { path: path.to_owned(), error })?;
        let (package, _, on) =
            CRATES.iter().find(|(name, ..)| *name == package).unwrap_or(&CRATES[0]);
        let (path, area) = (path.to_owned(), Area::of(path));
        Ok(Self { path, package: (*package).to_owned(), area, worlds, text, syntax, on })
    }

    /// The expression that is true if a mutant is on.
    pub fn on(&self, mutant: u32) -> String {
        format!("{}({mutant})", self.on)
    }
}

/// The same in a file that is not parsed; `None` in one that is not of these crates.
pub fn question(path: &str, mutant: u32) -> Option<String> {
    let is_of = |package: &str| path.starts_with(&format!("{package}/src/"));
    let (.., on) = CRATES.iter().find(|(package, ..)| is_of(package))?;
    Some(format!("{on}({mutant})"))
}

/// Reads the files of both crates.
pub fn read(root: &Path) -> Result<Vec<Source>, SourceError> {
    let mut sources = Vec::new();
    for (package, path, _) in CRATES {
        let mut reader = Reader { root, package, sources: &mut sources };
        let path = Path::new(path);
        reader.file(path, path.parent().unwrap_or(path), Worlds::BOTH)?;
    }
    sources.retain(|source| source.path != HOOKS && !source.path.starts_with(RULES));
    Ok(sources)
}

struct Reader<'a> {
    root: &'a Path,
    package: &'static str,
    sources: &'a mut Vec<Source>,
}

impl Reader<'_> {
    /// A file whose modules lie in `folder`.
    fn file(&mut self, path: &Path, folder: &Path, worlds: Worlds) -> Result<(), SourceError> {
        let full = self.root.join(path);
        let text =
            fs::read_to_string(&full).map_err(|error| SourceError::Read { path: full, error })?;
        let source = Source::new(&path.to_string_lossy(), worlds, text, self.package)?;
        let modules = modules(&source.syntax.items, worlds);
        // What only loom compiles is there for models.
        if worlds.normal {
            self.sources.push(source);
        }
        for (name, worlds) in modules {
            let (file, below) = (folder.join(format!("{name}.rs")), folder.join(&name));
            let is_file = self.root.join(&file).exists();
            let file = if is_file { file } else { below.join("mod.rs") };
            self.file(&file, &below, worlds)?;
        }
        Ok(())
    }
}

/// The modules that have files of their own, and the builds that they are part of.
fn modules(items: &[Item], worlds: Worlds) -> Vec<(String, Worlds)> {
    let mut found = Vec::new();
    for item in items {
        match item {
            Item::Mod(ItemMod { content: None, attrs, ident, .. }) => {
                found.push((ident.to_string(), worlds.under(attrs)));
            }
            Item::Macro(of)
                if of.mac.path.segments.last().is_some_and(|it| it.ident == "cfg_if") =>
            {
                found.extend(in_branches(&of.mac.tokens, worlds));
            }
            _ => {}
        }
    }
    found.retain(|(_, worlds)| !worlds.is_none());
    found
}

fn in_branches(body: &TokenStream, worlds: Worlds) -> Vec<(String, Worlds)> {
    let branches = branches(body, worlds).into_iter();
    let parsed = branches.filter_map(|(worlds, items)| {
        syn::parse2::<syn::File>(items).ok().map(|file| modules(&file.items, worlds))
    });
    parsed.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_tests_are_left_out_wherever_they_stand() {
        let text = "
            mod a;
            #[cfg(test)] mod b;
            cfg_if::cfg_if! { if #[cfg(not(loom))] { mod c; #[cfg(test)] mod d; } }
            mod here { fn f() {} }
        ";
        let file = syn::parse_file(text).unwrap();
        let found = modules(&file.items, Worlds::BOTH);
        let names: Vec<_> = found.iter().map(|(name, of)| (name.as_str(), of.loom)).collect();
        assert_eq!(names, [("a", true), ("c", false)]);
    }

    #[test]
    fn the_workspace_is_found_without_its_tests() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let sources = read(root).unwrap();
        let find = |path: &str| sources.iter().find(|source| source.path == path);
        assert_eq!(find("cq-core/src/queue/ring.rs").unwrap().area, Area::Core);
        let window = find("transport-rxe-loop/src/protocol/in_flight.rs").unwrap();
        assert_eq!((window.area, window.worlds), (Area::Protocol, Worlds::BOTH));
        assert_eq!(find("transport-rxe-loop/src/api/qp.rs").unwrap().area, Area::Device);
        assert!(!find("transport-rxe-loop/src/api/qp.rs").unwrap().worlds.loom);
        for test in ["dying", "hostile", "actor", "audit", "chance", "protocol/fanin/tests"] {
            assert!(find(&format!("transport-rxe-loop/src/{test}.rs")).is_none(), "{test}");
        }
    }
}
