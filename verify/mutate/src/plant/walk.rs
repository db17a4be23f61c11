//! Going through the syntax tree of a file.

use std::collections::HashSet;
use std::ops::Range;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Block, Expr, ImplItem, Item, Lit, ReturnType, Signature, Stmt, TraitItem, Type,
};

use super::edit::range;
use super::values::{is_control, is_site};
use super::{Edit, Mutant, Name, Operator, Planted, Planting};
use crate::signatures::{Signatures, type_name};
use crate::sources::Source;
use crate::worlds::{Worlds, files_in_branches};

/// What a function, or a closure, returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Returns {
    Unit,
    Bool,
    Other,
}

/// The file that is gone through.
pub(super) struct Walk<'a> {
    pub source: &'a Source,
    pub signatures: &'a Signatures,
    pub worlds: Worlds,
    pub returns: Returns,
    /// The type whose functions these are.
    pub owner: String,
    /// Modules, types and functions around.
    path: Vec<String>,
    planting: &'a mut Planting,
    edits: Vec<Edit>,
    functions: Vec<Range<usize>>,
    /// What has a mutant of this kind and text already.
    done: HashSet<(Range<usize>, Operator, String)>,
}

/// Plants a file.
pub(super) fn walk(source: &Source, signatures: &Signatures, planting: &mut Planting) {
    let mut walk = Walk {
        source,
        signatures,
        worlds: source.worlds,
        returns: Returns::Other,
        owner: String::new(),
        path: Vec::new(),
        planting,
        edits: Vec::new(),
        functions: Vec::new(),
        done: HashSet::new(),
    };
    walk.visit_file(&source.syntax);
    let Walk { edits, functions, planting, .. } = walk;
    if !edits.is_empty() {
        let planted = Planted::new(&source.path, &source.text);
        planting.files.push(Planted { edits, functions, ..planted });
    }
}

impl Walk<'_> {
    /// Text around a part, by which a mutant can be chosen: `{on}` in it is the question whether it is. Not
    /// if there is such a one already.
    pub(super) fn plant(
        &mut self,
        around: Range<usize>,
        operator: Operator,
        mutated: &str,
        (before, after): (&str, &str),
    ) {
        if !self.done.insert((around.clone(), operator, mutated.to_owned())) {
            return;
        }
        let Source { path, text, area, .. } = self.source;
        let (file, function) = (path.clone(), self.path.join("::"));
        let change = format!("{} => {}", shortened(&text[around.clone()]), shortened(mutated));
        let line = 1 + text[..around.start].matches('\n').count();
        let name = Name { file, function, change, nth: 1 };
        let mutant = self.planting.add(Mutant { number: 0, name, line, operator, area });
        let on = self.source.on(mutant);
        let (before, after) = (before.replace("{on}", &on), after.replace("{on}", &on));
        self.edits.push(Edit { around, before, after, mutant: Some(mutant) });
    }

    /// An expression that is another one in the mutant.
    pub(super) fn instead(&mut self, expr: &impl Spanned, operator: Operator, other: TokenStream) {
        let other = other.to_string();
        let before = format!("(if {{on}} {{ {other} }} else {{ ");
        self.plant(range(expr.span()), operator, &other, (&before, " })"));
    }

    /// Goes on with what is in fewer builds, if it is in any that tests run on.
    fn under(&mut self, attributes: &[Attribute], go_on: impl FnOnce(&mut Self)) {
        let outside = self.worlds;
        self.worlds = outside.under(attributes);
        if !self.worlds.is_none() {
            go_on(self);
        }
        self.worlds = outside;
    }

    fn inside(&mut self, name: String, go_on: impl FnOnce(&mut Self)) {
        self.path.push(name);
        go_on(self);
        self.path.pop();
    }

    fn returning(&mut self, returns: Returns, go_on: impl FnOnce(&mut Self)) {
        let outside = std::mem::replace(&mut self.returns, returns);
        go_on(self);
        self.returns = outside;
    }

    fn function(&mut self, attributes: &[Attribute], signature: &Signature, body: &Block) {
        self.under(attributes, |walk| {
            let name = signature.ident.to_string();
            // What only loom compiles is there for models; a mutant is chosen at run time, and so can't stand in what may
            // be evaluated when its caller compiles.
            if !walk.worlds.normal || signature.constness.is_some() {
                return;
            }
            walk.functions.push(range(body.span()));
            walk.inside(name, |walk| {
                walk.returning(returned(&signature.output), |walk| {
                    walk.tail(body);
                    walk.visit_block(body);
                });
            });
        });
    }

    /// What a block comes to, where that is known to be a `bool` or nothing.
    fn tail(&mut self, body: &Block) {
        match self.returns {
            Returns::Unit => self.unit_block(body),
            Returns::Bool => self.bool_block(body),
            Returns::Other => {}
        }
    }

    fn macro_items(&mut self, of: &syn::Macro) {
        for (worlds, file) in files_in_branches(of, self.worlds) {
            let outside = std::mem::replace(&mut self.worlds, worlds);
            if !worlds.is_none() {
                self.visit_file(&file);
            }
            self.worlds = outside;
        }
    }
}

impl Visit<'_> for Walk<'_> {
    fn visit_item(&mut self, item: &Item) {
        match item {
            Item::Fn(of) => self.function(&of.attrs, &of.sig, &of.block),
            Item::Impl(of) => self.under(&of.attrs, |walk| {
                walk.owner = type_name(&of.self_ty);
                walk.inside(walk.owner.clone(), |walk| visit::visit_item_impl(walk, of));
                walk.owner.clear();
            }),
            Item::Trait(of) => self.under(&of.attrs, |walk| {
                walk.inside(of.ident.to_string(), |walk| visit::visit_item_trait(walk, of));
            }),
            Item::Mod(of) => self.under(&of.attrs, |walk| {
                walk.inside(of.ident.to_string(), |walk| visit::visit_item_mod(walk, of));
            }),
            Item::Macro(of) => self.macro_items(&of.mac),
            _ => {}
        }
    }

    fn visit_impl_item(&mut self, item: &ImplItem) {
        if let ImplItem::Fn(of) = item {
            self.function(&of.attrs, &of.sig, &of.block);
        }
    }

    fn visit_trait_item(&mut self, item: &TraitItem) {
        if let TraitItem::Fn(of) = item {
            of.default.iter().for_each(|body| self.function(&of.attrs, &of.sig, body));
        }
    }

    fn visit_stmt(&mut self, statement: &Stmt) {
        let attributes = match statement {
            Stmt::Local(of) => of.attrs.clone(),
            Stmt::Expr(of, _) => attributes_of(of),
            Stmt::Item(_) | Stmt::Macro(_) => Vec::new(),
        };
        self.under(&attributes, |walk| {
            if walk.worlds.normal {
                walk.statement(statement);
                visit::visit_stmt(walk, statement);
            }
        });
    }

    fn visit_expr(&mut self, expr: &Expr) {
        self.unit_parts(expr);
        self.condition_of(expr);
        self.comparison(expr);
        match expr {
            Expr::Call(call) => {
                if self.fence(call) {
                    return;
                }
                self.function_call(call);
            }
            Expr::MethodCall(call) => self.method_call(call),
            Expr::Lit(of) if matches!(of.lit, Lit::Bool(_)) => self.flip(expr),
            Expr::Path(path) => self.ordering(path),
            Expr::Return(of) if self.returns == Returns::Bool => {
                of.expr.iter().for_each(|value| self.bool_expr(value));
            }
            Expr::Closure(closure) => {
                // Of one that says nothing, nothing is known.
                let returns = match &closure.output {
                    ReturnType::Default => Returns::Other,
                    said => returned(said),
                };
                self.returning(returns, |walk| visit::visit_expr(walk, expr));
                return;
            }
            Expr::Async(_) => {
                self.returning(Returns::Other, |walk| visit::visit_expr(walk, expr));
                return;
            }
            Expr::Repeat(repeat) => {
                self.visit_expr(&repeat.expr);
                return;
            }
            // What stands there instead of a site is wrong, and so is what could be planted in it.
            Expr::If(of) if is_site(&of.cond) => {
                self.visit_block(&of.then_branch);
                return;
            }
            Expr::If(of) if is_control(&of.cond) => {
                of.else_branch.iter().for_each(|(_, otherwise)| self.visit_expr(otherwise));
                return;
            }
            Expr::Const(_) => return,
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_block(&mut self, block: &Block) {
        self.before_the_end(block);
        visit::visit_block(self, block);
    }

    // Nothing is planted in these.
    fn visit_attribute(&mut self, _: &Attribute) {}
    fn visit_pat(&mut self, _: &syn::Pat) {}
    fn visit_type(&mut self, _: &Type) {}
    fn visit_generics(&mut self, _: &syn::Generics) {}
    fn visit_generic_argument(&mut self, _: &syn::GenericArgument) {}
    fn visit_macro(&mut self, _: &syn::Macro) {}
}

fn returned(output: &ReturnType) -> Returns {
    match output {
        ReturnType::Default => Returns::Unit,
        ReturnType::Type(_, of) => match &**of {
            Type::Path(path) if path.path.is_ident("bool") => Returns::Bool,
            Type::Tuple(tuple) if tuple.elems.is_empty() => Returns::Unit,
            _ => Returns::Other,
        },
    }
}

/// What stands in front of an expression, whichever part of it the parser gives that to.
fn attributes_of(expr: &Expr) -> Vec<Attribute> {
    let attributes = |input: ParseStream<'_>| {
        let attributes = Attribute::parse_outer(input)?;
        input.parse::<TokenStream>().map(|_| attributes)
    };
    attributes.parse2(expr.to_token_stream()).unwrap_or_default()
}

/// How long a text may be that a mutant is named by.
const NAMED: usize = 120;

/// On one line, and not too long.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(NAMED) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
