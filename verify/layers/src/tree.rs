//! The modules of a target, read from its root, with the paths that each of them says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;
use std::mem;
use std::path::{Component, Path, PathBuf};

use proc_macro2::{Delimiter, Ident, Spacing, TokenStream, TokenTree, token_stream};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprLit, ItemMacro, ItemMod, ItemUse, Lit, Macro, Meta, UseTree, Visibility,
};

use crate::product::{is_for_tests, is_test};

/// A module.
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
    /// What `use` brings into its scope by a name, and from where.
    pub imports: BTreeSet<(String, Vec<String>)>,
    /// Its macros.
    pub macros: BTreeSet<String>,
    /// The paths that its product code says.
    pub paths: Vec<Written>,
}

/// A path as it is written, without generic arguments.
#[derive(Debug)]
pub struct Written {
    /// Its names.
    pub names: Vec<String>,
    /// Where, from 1.
    pub line: usize,
    /// Whether it is a re-export.
    pub is_reexport: bool,
}

/// The root of every target.
pub const ROOT: usize = 0;

/// The modules of the target with this root, which is the first; adds the files that it consists of to `reached`, and
/// the faults that are found.
pub fn read(
    workspace: &Path,
    root: &Path,
    reached: &mut BTreeSet<PathBuf>,
    faults: &mut BTreeSet<String>,
) -> Vec<Module> {
    let modules = vec![Module { file: root.to_owned(), ..Module::default() }];
    let folder = root.parent().unwrap_or(root).to_owned();
    let spot = Spot { module: ROOT, beside: folder.clone(), folder, is_test: false };
    let mut reader = Reader { workspace, modules, reached, faults, spot };
    reader.file(root);
    reader.modules
}

struct Reader<'a> {
    workspace: &'a Path,
    modules: Vec<Module>,
    reached: &'a mut BTreeSet<PathBuf>,
    faults: &'a mut BTreeSet<String>,
    spot: Spot,
}

/// Where the reader is.
struct Spot {
    module: usize,
    /// Where the files of its modules are.
    folder: PathBuf,
    /// What `#[path]` is relative to.
    beside: PathBuf,
    /// Of what is only there for tests, modules are read alone: their files are known.
    is_test: bool,
}

impl Reader<'_> {
    fn here(&mut self) -> &mut Module {
        &mut self.modules[self.spot.module]
    }

    fn file(&mut self, file: &Path) {
        self.reached.insert(file.to_owned());
        let text = fs::read_to_string(self.workspace.join(file));
        let parsed = text.map_err(|error| (1, error.to_string())).and_then(|text| {
            syn::parse_file(&text).map_err(|it| (it.span().start().line, it.to_string()))
        });
        match parsed {
            Ok(parsed) => {
                self.spot.is_test |= parsed.attrs.iter().any(is_for_tests);
                self.visit_file(&parsed);
            }
            Err((line, error)) => {
                self.faults.insert(format!("{}:{line}: cannot read this: {error}", file.display()));
            }
        }
    }

    /// The module called `name` in this one, new or, under another `cfg`, known.
    fn module(&mut self, name: &str) -> usize {
        if let Some(&known) = self.here().children.get(name) {
            return known;
        }
        let (parent, new) = (self.spot.module, self.modules.len());
        let path = [&self.here().path[..], &[name.to_owned()]].concat();
        let file = self.here().file.clone();
        self.here().children.insert(name.to_owned(), new);
        // Until it is declared for others, too.
        self.modules.push(Module { path, parent, file, is_test: true, ..Module::default() });
        new
    }

    /// The leaves of a `use` declaration below `above`; of a path in a macro, which brings nothing into scope.
    fn leaves(&mut self, tree: &UseTree, above: &[String], of: Option<&ItemUse>) {
        let below = |name: &Ident| match name {
            name if name == "self" && !above.is_empty() => above.to_vec(),
            name => [above, &[name.to_string()]].concat(),
        };
        let (names, line, called) = match tree {
            UseTree::Path(path) => return self.leaves(&path.tree, &below(&path.ident), of),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|item| self.leaves(item, above, of));
            }
            UseTree::Name(it) => {
                let names = below(&it.ident);
                let called = names.last().cloned();
                (names, it.ident.span(), called)
            }
            UseTree::Rename(it) => (below(&it.ident), it.ident.span(), Some(it.rename.to_string())),
            UseTree::Glob(glob) => (above.to_vec(), glob.star_token.spans[0], None),
        };
        if let (Some(called), Some(_), false) = (called, of, self.spot.is_test) {
            self.here().imports.insert((called, names.clone()));
        }
        let is_reexport = of.is_some_and(|it| !matches!(it.vis, Visibility::Inherited));
        let line = line.start().line;
        let is_path = names.len() > 1 || matches!(tree, UseTree::Glob(_));
        if is_path && !self.spot.is_test {
            self.here().paths.push(Written { names, line, is_reexport });
        }
    }

    /// What a macro is called with, or expands to: items, or paths among other tokens. Of `cfg_if!`, all branches
    /// count: each of them is compiled somewhere.
    fn tokens(&mut self, tokens: TokenStream) {
        if let Ok(parsed) = syn::parse2::<syn::File>(tokens.clone()) {
            return self.visit_file(&parsed);
        }
        let (mut tokens, is_test_here) = (tokens.into_iter().peekable(), self.spot.is_test);
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    if group.delimiter() == Delimiter::Brace {
                        self.spot.is_test = is_test_here;
                    }
                }
                TokenTree::Punct(mark) if [';', ','].contains(&mark.as_char()) => {
                    self.spot.is_test = is_test_here;
                }
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    let attribute = [TokenTree::Punct(mark)].into_iter().chain(tokens.next());
                    self.spot.is_test |= is_test(&attribute.collect::<TokenStream>());
                }
                TokenTree::Ident(first) => self.path(first, &mut tokens),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    /// A path among the tokens of a macro, which may end like a `use` declaration.
    fn path(&mut self, first: Ident, rest: &mut Peekable<token_stream::IntoIter>) {
        let is_colon =
            |token: &TokenTree| matches!(token, TokenTree::Punct(it) if it.as_char() == ':');
        let is_first = |token: &TokenTree| matches!(token, TokenTree::Punct(it) if it.spacing() == Spacing::Joint);
        let mut path = vec![TokenTree::Ident(first)];
        while let Some(next) = rest.next_if(|next| {
            let goes_on = match next {
                TokenTree::Ident(_) => true,
                TokenTree::Group(it) => it.delimiter() == Delimiter::Brace,
                TokenTree::Punct(it) => it.as_char() == '*',
                TokenTree::Literal(_) => false,
            };
            let is_after = path.last().is_some_and(is_colon);
            is_colon(next) && (is_after || is_first(next)) || goes_on && is_after
        }) {
            path.push(next);
        }
        path.truncate(path.iter().rposition(|it| !is_colon(it)).map_or(0, |last| last + 1));
        if let Ok(tree) = syn::parse2(path.into_iter().collect()) {
            self.leaves(&tree, &[], None);
        }
    }
}

/// Of these, what is only there for tests is not product code.
macro_rules! of_tests {
    ($($visit:ident $node:ident)+) => {
        $(fn $visit(&mut self, node: &syn::$node) {
            let is_test_here = self.spot.is_test;
            self.spot.is_test |= is_test(node);
            visit::$visit(self, node);
            self.spot.is_test = is_test_here;
        })+
    };
}

impl Visit<'_> for Reader<'_> {
    of_tests! {
        visit_item Item
        visit_impl_item ImplItem
        visit_trait_item TraitItem
        visit_stmt Stmt
        visit_arm Arm
        visit_field Field
        visit_field_value FieldValue
        visit_variant Variant
    }

    fn visit_attribute(&mut self, of: &Attribute) {
        if let Meta::List(list) = &of.meta {
            self.tokens(list.tokens.clone());
        }
    }

    fn visit_visibility(&mut self, _: &Visibility) {}

    fn visit_item_mod(&mut self, of: &ItemMod) {
        let (name, path) = (of.ident.to_string(), path_attribute(&of.attrs));
        let module = self.module(&name);
        let is_test = self.spot.is_test || of.attrs.iter().any(is_for_tests);
        let folder = self.spot.folder.join(path.as_deref().unwrap_or(&name));
        let inline = of.content.is_some().then(|| self.here().file.clone());
        let candidates = match &path {
            Some(path) => vec![self.spot.beside.join(path)],
            None => vec![self.spot.folder.join(format!("{name}.rs")), folder.join("mod.rs")],
        };
        let exists = |file: &PathBuf| self.workspace.join(file).is_file();
        let Some(file) = inline.clone().or_else(|| candidates.into_iter().find(exists)) else {
            let (file, line) = (self.here().file.display(), of.ident.span().start().line);
            let fault = format!("{file}:{line}: module `{name}` has no file");
            self.faults.insert(fault);
            return;
        };
        let file = normal(&file);
        let parent = file.parent().unwrap_or(&file).to_owned();
        // As rustc does it: a file that an attribute names has its modules beside it.
        let (folder, beside) = match inline {
            Some(_) => (folder.clone(), folder),
            None if path.is_some() || file.ends_with("mod.rs") => (parent.clone(), parent),
            None => (folder, parent),
        };
        self.modules[module].file.clone_from(&file);
        let above = mem::replace(&mut self.spot, Spot { module, folder, beside, is_test });
        match &of.content {
            Some((_, items)) => items.iter().for_each(|item| self.visit_item(item)),
            None => self.file(&file),
        }
        self.modules[module].is_test &= self.spot.is_test;
        self.spot = above;
    }

    fn visit_item_use(&mut self, of: &ItemUse) {
        if of.leading_colon.is_none() {
            self.leaves(&of.tree, &[], Some(of));
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|it| it.ident.to_string()).collect();
        let line = path.segments[0].ident.span().start().line;
        if names.len() > 1 && !self.spot.is_test {
            self.here().paths.push(Written { names, line, is_reexport: false });
        }
        visit::visit_path(self, path);
    }

    fn visit_item_macro(&mut self, of: &ItemMacro) {
        if let Some(name) = of.ident.as_ref().map(ToString::to_string) {
            if of.attrs.iter().any(|it| it.path().is_ident("macro_export")) {
                let path =
                    [&["crate".to_owned()], &self.here().path[..], std::slice::from_ref(&name)];
                let path = path.concat();
                self.modules[ROOT].imports.insert((name.clone(), path));
            }
            self.here().macros.insert(name);
        }
        visit::visit_item_macro(self, of);
    }

    fn visit_macro(&mut self, of: &Macro) {
        self.visit_path(&of.path);
        // What is quoted is code of another crate.
        if !of.path.segments.last().is_some_and(|last| last.ident.to_string().contains("quote")) {
            self.tokens(of.tokens.clone());
        }
    }
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
