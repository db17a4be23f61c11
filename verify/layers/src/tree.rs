//! The modules of a target, read from its root: what each of them defines, imports and says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;

use crate::fault::{Fault, LayersError, Place};
use crate::product::is_test;

mod read;

/// A module. Those of tests have no children and are nobody's child.
#[derive(Debug, Default)]
pub struct Module {
    /// Its name, and those of its parents but the root.
    pub path: Vec<String>,
    /// The module that it is in; that of the root is the root.
    pub parent: usize,
    /// Its file, relative to the workspace.
    pub file: PathBuf,
    /// Whether it is only there for tests.
    pub is_test: bool,
    /// Its modules.
    pub children: BTreeMap<String, usize>,
    /// What it defines.
    pub items: BTreeSet<String>,
    /// The functions, constants and statics among these.
    pub values: BTreeSet<String>,
    /// What it may define: every name in what its macros are called with.
    pub perhaps: BTreeSet<String>,
    /// Its macros, which are in scope below it without a path.
    pub macros: BTreeSet<String>,
    /// Whether its macros are in scope in its parent too.
    pub lends_macros: bool,
    /// Its `use` declarations, and those in its functions.
    pub imports: Vec<Import>,
    /// Its items.
    pub code: Vec<TokenStream>,
}

impl Module {
    /// Its path, as it is in the table.
    pub fn name(&self) -> String {
        self.path.join("::")
    }
}

/// A leaf of a `use` declaration.
#[derive(Debug)]
pub struct Import {
    /// What is imported, as it is written.
    pub path: Vec<String>,
    /// Whether the path begins with `::`.
    pub of_crates: bool,
    /// Where.
    pub line: usize,
    /// What it is called here.
    pub kind: Kind,
    /// Whether only this module and those in it see it.
    pub is_private: bool,
}

/// What an import brings into scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name.
    Name(String),
    /// All that a module has.
    Glob,
    /// Nothing that has a name.
    Unnamed,
}

/// The modules of a target; the root is the first.
#[derive(Debug)]
pub struct Tree {
    /// All of them, those of tests too.
    pub modules: Vec<Module>,
}

/// The root of every target.
pub const ROOT: usize = 0;

impl Tree {
    /// Those that are product code.
    pub fn product(&self) -> impl Iterator<Item = (usize, &Module)> {
        self.modules.iter().enumerate().filter(|(_, module)| !module.is_test)
    }

    /// Whether `parent` is `module`, or a module that it is in.
    pub fn is_in(&self, module: usize, parent: usize) -> bool {
        self.modules[module].path.starts_with(&self.modules[parent].path)
    }
}

/// The target with this root; adds the files that it consists of to `reached`, and the faults that are found.
pub fn read(
    workspace: &Path,
    root: &Path,
    reached: &mut BTreeSet<PathBuf>,
    faults: &mut Vec<Fault>,
) -> Result<Tree, LayersError> {
    let first = Module { file: root.to_owned(), ..Module::default() };
    let mut reader = Reader { workspace, modules: vec![first], reached, faults };
    let folder = root.parent().unwrap_or(root).to_owned();
    let spot = Spot { module: ROOT, file: root.to_owned(), beside: folder.clone(), folder };
    reader.file(&spot)?;
    Ok(Tree { modules: reader.modules })
}

struct Reader<'a> {
    workspace: &'a Path,
    modules: Vec<Module>,
    reached: &'a mut BTreeSet<PathBuf>,
    faults: &'a mut Vec<Fault>,
}

/// Where items are.
struct Spot {
    module: usize,
    file: PathBuf,
    /// Where the files of its modules are.
    folder: PathBuf,
    /// What `#[path]` is relative to.
    beside: PathBuf,
}

impl Reader<'_> {
    fn file(&mut self, spot: &Spot) -> Result<(), LayersError> {
        self.reached.insert(spot.file.clone());
        let full = self.workspace.join(&spot.file);
        let text =
            fs::read_to_string(&full).map_err(|error| LayersError::Read { path: full, error })?;
        let parsed = syn::parse_file(&text).map_err(|error| {
            let at = Place { file: spot.file.clone(), line: error.span().start().line };
            LayersError::Parse { at, error }
        })?;
        self.modules[spot.module].is_test |= is_test(&parsed.attrs);
        self.items(parsed.items, spot)
    }

    /// The module called `name` in that of `spot`, new or, under another `cfg`, known.
    fn module(&mut self, name: &str, is_test: bool, spot: &Spot) -> usize {
        let parent = &self.modules[spot.module];
        let is_test = is_test || parent.is_test;
        if let (Some(&known), false) = (parent.children.get(name), is_test) {
            return known;
        }
        let mut path = parent.path.clone();
        path.push(name.to_owned());
        let (parent, file, new) = (spot.module, spot.file.clone(), self.modules.len());
        self.modules.push(Module { path, parent, file, is_test, ..Module::default() });
        if !is_test {
            self.modules[parent].children.insert(name.to_owned(), new);
        }
        new
    }
}
