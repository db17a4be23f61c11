//! The arrows of a target: from each module to those that define what its paths name.

use std::collections::BTreeSet;

use crate::resolve::{Resolved, Target};
use crate::tokens::{self, Called, Written};
use crate::tree::{Import, Kind, Place, Tree};

/// A module uses another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    /// The module that uses the other.
    pub from: usize,
    /// The module that is used.
    pub to: usize,
    /// Whether it is a re-export.
    pub is_reexport: bool,
    /// Where.
    pub at: Place,
    /// What it says.
    pub path: String,
}

/// A path leads out of the crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outward {
    /// The first name of the path, in its original.
    pub name: String,
    /// Where.
    pub at: Place,
    /// What it says.
    pub path: String,
}

/// All arrows of a target.
#[derive(Debug, Default)]
pub struct Arrows {
    /// Between its modules.
    pub inner: BTreeSet<Arrow>,
    /// To other crates, those that nobody knows too.
    pub outward: BTreeSet<Outward>,
}

/// Finds them.
pub fn find(tree: &Tree) -> Arrows {
    let mut arrows = Arrows::default();
    for (from, module) in tree.product() {
        let has_globs = module.imports.iter().any(|import| import.kind == Kind::Glob);
        let written: Vec<_> =
            module.code.iter().flat_map(|code| tokens::paths(code.clone())).collect();
        let imports = module.imports.iter().map(|import| {
            let Import { line, path, is_private, .. } = import;
            (line, path, !is_private, tree.resolve_import(from, import))
        });
        let code = written
            .iter()
            .map(|it| (&it.line, &it.names, false, resolve(tree, from, it, has_globs)));
        for (&line, names, is_reexport, Resolved { targets, mut through }) in imports.chain(code) {
            let (at, path) = (Place { file: module.file.clone(), line }, names.join("::"));
            through.retain(|&it| !tree.is_in(from, it));
            for target in targets {
                match target {
                    Target::Module(to) | Target::Item(to) => _ = through.insert(to),
                    Target::Crate(name) => {
                        let (at, path) = (at.clone(), path.clone());
                        arrows.outward.insert(Outward { name, at, path });
                    }
                }
            }
            through.remove(&from);
            let arrow = |to| Arrow { from, to, is_reexport, at: at.clone(), path: path.clone() };
            arrows.inner.extend(through.into_iter().map(arrow));
        }
    }
    arrows
}

fn resolve(tree: &Tree, from: usize, written: &Written, has_globs: bool) -> Resolved {
    let Written { names, of_crates, called, .. } = written;
    let [name] = &names[..] else { return tree.resolve_path(from, names, *of_crates) };
    // What a name alone means, its `use` tells, unless it comes by a glob, or as a macro without a path.
    let is_type = name.starts_with(|first: char| first.is_uppercase());
    let mut resolved = Resolved::default();
    if has_globs && (is_type || *called != Called::Not) {
        resolved.targets = tree.find_in_globs(from, name);
    }
    if *called == Called::Macro {
        resolved.targets.extend(tree.find_macro(from, name).map(Target::Item));
    }
    resolved
}
