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
        for import in &module.imports {
            let Import { path: names, line, is_private, .. } = import;
            let said = Said { from, line: *line, names, is_reexport: !is_private };
            arrows.add(tree, &said, &tree.resolve_import(from, import));
        }
        let has_globs = module.imports.iter().any(|import| import.kind == Kind::Glob);
        for written in module.code.iter().flat_map(|code| tokens::paths(code.clone())) {
            let resolved = resolve(tree, from, &written, has_globs);
            let Written { names, line, .. } = &written;
            arrows.add(tree, &Said { from, line: *line, names, is_reexport: false }, &resolved);
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

/// A path, and where it stands.
struct Said<'a> {
    from: usize,
    line: usize,
    names: &'a [String],
    is_reexport: bool,
}

impl Arrows {
    fn add(&mut self, tree: &Tree, said: &Said<'_>, resolved: &Resolved) {
        let Said { from, line, names, is_reexport } = *said;
        let at = Place { file: tree.modules[from].file.clone(), line };
        let path = names.join("::");
        let through = resolved.through.iter().filter(|&&it| !tree.is_in(from, it));
        let mut used: BTreeSet<usize> = through.copied().collect();
        for target in &resolved.targets {
            match target {
                Target::Module(to) | Target::Item(to) => _ = used.insert(*to),
                Target::Crate(name) => {
                    let name = name.clone();
                    self.outward.insert(Outward { name, at: at.clone(), path: path.clone() });
                }
            }
        }
        used.remove(&from);
        let arrow = |to| Arrow { from, to, is_reexport, at: at.clone(), path: path.clone() };
        self.inner.extend(used.into_iter().map(arrow));
    }
}
