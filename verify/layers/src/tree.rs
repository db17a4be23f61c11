//! The modules of a target, read from its root: what each of them defines, imports and says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, ExprLit, Item, ItemExternCrate, ItemMacro, ItemMod, ItemUse, Lit, Meta,
    UseTree, Visibility,
};

use crate::product::{branches, is_for_tests, is_test, prune};

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Relative to the workspace.
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

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
    faults: &mut BTreeSet<String>,
) -> Result<Tree> {
    let first = Module { file: root.to_owned(), ..Module::default() };
    let mut reader = Reader { workspace, modules: vec![first], reached, faults };
    let folder = root.parent().unwrap_or(root).to_owned();
    reader.file(&Spot { module: ROOT, file: root.to_owned(), beside: folder.clone(), folder })?;
    Ok(Tree { modules: reader.modules })
}

struct Reader<'a> {
    workspace: &'a Path,
    modules: Vec<Module>,
    reached: &'a mut BTreeSet<PathBuf>,
    faults: &'a mut BTreeSet<String>,
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
    fn file(&mut self, spot: &Spot) -> Result<()> {
        self.reached.insert(spot.file.clone());
        let text = read_text(&self.workspace.join(&spot.file))?;
        let parsed = syn::parse_file(&text).or_else(|error| {
            let at = Place { file: spot.file.clone(), line: error.span().start().line };
            Err(error).with_context(|| format!("{at}: cannot parse this"))
        })?;
        let module = &mut self.modules[spot.module];
        module.is_test |= parsed.attrs.iter().any(is_for_tests);
        let is_test = module.is_test;
        self.items(parsed.items, is_test, spot)
    }

    /// Of what is only there for tests, modules are read, and marked as that: their files are known.
    fn items(&mut self, items: Vec<Item>, of_tests: bool, spot: &Spot) -> Result<()> {
        for item in items {
            let is_test = of_tests || is_test(&item);
            let here = &mut self.modules[spot.module];
            match item {
                Item::Mod(declared) => self.declared(declared, is_test, spot)?,
                Item::Macro(called) if called.ident.is_none() => {
                    self.called(&called, is_test, spot)?;
                }
                _ if is_test => {}
                Item::Macro(defined) => self.defined(defined, spot.module),
                Item::Use(found) => imports(here, &found),
                Item::ExternCrate(found) => here.imports.push(crate_import(&found)),
                item => define(here, item),
            }
        }
        Ok(())
    }

    /// A macro that may define something. Of `cfg_if!`, all branches count: each of them is compiled somewhere.
    fn called(&mut self, called: &ItemMacro, is_test: bool, spot: &Spot) -> Result<()> {
        let tokens = &called.mac.tokens;
        if called.mac.path.segments.last().is_some_and(|last| last.ident == "cfg_if") {
            for (for_tests, body) in branches(tokens) {
                let parsed = syn::parse2::<syn::File>(body).with_context(|| {
                    let line = called.span().start().line;
                    format!("{}: cannot parse this", Place { file: spot.file.clone(), line })
                })?;
                self.items(parsed.items, is_test || for_tests, spot)?;
            }
            return Ok(());
        }
        let here = &mut self.modules[spot.module];
        let parsed = syn::parse2::<syn::File>(tokens.clone());
        if !is_test {
            names(tokens.clone(), &mut here.perhaps);
            here.code.push(match &parsed {
                Ok(_) => {
                    let (path, bang) = (&called.mac.path, &called.mac.bang_token);
                    quote::quote!(#path #bang)
                }
                // It has a syntax of its own.
                Err(_) => called.mac.to_token_stream(),
            });
        }
        parsed.map_or(Ok(()), |parsed| self.items(parsed.items, is_test, spot))
    }

    fn declared(&mut self, of: ItemMod, is_test: bool, spot: &Spot) -> Result<()> {
        let name = of.ident.to_string();
        let module = self.module(&name, is_test, spot);
        self.modules[module].lends_macros =
            of.attrs.iter().any(|it| it.path().is_ident("macro_use"));
        let path = path_attribute(&of.attrs);
        let folder = spot.folder.join(path.as_deref().unwrap_or(&name));
        if let Some((_, items)) = of.content {
            let inner =
                Spot { module, file: spot.file.clone(), folder: folder.clone(), beside: folder };
            return self.items(items, is_test, &inner);
        }
        let candidates = match &path {
            Some(path) => vec![spot.beside.join(path)],
            None => vec![spot.folder.join(format!("{name}.rs")), folder.join("mod.rs")],
        };
        let exists = |file: &PathBuf| self.workspace.join(file).is_file();
        let Some(file) = candidates.into_iter().find(exists) else {
            let at = Place { file: spot.file.clone(), line: of.ident.span().start().line };
            self.faults.insert(format!("{at}: module `{name}` has no file"));
            return Ok(());
        };
        let file = normal(&file);
        let beside = file.parent().unwrap_or(&file).to_owned();
        // As rustc does it: a file that an attribute names has its modules beside it.
        let folder =
            if path.is_some() || file.ends_with("mod.rs") { beside.clone() } else { folder };
        self.modules[module].file.clone_from(&file);
        self.file(&Spot { module, file, folder, beside })
    }

    /// The module called `name` in that of `spot`, new or, under another `cfg`, known.
    fn module(&mut self, name: &str, is_test: bool, spot: &Spot) -> usize {
        let parent = &self.modules[spot.module];
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

    fn defined(&mut self, defined: ItemMacro, module: usize) {
        let Some(name) = &defined.ident else { return };
        let (line, name) = (name.span().start().line, name.to_string());
        let here = &mut self.modules[module];
        here.items.insert(name.clone());
        here.macros.insert(name.clone());
        let path = [vec!["crate".to_owned()], here.path.clone(), vec![name.clone()]].concat();
        here.code.push(defined.mac.tokens);
        if defined.attrs.iter().any(|it| it.path().is_ident("macro_export")) && module != ROOT {
            let kind = Kind::Name(name);
            let import = Import { path, of_crates: false, line, kind, is_private: false };
            self.modules[ROOT].imports.push(import);
        }
    }
}

fn names(tokens: TokenStream, into: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => _ = into.insert(name.to_string()),
            TokenTree::Group(group) => names(group.stream(), into),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn define(module: &mut Module, mut item: Item) {
    let name = match &item {
        Item::Const(it) => Some(&it.ident),
        Item::Static(it) => Some(&it.ident),
        Item::Fn(it) => Some(&it.sig.ident),
        Item::Enum(it) => Some(&it.ident),
        Item::Struct(it) => Some(&it.ident),
        Item::Trait(it) => Some(&it.ident),
        Item::TraitAlias(it) => Some(&it.ident),
        Item::Type(it) => Some(&it.ident),
        Item::Union(it) => Some(&it.ident),
        Item::ForeignMod(foreign) => {
            foreign.items.iter().for_each(|it| names(it.to_token_stream(), &mut module.perhaps));
            None
        }
        _ => None,
    };
    if matches!(item, Item::Const(_) | Item::Static(_) | Item::Fn(_)) {
        module.values.extend(name.map(ToString::to_string));
    }
    module.items.extend(name.map(ToString::to_string));
    for inner in prune(&mut item) {
        imports(module, &inner);
    }
    module.code.push(item.to_token_stream());
}

fn imports(module: &mut Module, found: &ItemUse) {
    let is_private = matches!(found.vis, Visibility::Inherited);
    let template = (found.leading_colon.is_some(), is_private);
    leaves(&found.tree, &mut Vec::new(), template, &mut module.imports);
}

/// `extern crate self` is the root.
fn crate_import(found: &ItemExternCrate) -> Import {
    let name = found.ident.to_string();
    let called = found.rename.as_ref().map_or(&found.ident, |(_, called)| called);
    let is_self = name == "self";
    Import {
        path: vec![if is_self { "crate".to_owned() } else { name }],
        of_crates: !is_self,
        line: found.ident.span().start().line,
        kind: Kind::Name(called.to_string()),
        is_private: matches!(found.vis, Visibility::Inherited),
    }
}

fn leaves(tree: &UseTree, above: &mut Vec<String>, of: (bool, bool), into: &mut Vec<Import>) {
    let (of_crates, is_private) = of;
    let (last, line, kind) = match tree {
        UseTree::Path(path) => {
            above.push(path.ident.to_string());
            leaves(&path.tree, above, of, into);
            above.pop();
            return;
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|item| leaves(item, above, of, into));
            return;
        }
        UseTree::Name(name) => {
            let own = name.ident.to_string();
            let called = if own == "self" { above.last().cloned() } else { Some(own.clone()) };
            (Some(own), name.span(), called.map_or(Kind::Unnamed, Kind::Name))
        }
        UseTree::Rename(rename) => {
            let called = rename.rename.to_string();
            let kind = if called == "_" { Kind::Unnamed } else { Kind::Name(called) };
            (Some(rename.ident.to_string()), rename.ident.span(), kind)
        }
        UseTree::Glob(glob) => (None, glob.span(), Kind::Glob),
    };
    let path: Vec<_> = above.iter().cloned().chain(last).collect();
    into.push(Import { path, of_crates, line: line.start().line, kind, is_private });
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) = &pair.value else { return None };
    Some(path.value())
}

/// Without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, component| {
        match component {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            other => normal.push(other),
        }
        normal
    })
}

/// The text of a file.
pub fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
