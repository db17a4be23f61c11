//! Judging a target by the layers of its modules: arrows that go up, circles, modules without a layer.
//!
//! In a circle an arrow counts where the ways from the root to its two ends part: there it leads from one child of a module
//! to another. A deeper module that the table names stands for itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::arrows::Arrow;
use crate::tree::{ROOT, Tree};

/// A target and its layers.
#[derive(Debug)]
pub struct Target<'a> {
    /// The folder of its crate.
    pub krate: &'a str,
    /// Its root, relative to that.
    pub root: &'a str,
    /// Its modules.
    pub tree: &'a Tree,
    /// The layer of each module that the table names, from 1 at the top.
    places: BTreeMap<Vec<String>, usize>,
}

/// The name of a module.
type Name<'a> = &'a [String];
/// Who uses whom, and where.
type Graph<'a> = BTreeMap<(Name<'a>, Name<'a>), Vec<&'a Arrow>>;

impl<'a> Target<'a> {
    /// Adds what is wrong with the names of its layers, each of which lists its modules, separated by spaces.
    pub fn new(
        krate: &'a str,
        root: &'a str,
        tree: &'a Tree,
        layers: &[String],
        faults: &mut BTreeSet<String>,
    ) -> Self {
        let known: BTreeSet<&[String]> = tree.product().map(|(_, it)| &it.path[..]).collect();
        let mut places = BTreeMap::new();
        let of_table = format!("verify/layers.toml: `{krate}`, `{root}`");
        let names = (1..).zip(layers).flat_map(|(nth, it)| it.split(' ').map(move |it| (nth, it)));
        for (layer, name) in names.filter(|(_, name)| !name.is_empty()) {
            let path: Vec<_> = name.split("::").map(str::to_owned).collect();
            if !known.contains(&path[..]) {
                faults.insert(format!("{of_table}: there is no module `{name}` outside tests"));
            } else if places.insert(path, layer).is_some() {
                faults.insert(format!("{of_table}: module `{name}` is there twice"));
            }
        }
        Self { krate, root, tree, places }
    }

    /// The longest name of the table for a module, and its layer.
    fn place(&self, module: usize) -> Option<(Name<'_>, usize)> {
        let path = &self.tree.modules[module].path;
        let parents = (1..=path.len()).rev().map(|length| &path[..length]);
        parents.into_iter().find_map(|path| Some((path, *self.places.get(path)?)))
    }

    fn layer(&self, module: usize) -> Option<usize> {
        Some(self.place(module)?.1)
    }

    /// Adds what is wrong with a target that has these arrows.
    pub fn judge(&self, arrows: &BTreeSet<Arrow>, faults: &mut BTreeSet<String>) {
        for (nth, module) in self.tree.product() {
            if module.path.len() == 1 && self.layer(nth).is_none() {
                faults.insert(format!(
                    "{}: module `{}` is in no layer of `{}/{}`; add it to the table",
                    module.file.display(),
                    module.name(),
                    self.krate,
                    self.root
                ));
            }
        }
        let (up, level): (Vec<_>, Vec<_>) = arrows.iter().partition(|arrow| self.is_up(arrow));
        faults.extend(up.iter().map(|arrow| self.said_of(arrow)));
        self.circles(&level, faults);
    }

    fn is_up(&self, arrow: &Arrow) -> bool {
        let Arrow { from, to, is_reexport, .. } = arrow;
        match (self.layer(*from), self.layer(*to)) {
            _ if *from == ROOT => false,
            _ if *to == ROOT => true,
            // A module hands on what is in it.
            _ if *is_reexport && self.tree.is_in(*to, *from) => false,
            (Some(low), Some(high)) => high < low,
            // That it has no layer is a fault of its own.
            _ => false,
        }
    }

    fn said_of(&self, Arrow { from, to, at, path, .. }: &Arrow) -> String {
        let [from_name, to_name] = [*from, *to].map(|module| self.tree.modules[module].name());
        let up = format!("{at}: `{path}` goes up from {from_name}");
        match (self.layer(*from), self.layer(*to)) {
            (Some(low), Some(high)) => format!("{up} (layer {low}) to {to_name} (layer {high})"),
            _ => format!("{up} to an item of the root {}; move the item down", self.root),
        }
    }

    /// Adds the circles: short ones first, until every one that is left out has an arrow of one that is there.
    fn circles(&self, arrows: &[&Arrow], faults: &mut BTreeSet<String>) {
        let mut graphs: BTreeMap<Name<'_>, Graph<'_>> = BTreeMap::new();
        for arrow in arrows {
            if let Some((parent, ends)) = self.siblings(arrow) {
                graphs.entry(parent).or_default().entry(ends).or_default().push(arrow);
            }
        }
        for mut graph in graphs.into_values() {
            while let Some(circle) = shortest(&graph) {
                let next = circle.iter().cycle().skip(1);
                let ends: Vec<_> = circle.iter().zip(next).map(|(&from, &to)| (from, to)).collect();
                let steps = ends.iter().filter_map(|ends| step(*ends, &graph.remove(ends)?));
                faults.insert(format!("circle: {}", steps.collect::<Vec<_>>().join(", ")));
            }
        }
    }

    /// The two modules with one parent that an arrow leads between; none, if one of its ends is in the other.
    fn siblings(&self, arrow: &Arrow) -> Option<(Name<'_>, (Name<'_>, Name<'_>))> {
        let path = |module: usize| &self.tree.modules[module].path[..];
        let (from, to) = (path(arrow.from), path(arrow.to));
        let common = from.iter().zip(to).take_while(|(one, other)| one == other).count();
        if common == from.len() || common == to.len() {
            return None;
        }
        let end = |module: usize| {
            let named = self.place(module).map_or(0, |(name, _)| name.len());
            &path(module)[..named.max(common + 1)]
        };
        Some((&from[..common], (end(arrow.from), end(arrow.to))))
    }
}

fn step((from, to): (Name<'_>, Name<'_>), arrows: &[&Arrow]) -> Option<String> {
    let (Arrow { at, path, .. }, others) = arrows.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        count => format!(", and {count} more"),
    };
    Some(format!("{} -> {} ({at} {path}{more})", from.join("::"), to.join("::")))
}

/// A shortest circle of the graph, without its first module at the end.
fn shortest<'a>(graph: &Graph<'a>) -> Option<Vec<Name<'a>>> {
    let starts: BTreeSet<_> = graph.keys().map(|(from, _)| *from).collect();
    starts.into_iter().filter_map(|start| back_to(start, graph)).min_by_key(Vec::len)
}

/// The shortest way from a module back to it.
fn back_to<'a>(start: Name<'a>, graph: &Graph<'a>) -> Option<Vec<Name<'a>>> {
    let (mut left, mut seen) = (VecDeque::from([vec![start]]), BTreeSet::new());
    while let Some(way) = left.pop_front() {
        let last = *way.last()?;
        for (_, module) in graph.keys().filter(|(from, _)| *from == last) {
            if *module == start {
                return Some(way);
            }
            if seen.insert(*module) {
                left.push_back([&way[..], &[*module]].concat());
            }
        }
    }
    None
}
