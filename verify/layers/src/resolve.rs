//! Where the item is defined that a path names: through imports, re-exports and globs, private ones too.

use std::collections::BTreeSet;

use crate::tree::{Import, Kind, ROOT, Tree};

/// What a name or a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A module.
    Module(usize),
    /// An item that this module defines.
    Item(usize),
    /// Something of another crate, by the first name of its path.
    Crate(String),
}

/// What a path leads to, and the modules that it names on its way there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// More than one where a name means several things.
    pub targets: BTreeSet<Target>,
    /// The modules that only re-export what the path names.
    pub through: BTreeSet<usize>,
}

/// The names that are being looked up: imports may form circles.
type Pending = BTreeSet<(usize, String)>;

impl Tree {
    /// What a path in `module` leads to.
    pub fn resolve_path(&self, module: usize, names: &[String], of_crates: bool) -> Resolved {
        self.resolve(module, names, of_crates, &mut Pending::new())
    }

    /// What a path of an import in `module` leads to.
    pub fn resolve_import(&self, module: usize, import: &Import) -> Resolved {
        let mut pending = Pending::new();
        if let (Kind::Name(name), [first]) = (&import.kind, &import.path[..]) {
            if name == first {
                pending.insert((module, name.clone()));
            }
        }
        self.resolve(module, &import.path, import.of_crates, &mut pending)
    }

    /// A name that a glob import of `module` may have brought into scope.
    pub fn find_in_globs(&self, module: usize, name: &str) -> BTreeSet<Target> {
        let here = &self.modules[module];
        let is_known = here.items.contains(name)
            || here.imports.iter().any(|it| it.kind == Kind::Name(name.to_owned()));
        if is_known {
            return BTreeSet::new();
        }
        self.globs(module, name, module, &mut Pending::from([(module, name.to_owned())]))
    }

    /// The module that defines the macro `name`, which is called in `module` without a path.
    pub fn find_macro(&self, module: usize, name: &str) -> Option<usize> {
        let mut at = module;
        loop {
            let here = &self.modules[at];
            let lent = here.children.values().filter(|&&it| self.modules[it].lends_macros);
            let mut scope = [at].into_iter().chain(lent.copied());
            let found = scope.find(|&it| self.modules[it].macros.contains(name));
            if found.is_some() || at == ROOT {
                return found;
            }
            at = here.parent;
        }
    }

    fn resolve(
        &self,
        module: usize,
        names: &[String],
        of_crates: bool,
        pending: &mut Pending,
    ) -> Resolved {
        let mut resolved = Resolved::default();
        let Some((first, mut rest)) = names.split_first() else { return resolved };
        let mut at = match first.as_str() {
            _ if of_crates => BTreeSet::from([Target::Crate(first.clone())]),
            "crate" => BTreeSet::from([Target::Module(ROOT)]),
            "self" | "super" => {
                let (up, left) = self.climb(module, names);
                rest = left;
                BTreeSet::from([Target::Module(up)])
            }
            "Self" => return resolved,
            name => {
                let mut found = self.look_up(module, name, module, pending);
                // A path does not go on behind a function: this is something else of that name.
                if !rest.is_empty() && self.modules[module].values.contains(name) {
                    found.remove(&Target::Item(module));
                }
                if found.is_empty() {
                    BTreeSet::from([Target::Crate(first.clone())])
                } else {
                    found
                }
            }
        };
        for name in rest.iter().filter(|name| *name != "self") {
            at = self.step(at, name, module, &mut resolved.through, pending);
        }
        resolved.targets = at;
        resolved
    }

    /// Follows `self` and `super` at the beginning: the module that they lead to, and the names behind them.
    fn climb<'n>(&self, mut module: usize, mut names: &'n [String]) -> (usize, &'n [String]) {
        while let Some((first, left)) = names.split_first() {
            match first.as_str() {
                "self" => {}
                "super" => module = self.modules[module].parent,
                _ => break,
            }
            names = left;
        }
        (module, names)
    }

    /// What `name` is in each of these.
    fn step(
        &self,
        at: BTreeSet<Target>,
        name: &str,
        user: usize,
        through: &mut BTreeSet<usize>,
        pending: &mut Pending,
    ) -> BTreeSet<Target> {
        let has_modules = at.iter().any(|it| matches!(it, Target::Module(_)));
        let mut next = BTreeSet::new();
        for target in at {
            match target {
                Target::Module(module) => {
                    let found = self.look_up(module, name, user, pending);
                    let here = &self.modules[module];
                    if !here.items.contains(name)
                        && !here.children.contains_key(name)
                        && !found.is_empty()
                    {
                        through.insert(module);
                    }
                    // What is not found, a macro has defined.
                    let made = found.is_empty().then_some(Target::Item(module));
                    next.extend(found.into_iter().chain(made));
                }
                // A variant, an associated item: it is where its type is.
                other if !has_modules => _ = next.insert(other),
                Target::Item(_) | Target::Crate(_) => {}
            }
        }
        next
    }

    /// What `name` is in `module`, as `user` sees it.
    fn look_up(
        &self,
        module: usize,
        name: &str,
        user: usize,
        pending: &mut Pending,
    ) -> BTreeSet<Target> {
        let here = &self.modules[module];
        let mut found = BTreeSet::new();
        found.extend(here.children.get(name).map(|&child| Target::Module(child)));
        found.extend(here.items.contains(name).then_some(Target::Item(module)));
        if !pending.insert((module, name.to_owned())) {
            return found;
        }
        for import in &here.imports {
            if import.kind == Kind::Name(name.to_owned()) && self.sees(user, module, import) {
                found.extend(self.resolve(module, &import.path, import.of_crates, pending).targets);
            }
        }
        if found.is_empty() {
            found = self.globs(module, name, user, pending);
        }
        // In the module itself a name that a macro mentions may be anything: a crate, too.
        if found.is_empty() && module != user && here.perhaps.contains(name) {
            found.insert(Target::Item(module));
        }
        pending.remove(&(module, name.to_owned()));
        found
    }

    fn globs(
        &self,
        module: usize,
        name: &str,
        user: usize,
        pending: &mut Pending,
    ) -> BTreeSet<Target> {
        let mut found = BTreeSet::new();
        for import in &self.modules[module].imports {
            if import.kind != Kind::Glob || !self.sees(user, module, import) {
                continue;
            }
            for target in self.resolve(module, &import.path, import.of_crates, pending).targets {
                if let Target::Module(from) = target {
                    found.extend(self.look_up(from, name, module, pending));
                }
            }
        }
        found
    }

    fn sees(&self, user: usize, module: usize, import: &Import) -> bool {
        !import.is_private || self.is_in(user, module)
    }
}
