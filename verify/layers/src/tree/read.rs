//! The items of a module: its modules, its imports, its code.

use std::path::PathBuf;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, ExprLit, Item, ItemExternCrate, ItemMacro, ItemMod, ItemUse, Lit, Meta,
    UseTree, Visibility,
};

use super::{Import, Kind, Module, ROOT, Reader, Spot};
use crate::fault::{Fault, LayersError, Place};
use crate::product::{branches, is_test, of_item, prune};

impl Reader<'_> {
    pub(super) fn items(&mut self, items: Vec<Item>, spot: &Spot) -> Result<(), LayersError> {
        for item in items {
            let is_test = is_test(of_item(&item));
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
    fn called(
        &mut self,
        called: &ItemMacro,
        is_test: bool,
        spot: &Spot,
    ) -> Result<(), LayersError> {
        let tokens = &called.mac.tokens;
        if called.mac.path.segments.last().is_some_and(|last| last.ident == "cfg_if") {
            for (for_tests, body) in branches(tokens) {
                let line = called.span().start().line;
                let parsed: syn::File = syn::parse2(body).map_err(|error| LayersError::Parse {
                    at: Place { file: spot.file.clone(), line },
                    error,
                })?;
                self.items(of_tests(parsed.items, is_test || for_tests), spot)?;
            }
            return Ok(());
        }
        let here = &mut self.modules[spot.module];
        if !is_test {
            names(tokens.clone(), &mut |name| _ = here.perhaps.insert(name));
        }
        match syn::parse2::<syn::File>(tokens.clone()) {
            Ok(parsed) => {
                let name = TokenStream::from_iter([
                    quote(&called.mac.path),
                    quote(&called.mac.bang_token),
                ]);
                here.code.extend((!is_test).then_some(name));
                self.items(of_tests(parsed.items, is_test), spot)
            }
            // It has a syntax of its own.
            Err(_) => {
                here.code.extend((!is_test).then(|| quote(&called.mac)));
                Ok(())
            }
        }
    }

    fn declared(&mut self, of: ItemMod, is_test: bool, spot: &Spot) -> Result<(), LayersError> {
        let name = of.ident.to_string();
        let module = self.module(&name, is_test, spot);
        self.modules[module].lends_macros =
            of.attrs.iter().any(|it| it.path().is_ident("macro_use"));
        let path = path_attribute(&of.attrs);
        let folder = spot.folder.join(path.as_deref().unwrap_or(&name));
        if let Some((_, items)) = of.content {
            let inner =
                Spot { module, file: spot.file.clone(), folder: folder.clone(), beside: folder };
            return self.items(items, &inner);
        }
        let candidates = match &path {
            Some(path) => vec![spot.beside.join(path)],
            None => vec![spot.folder.join(format!("{name}.rs")), folder.join("mod.rs")],
        };
        let exists = |file: &PathBuf| self.workspace.join(file).is_file();
        let Some(file) = candidates.into_iter().find(exists) else {
            let at = Place { file: spot.file.clone(), line: of.ident.span().start().line };
            self.faults.push(Fault::NoFile { at, module: name });
            return Ok(());
        };
        let file = crate::workspace::normal(&file);
        let beside = file.parent().unwrap_or(&file).to_owned();
        // As rustc does it: a file that an attribute names has its modules beside it.
        let folder =
            if path.is_some() || file.ends_with("mod.rs") { beside.clone() } else { folder };
        self.modules[module].file.clone_from(&file);
        self.file(&Spot { module, file, folder, beside })
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

/// Of what is only there for tests, modules are left, and marked as that: their files are known.
fn of_tests(mut items: Vec<Item>, is_test: bool) -> Vec<Item> {
    if is_test {
        items.retain(|item| matches!(item, Item::Mod(_)));
        for item in &mut items {
            if let Item::Mod(declared) = item {
                declared.attrs.push(syn::parse_quote!(#[cfg(test)]));
            }
        }
    }
    items
}

fn quote(what: &impl quote::ToTokens) -> TokenStream {
    what.to_token_stream()
}

fn names(tokens: TokenStream, each: &mut impl FnMut(String)) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => each(name.to_string()),
            TokenTree::Group(group) => names(group.stream(), each),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn define(module: &mut Module, mut item: Item) {
    match &item {
        Item::Const(syn::ItemConst { ident, .. })
        | Item::Static(syn::ItemStatic { ident, .. })
        | Item::Fn(syn::ItemFn { sig: syn::Signature { ident, .. }, .. }) => {
            module.items.insert(ident.to_string());
            module.values.insert(ident.to_string());
        }
        Item::Enum(syn::ItemEnum { ident, .. })
        | Item::Struct(syn::ItemStruct { ident, .. })
        | Item::Trait(syn::ItemTrait { ident, .. })
        | Item::TraitAlias(syn::ItemTraitAlias { ident, .. })
        | Item::Type(syn::ItemType { ident, .. })
        | Item::Union(syn::ItemUnion { ident, .. }) => {
            module.items.insert(ident.to_string());
        }
        _ => {}
    }
    if let Item::ForeignMod(foreign) = &item {
        foreign
            .items
            .iter()
            .for_each(|item| names(quote(item), &mut |name| _ = module.perhaps.insert(name)));
    }
    for inner in prune(&mut item) {
        imports(module, &inner);
    }
    module.code.push(quote(&item));
}

fn imports(module: &mut Module, found: &ItemUse) {
    let is_private = matches!(found.vis, Visibility::Inherited);
    let template = (found.leading_colon.is_some(), is_private);
    leaves(&found.tree, &mut Vec::new(), template, &mut module.imports);
}

/// `extern crate self` is the root.
fn crate_import(found: &ItemExternCrate) -> Import {
    let name = found.ident.to_string();
    let called =
        found.rename.as_ref().map_or_else(|| name.clone(), |(_, called)| called.to_string());
    let is_self = name == "self";
    Import {
        path: vec![if is_self { "crate".to_owned() } else { name }],
        of_crates: !is_self,
        line: found.ident.span().start().line,
        kind: Kind::Name(called),
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
    attributes.iter().find(|attribute| attribute.path().is_ident("path")).and_then(|attribute| {
        match &attribute.meta {
            Meta::NameValue(syn::MetaNameValue {
                value: Expr::Lit(ExprLit { lit: Lit::Str(path), .. }),
                ..
            }) => Some(path.value()),
            _ => None,
        }
    })
}
