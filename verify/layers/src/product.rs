//! Which code is product code: everything but what is compiled for tests alone.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{Arm, Attribute, Expr, ImplItem, Item, ItemUse, Meta, Stmt, Token, TraitItem};

/// Whether code with these attributes is only there for tests.
pub fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            syn::parse2(list.tokens.clone()).is_ok_and(|predicate| needs_test(&predicate))
        }
        Meta::List(_) | Meta::NameValue(_) => false,
    })
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
                let attribute = TokenStream::from_iter(
                    [TokenTree::Punct(mark)].into_iter().chain(tokens.next()),
                );
                let attribute = Attribute::parse_outer.parse2(attribute);
                for_tests = attribute.is_ok_and(|attribute| is_test(&attribute));
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
                statement if is_test(of_statement(&statement)) => {}
                Stmt::Item(Item::Use(found)) => self.uses.push(found),
                statement => block.stmts.push(statement),
            }
        }
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        item.items.retain(|item| !is_test(of_impl(item)));
        visit_mut::visit_item_impl_mut(self, item);
    }

    fn visit_item_trait_mut(&mut self, item: &mut syn::ItemTrait) {
        item.items.retain(|item| !is_test(of_trait(item)));
        visit_mut::visit_item_trait_mut(self, item);
    }

    fn visit_expr_match_mut(&mut self, found: &mut syn::ExprMatch) {
        found.arms.retain(|Arm { attrs, .. }| !is_test(attrs));
        visit_mut::visit_expr_match_mut(self, found);
    }

    fn visit_fields_named_mut(&mut self, fields: &mut syn::FieldsNamed) {
        retain(&mut fields.named, |field| !is_test(&field.attrs));
        visit_mut::visit_fields_named_mut(self, fields);
    }

    fn visit_expr_struct_mut(&mut self, made: &mut syn::ExprStruct) {
        retain(&mut made.fields, |field| !is_test(&field.attrs));
        visit_mut::visit_expr_struct_mut(self, made);
    }

    fn visit_item_enum_mut(&mut self, item: &mut syn::ItemEnum) {
        retain(&mut item.variants, |variant| !is_test(&variant.attrs));
        visit_mut::visit_item_enum_mut(self, item);
    }
}

fn retain<T>(list: &mut Punctuated<T, Token![,]>, keep: impl Fn(&T) -> bool) {
    let kept = std::mem::take(list).into_iter().filter(keep);
    list.extend(kept);
}

fn of_statement(statement: &Stmt) -> &[Attribute] {
    match statement {
        Stmt::Local(local) => &local.attrs,
        Stmt::Item(item) => of_item(item),
        Stmt::Macro(called) => &called.attrs,
        Stmt::Expr(expression, _) => of_expression(expression),
    }
}

fn of_expression(expression: &Expr) -> &[Attribute] {
    match expression {
        Expr::Assign(syn::ExprAssign { attrs, .. })
        | Expr::Block(syn::ExprBlock { attrs, .. })
        | Expr::Call(syn::ExprCall { attrs, .. })
        | Expr::ForLoop(syn::ExprForLoop { attrs, .. })
        | Expr::If(syn::ExprIf { attrs, .. })
        | Expr::Loop(syn::ExprLoop { attrs, .. })
        | Expr::Macro(syn::ExprMacro { attrs, .. })
        | Expr::Match(syn::ExprMatch { attrs, .. })
        | Expr::MethodCall(syn::ExprMethodCall { attrs, .. })
        | Expr::Return(syn::ExprReturn { attrs, .. })
        | Expr::Try(syn::ExprTry { attrs, .. })
        | Expr::Unsafe(syn::ExprUnsafe { attrs, .. })
        | Expr::While(syn::ExprWhile { attrs, .. }) => attrs,
        _ => &[],
    }
}

fn of_impl(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(syn::ImplItemConst { attrs, .. })
        | ImplItem::Fn(syn::ImplItemFn { attrs, .. })
        | ImplItem::Type(syn::ImplItemType { attrs, .. })
        | ImplItem::Macro(syn::ImplItemMacro { attrs, .. }) => attrs,
        _ => &[],
    }
}

fn of_trait(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(syn::TraitItemConst { attrs, .. })
        | TraitItem::Fn(syn::TraitItemFn { attrs, .. })
        | TraitItem::Type(syn::TraitItemType { attrs, .. })
        | TraitItem::Macro(syn::TraitItemMacro { attrs, .. }) => attrs,
        _ => &[],
    }
}

/// The attributes of an item.
pub fn of_item(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(syn::ItemConst { attrs, .. })
        | Item::Enum(syn::ItemEnum { attrs, .. })
        | Item::ExternCrate(syn::ItemExternCrate { attrs, .. })
        | Item::Fn(syn::ItemFn { attrs, .. })
        | Item::ForeignMod(syn::ItemForeignMod { attrs, .. })
        | Item::Impl(syn::ItemImpl { attrs, .. })
        | Item::Macro(syn::ItemMacro { attrs, .. })
        | Item::Mod(syn::ItemMod { attrs, .. })
        | Item::Static(syn::ItemStatic { attrs, .. })
        | Item::Struct(syn::ItemStruct { attrs, .. })
        | Item::Trait(syn::ItemTrait { attrs, .. })
        | Item::TraitAlias(syn::ItemTraitAlias { attrs, .. })
        | Item::Type(syn::ItemType { attrs, .. })
        | Item::Union(syn::ItemUnion { attrs, .. })
        | Item::Use(syn::ItemUse { attrs, .. }) => attrs,
        _ => &[],
    }
}
