//! The files that mutants are planted in: those of the engine and of the device that are not there for tests
//! alone, found from the root of each crate by its `mod` items.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use syn::{Item, ItemMod};

use crate::worlds::{Worlds, files_in_branches};

/// The parts of the workspace that are counted: the engine with the crates in its folder, the words that processes share, and
/// the rest of the device.
pub const AREAS: [&str; 3] = [CORE, "protocol", "rest of the device"];
/// The engine, and the crates in its folder.
pub const CORE: &str = "cq-core";

/// Which of them a file is part of.
fn area(path: &str) -> &'static str {
    match path.strip_prefix(DEVICE_SOURCES) {
        None => CORE,
        Some(path) if path.starts_with("protocol") || path.starts_with("sync") => AREAS[1],
        Some(_) => AREAS[2],
    }
}

const DEVICE_SOURCES: &str = "transport-rxe-loop/src/";

/// The crates: where their sources are, and how the function is called in them that tells which mutant is on.
const CRATES: [(&str, &str); 4] = [
    ("cq-core/src/", "crate::mutants::on"),
    ("cq-core/verbs/src/", "::cq_core::mutants::on"),
    ("cq-core/testing/src/", "::cq_core::mutants::on"),
    (DEVICE_SOURCES, "::cq_core::mutants::on"),
];

/// Nothing but hooks for tests and for models.
const HOOKS: [&str; 4] = [
    "transport-rxe-loop/src/protocol/steps.rs",
    "transport-rxe-loop/src/sync/site.rs",
    "cq-core/src/sync/site.rs",
    "cq-core/verbs/src/sync/site.rs",
];
/// Checks for the transports of others: what they notice is shown by faults that are planted in one.
const RULES: &str = "cq-core/testing/src/rules";

/// A file that mutants are planted in.
pub struct Source {
    /// Relative to the workspace.
    pub path: String,
    /// Which part of the workspace it is counted for.
    pub area: &'static str,
    /// The builds that it is part of.
    pub worlds: Worlds,
    /// What it says.
    pub text: String,
    /// The same, parsed.
    pub syntax: syn::File,
}

impl Source {
    /// A file with this text.
    pub fn new(path: &str, worlds: Worlds, text: String) -> Result<Self> {
        let syntax = syn::parse_file(&text);
        let syntax = syntax.with_context(|| format!("cannot parse {path}; does it compile?"))?;
        Ok(Self { path: path.to_owned(), area: area(path), worlds, text, syntax })
    }

    /// The expression that is true if a mutant is on.
    pub fn on(&self, mutant: u32) -> String {
        question(&self.path, mutant).unwrap_or_default()
    }
}

/// The expression in a file that is true if a mutant is on; `None` in one that is not of these crates.
pub fn question(path: &str, mutant: u32) -> Option<String> {
    let (_, on) = CRATES.iter().find(|(sources, _)| path.starts_with(sources))?;
    Some(format!("{on}({mutant})"))
}

/// Reads the files of these crates.
pub fn read(root: &Path) -> Result<Vec<Source>> {
    let mut reader = Reader { root, sources: Vec::new() };
    for (folder, _) in CRATES {
        let folder = Path::new(folder);
        reader.file(&folder.join("lib.rs"), folder, Worlds::BOTH)?;
    }
    let mut sources = reader.sources;
    sources.retain(|it| !HOOKS.contains(&it.path.as_str()) && !it.path.starts_with(RULES));
    Ok(sources)
}

struct Reader<'a> {
    root: &'a Path,
    sources: Vec<Source>,
}

impl Reader<'_> {
    /// A file whose modules lie in `folder`.
    fn file(&mut self, path: &Path, folder: &Path, worlds: Worlds) -> Result<()> {
        let text = fs::read_to_string(self.root.join(path));
        let text = text.with_context(|| format!("cannot read the module {}", path.display()))?;
        let source = Source::new(&path.to_string_lossy(), worlds, text)?;
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
            Item::Macro(of) => {
                let branches = files_in_branches(&of.mac, worlds).into_iter();
                found.extend(branches.flat_map(|(worlds, file)| modules(&file.items, worlds)));
            }
            _ => {}
        }
    }
    found.retain(|(_, worlds)| !worlds.is_none());
    // One that is public for models alone stands there twice.
    let mut all: Vec<(String, Worlds)> = Vec::new();
    for (name, worlds) in found {
        match all.iter_mut().find(|(of, _)| *of == name) {
            Some((_, of)) => *of = of.or(worlds),
            None => all.push((name, worlds)),
        }
    }
    all
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
            cfg_if::cfg_if! { if #[cfg(loom)] { pub mod e; } else { mod e; } }
            mod here { fn f() {} }
        ";
        let file = syn::parse_file(text).unwrap();
        let found = modules(&file.items, Worlds::BOTH);
        let names: Vec<_> = found.iter().map(|(name, of)| (name.as_str(), of.loom)).collect();
        assert_eq!(names, [("a", true), ("c", false), ("e", true)]);
    }

    #[test]
    fn the_workspace_is_found_without_its_tests() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let sources = read(root).unwrap();
        let find = |path: &str| sources.iter().find(|source| source.path == path);
        assert_eq!(find("cq-core/src/queue/ring.rs").unwrap().area, CORE);
        let window = find("transport-rxe-loop/src/protocol/in_flight.rs").unwrap();
        assert_eq!((window.area, window.worlds), (AREAS[1], Worlds::BOTH));
        assert_eq!(find("transport-rxe-loop/src/api/qp.rs").unwrap().area, AREAS[2]);
        assert!(!find("transport-rxe-loop/src/api/qp.rs").unwrap().worlds.loom);
        for test in ["dying", "hostile", "actor", "audit", "chance", "protocol/fanin/tests"] {
            assert!(find(&format!("transport-rxe-loop/src/{test}.rs")).is_none(), "{test}");
        }
    }
}
