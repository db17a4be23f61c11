//! The place of each module of a target: its layer.

use std::collections::{BTreeMap, BTreeSet};

use crate::fault::Fault;
use crate::table::Layers;
use crate::tree::Tree;

/// A target and its layers.
#[derive(Debug)]
pub struct Target<'a> {
    /// The folder of its crate.
    pub krate: &'a str,
    /// Its root, relative to that.
    pub root: &'a str,
    /// Its modules.
    pub tree: &'a Tree,
    /// By the names that the table has.
    places: BTreeMap<Vec<String>, usize>,
}

impl<'a> Target<'a> {
    /// Adds what is wrong with the names of its layers.
    pub fn new(
        krate: &'a str,
        root: &'a str,
        tree: &'a Tree,
        layers: &Layers,
        faults: &mut Vec<Fault>,
    ) -> Self {
        let known: BTreeSet<&[String]> = tree.product().map(|(_, it)| &it.path[..]).collect();
        let mut places = BTreeMap::new();
        for (layer, name) in layers.modules() {
            let path: Vec<_> = name.split("::").map(str::to_owned).collect();
            let (krate, target) = (krate.to_owned(), root.to_owned());
            if !known.contains(&path[..]) {
                faults.push(Fault::NoSuchModule { krate, target, module: name.to_owned() });
            } else if places.insert(path, layer).is_some() {
                faults.push(Fault::Twice { krate, target, module: name.to_owned() });
            }
        }
        Self { krate, root, tree, places }
    }

    /// The longest name of the table for a module, and its layer.
    pub fn place(&self, module: usize) -> Option<(&[String], usize)> {
        let path = &self.tree.modules[module].path;
        let parents = (1..=path.len()).rev().map(|length| &path[..length]);
        parents.into_iter().find_map(|path| Some((path, *self.places.get(path)?)))
    }

    /// The layer of a module, from 1 at the top.
    pub fn layer(&self, module: usize) -> Option<usize> {
        Some(self.place(module)?.1)
    }
}
