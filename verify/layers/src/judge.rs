//! Judging a target by the layers of its modules: arrows that go up, circles, modules without a layer.
//!
//! In a circle an arrow counts where the ways from the root to its two ends part: there it leads from one child of a module
//! to another. A deeper module that the table names stands for itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Module, ROOT, Written};

/// A target and its layers.
#[derive(Debug)]
pub struct Target<'a> {
    /// The root, relative to the workspace.
    root: &'a str,
    /// Its modules.
    modules: &'a [Module],
    /// The layer of each module that the table names, from 1 at the top.
    places: BTreeMap<Vec<String>, usize>,
}

/// A module uses another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    from: usize,
    to: usize,
    is_reexport: bool,
    /// Where, and what it says.
    said: String,
}

/// The name of a module.
type Name<'a> = &'a [String];
/// Who uses whom, among modules with one parent.
type Graph<'a> = BTreeMap<Name<'a>, BTreeSet<Name<'a>>>;

impl<'a> Target<'a> {
    /// Adds what is wrong with the names of its layers, each of which lists its modules, separated by spaces.
    pub fn new(
        root: &'a str,
        modules: &'a [Module],
        layers: &[String],
        faults: &mut BTreeSet<String>,
    ) -> Self {
        let mut target = Self { root, modules, places: BTreeMap::new() };
        let known: BTreeSet<_> = target.product().map(|(_, it)| &it.path[..]).collect();
        let names = (1..).zip(layers).flat_map(|(nth, it)| it.split(' ').map(move |it| (nth, it)));
        for (layer, name) in names {
            let path: Vec<_> = name.split("::").map(str::to_owned).collect();
            if !known.contains(&path[..]) {
                faults.insert(format!(
                    "the table of {root}: there is no module `{name}` outside tests"
                ));
            } else if target.places.insert(path, layer).is_some() {
                faults.insert(format!("the table of {root}: module `{name}` is there twice"));
            }
        }
        target
    }

    /// The modules that are product code.
    pub fn product(&self) -> impl Iterator<Item = (usize, &'a Module)> + use<'a> {
        self.modules.iter().enumerate().filter(|(_, module)| !module.is_test)
    }

    /// Adds what is wrong with the target; returns how many arrows it has.
    pub fn judge(&self, faults: &mut BTreeSet<String>) -> usize {
        let without =
            |(nth, it): &(usize, &Module)| it.path.len() == 1 && self.layer(*nth).is_none();
        faults.extend(self.product().filter(without).map(|(_, Module { path, file, .. })| {
            let (root, file) = (self.root, file.display());
            format!("{file}: module `{}` is in no layer of {root}; add it to the table", path[0])
        }));
        let arrows: BTreeSet<_> = self.product().flat_map(|(nth, _)| self.arrows_of(nth)).collect();
        let (up, level): (Vec<_>, Vec<_>) = arrows.iter().partition(|arrow| self.is_up(arrow));
        faults.extend(up.iter().map(|Arrow { from, to, said, .. }| {
            let [low, high] = [*from, *to].map(|it| (self.path(it).join("::"), self.layer(it)));
            match (low, high) {
                ((from, Some(low)), (to, Some(high))) => {
                    format!("{said} goes up from {from} (layer {low}) to {to} (layer {high})")
                }
                ((from, _), _) => {
                    format!("{said} goes up from {from} to the root; name the module that defines the item, or move it down")
                }
            }
        }));
        self.circles(&level, faults);
        arrows.len()
    }

    fn arrows_of(&self, from: usize) -> impl Iterator<Item = Arrow> {
        let here = &self.modules[from];
        let paths = here.paths.iter().filter(|it| leads_inward(here, &it.names[0]));
        paths.flat_map(move |Written { names, line, is_reexport }| {
            let said = format!("{}:{line}: `{}`", here.file.display(), names.join("::"));
            let to = self.follow(from, from, names, 8).into_iter().filter(move |to| *to != from);
            to.map(move |to| Arrow { from, to, is_reexport: *is_reexport, said: said.clone() })
        })
    }

    /// The modules that a path in `at` leads `user` to: the one that defines what it names, and those that it did not
    /// come from which hand it on. None, if it leads out of the crate.
    fn follow(&self, user: usize, mut at: usize, names: &[String], hops: usize) -> BTreeSet<usize> {
        for (nth, name) in names.iter().enumerate() {
            let here = &self.modules[at];
            match name.as_str() {
                "crate" => at = ROOT,
                "self" => {}
                "super" => at = here.parent,
                name => {
                    if let Some(&child) = here.children.get(name) {
                        at = child;
                        continue;
                    }
                    let mut imports = here.imports.iter().filter(|it| it.0 == name).peekable();
                    if hops == 0 || here.macros.contains(name) || imports.peek().is_none() {
                        break;
                    }
                    let mut found = BTreeSet::new();
                    for (_, path) in imports
                        .filter(|(_, path)| !is_itself(name, path) && leads_inward(here, &path[0]))
                    {
                        for to in self.follow(at, at, path, hops - 1) {
                            found.extend(self.follow(user, to, &names[nth + 1..], hops - 1));
                        }
                    }
                    if !self.path(user).starts_with(&here.path) {
                        found.insert(at);
                    }
                    return found;
                }
            }
        }
        BTreeSet::from([at])
    }

    fn path(&self, module: usize) -> Name<'a> {
        &self.modules[module].path
    }

    /// The longest name of the table for a module, and its layer.
    fn place(&self, module: usize) -> Option<(Name<'a>, usize)> {
        let path = self.path(module);
        let mut parents = (1..=path.len()).rev().map(|length| &path[..length]);
        parents.find_map(|path| Some((path, *self.places.get(path)?)))
    }

    fn layer(&self, module: usize) -> Option<usize> {
        Some(self.place(module)?.1)
    }

    fn is_up(&self, &Arrow { from, to, is_reexport, .. }: &Arrow) -> bool {
        match (self.layer(from), self.layer(to)) {
            _ if from == ROOT => false,
            _ if to == ROOT => true,
            // A module hands on what is in it.
            _ if is_reexport && self.path(to).starts_with(self.path(from)) => false,
            (Some(low), Some(high)) => high < low,
            // That it has no layer is a fault of its own.
            _ => false,
        }
    }

    /// Adds every arrow that is part of a circle, once for both of its ends.
    fn circles(&self, arrows: &[&Arrow], faults: &mut BTreeSet<String>) {
        let mut graph = Graph::new();
        let mut steps = BTreeMap::new();
        for arrow in arrows {
            if let Some((from, to)) = self.siblings(arrow) {
                graph.entry(from).or_default().insert(to);
                steps.entry((from, to)).or_insert(&arrow.said);
            }
        }
        for ((from, to), said) in steps.iter().filter(|((from, to), _)| reaches(&graph, to, from)) {
            let (from, to) = (from.join("::"), to.join("::"));
            faults.insert(format!("{said} is part of a circle: {from} -> {to}"));
        }
    }

    /// The two modules with one parent that an arrow leads between; none, if one of its ends is in the other.
    fn siblings(&self, arrow: &Arrow) -> Option<(Name<'a>, Name<'a>)> {
        let (from, to) = (self.path(arrow.from), self.path(arrow.to));
        let common = from.iter().zip(to).take_while(|(one, other)| one == other).count();
        if common == from.len() || common == to.len() {
            return None;
        }
        let end = |module: usize| {
            let named = self.place(module).map_or(0, |(name, _)| name.len());
            &self.path(module)[..named.max(common + 1)]
        };
        Some((end(arrow.from), end(arrow.to)))
    }
}

/// Whether a path that begins so stays in the crate.
fn leads_inward(here: &Module, first: &str) -> bool {
    let is_imported =
        || here.imports.iter().any(|(name, path)| name == first && !is_itself(name, path));
    ["crate", "self", "super"].contains(&first)
        || here.children.contains_key(first)
        || is_imported()
}

/// Whether a `use` brings a crate, or a macro, into scope by its own name.
fn is_itself(name: &str, path: &[String]) -> bool {
    path.len() == 1 && path[0] == name
}

fn reaches<'a>(graph: &Graph<'a>, from: Name<'a>, to: Name<'a>) -> bool {
    let (mut left, mut seen) = (vec![from], BTreeSet::new());
    while let Some(at) = left.pop() {
        left.extend(graph.get(at).into_iter().flatten().filter(|it| seen.insert(**it)));
    }
    seen.contains(to)
}
