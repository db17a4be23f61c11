//! Calls: arguments that are swapped, methods that do the opposite, named operations that are relaxed.

use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprCall, ExprMethodCall, Ident, Token};

use super::Operator::{Opposite, Sum, Swap};
use super::conditions::is_one;
use super::walk::Walk;
use crate::signatures::{METHODS, Pair};

/// Methods, and those that do the opposite.
const OPPOSITES: [(&str, &str); 10] = [
    ("wrapping_add", "wrapping_sub"),
    ("wrapping_sub", "wrapping_add"),
    ("saturating_add", "saturating_sub"),
    ("saturating_sub", "saturating_add"),
    ("checked_add", "checked_sub"),
    ("checked_sub", "checked_add"),
    ("min", "max"),
    ("max", "min"),
    ("first", "last"),
    ("last", "first"),
];

/// Of which the receiver and the argument may be mixed up.
const DIFFERENCES: [&str; 3] = ["wrapping_sub", "saturating_sub", "checked_sub"];

type Arguments = Punctuated<Expr, Token![,]>;

impl Walk<'_> {
    /// `path(arguments)`
    pub(super) fn function_call(&mut self, call: &ExprCall) {
        let Expr::Path(path) = &*call.func else { return };
        let mut names = path.path.segments.iter().rev().map(|segment| segment.ident.to_string());
        let Some(name) = names.next() else { return };
        self.relaxed(call, &name);
        // What is lower case is a module.
        let owner = match names.next().filter(|owner| owner.starts_with(char::is_uppercase)) {
            Some(owner) if owner == "Self" => self.owner.clone(),
            owner => owner.unwrap_or_default(),
        };
        let pairs = self.signatures.of(&owner, &name, call.args.len());
        let function = &call.func;
        for pair in pairs {
            let Some(swapped) = swapped(&call.args, pair) else { continue };
            self.instead(call, Swap, quote!(#function(#swapped)));
        }
    }

    /// `receiver.name(arguments)`
    pub(super) fn method_call(&mut self, call: &ExprMethodCall) {
        let name = call.method.to_string();
        let ExprMethodCall { receiver, method, turbofish, args, .. } = call;
        for pair in self.signatures.of(METHODS, &name, args.len()) {
            let Some(swapped) = swapped(args, pair) else { continue };
            self.instead(call, Swap, quote!(#receiver.#method #turbofish(#swapped)));
        }
        self.opposite(call, &name);
        if let (true, Some(argument)) = (DIFFERENCES.contains(&name.as_str()), args.first()) {
            if !matches!(argument, Expr::Lit(_)) {
                self.instead(call, Swap, quote!((#argument).#method(#receiver)));
            }
        }
        if let (true, Some(argument)) = (is_sum(&name), args.first().filter(|one| is_one(one))) {
            self.instead(argument, Sum, quote!(0));
        }
    }

    fn opposite(&mut self, call: &ExprMethodCall, name: &str) {
        let Some((_, other)) = OPPOSITES.iter().find(|(one, _)| *one == name) else { return };
        let ExprMethodCall { receiver, turbofish, args, .. } = call;
        let other = Ident::new(other, call.method.span());
        self.instead(call, Opposite, quote!(#receiver.#other #turbofish(#args)));
    }
}

fn is_sum(name: &str) -> bool {
    name.ends_with("_add") || name.ends_with("_sub")
}

fn swapped(arguments: &Arguments, (one, other): Pair) -> Option<Arguments> {
    let mut all: Vec<Expr> = arguments.iter().cloned().collect();
    let text = |at: usize| all.get(at).map(|argument| argument.to_token_stream().to_string());
    if text(one)? == text(other)? {
        return None;
    }
    all.swap(one, other);
    Some(all.into_iter().collect())
}
