//! Which code is product code: everything but what is compiled for tests alone.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Item, ItemUse, Meta, Stmt, Token};

/// Whether this, by its attributes, is only there for tests.
pub fn is_test(code: &impl ToTokens) -> bool {
    let attributes = |input: ParseStream<'_>| {
        let attributes = Attribute::parse_outer(input)?;
        input.parse::<TokenStream>().map(|_| attributes)
    };
    let attributes = attributes.parse2(code.to_token_stream()).unwrap_or_default();
    attributes.iter().any(is_for_tests)
}

/// Whether this attribute is only there where tests are compiled.
pub fn is_for_tests(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            syn::parse2(list.tokens.clone()).is_ok_and(|predicate| needs_test(&predicate))
        }
        Meta::List(_) | Meta::NameValue(_) => false,
    }
}

fn needs_test(predicate: &Meta) -> bool {
    match predicate {
        Meta::Path(path) => path.is_ident("test") || path.is_ident("doctest"),
        Meta::List(list) => {
            let inner = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(list.tokens.clone());
            let inner: Vec<_> = inner.into_iter().flatten().collect();
            match list.path.get_ident().map(ToString::to_string).as_deref() {
                Some("all") => inner.iter().any(needs_test),
                Some("any") => !inner.is_empty() && inner.iter().all(needs_test),
                _ => false,
            }
        }
        Meta::NameValue(_) => false,
    }
}

/// The branches of a `cfg_if!`, each with whether it is only there for tests.
pub fn branches(body: &TokenStream) -> Vec<(bool, TokenStream)> {
    let (mut for_tests, mut branches) = (false, Vec::new());
    let mut tokens = body.clone().into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                let attribute = [TokenTree::Punct(mark)].into_iter().chain(tokens.next());
                for_tests = is_test(&attribute.collect::<TokenStream>());
            }
            TokenTree::Group(group) => {
                branches.push((for_tests, group.stream()));
                for_tests = false;
            }
            _ => {}
        }
    }
    branches
}

/// Takes out of an item what is only there for tests, and the `use` declarations in its functions.
pub fn prune(item: &mut Item) -> Vec<ItemUse> {
    let mut prune = Prune::default();
    prune.visit_item_mut(item);
    prune.uses
}

#[derive(Default)]
struct Prune {
    uses: Vec<ItemUse>,
}

impl VisitMut for Prune {
    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        for statement in std::mem::take(&mut block.stmts) {
            match statement {
                statement if is_test(&statement) => {}
                Stmt::Item(Item::Use(found)) => self.uses.push(found),
                statement => block.stmts.push(statement),
            }
        }
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        item.items.retain(|item| !is_test(item));
        visit_mut::visit_item_impl_mut(self, item);
    }

    fn visit_item_trait_mut(&mut self, item: &mut syn::ItemTrait) {
        item.items.retain(|item| !is_test(item));
        visit_mut::visit_item_trait_mut(self, item);
    }

    fn visit_expr_match_mut(&mut self, found: &mut syn::ExprMatch) {
        found.arms.retain(|arm| !is_test(arm));
        visit_mut::visit_expr_match_mut(self, found);
    }

    fn visit_fields_named_mut(&mut self, fields: &mut syn::FieldsNamed) {
        retain_product(&mut fields.named);
        visit_mut::visit_fields_named_mut(self, fields);
    }

    fn visit_expr_struct_mut(&mut self, made: &mut syn::ExprStruct) {
        retain_product(&mut made.fields);
        visit_mut::visit_expr_struct_mut(self, made);
    }

    fn visit_item_enum_mut(&mut self, item: &mut syn::ItemEnum) {
        retain_product(&mut item.variants);
        visit_mut::visit_item_enum_mut(self, item);
    }
}

fn retain_product<T: ToTokens>(list: &mut Punctuated<T, Token![,]>) {
    *list = std::mem::take(list).into_iter().filter(|one| !is_test(one)).collect();
}
