//! Memory orderings, fences, and operations that are named after what they order. They are planted where loom
//! compiles the code, and nowhere else: x86 orders nearly everything by itself.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Expr, ExprCall, ExprPath};

use super::Operator::{Fence, Operation, Ordering};
use super::edit::range;
use super::walk::Walk;

/// Each with what is weaker.
const WEAKER: [(&str, &[&str]); 4] = [
    ("Acquire", &["Relaxed"]),
    ("Release", &["Relaxed"]),
    ("AcqRel", &["Acquire", "Release", "Relaxed"]),
    ("SeqCst", &["AcqRel", "Relaxed"]),
];

const FENCES: [&str; 8] = [
    "fence",
    "push_fence",
    "arm_fence",
    "full_fence",
    "full_fence_at",
    "write_fence",
    "read_fence",
    "compiler_fence",
];

/// Functions that are fences, by name.
pub(super) fn is_fence(name: &str) -> bool {
    FENCES.contains(&name)
}

/// What a named operation is without its ordering; `sync` is the crate's module. One entry for each number of
/// arguments.
fn relaxed(name: &str, arguments: &[&Expr]) -> Option<TokenStream> {
    Some(match (name, arguments) {
        ("publish" | "release_head", [word, value]) => quote!(crate::sync::store(#word, #value)),
        ("observe" | "acquire_head" | "acquire_tail", [word]) => quote!(crate::sync::load(#word)),
        ("latch", [cell, value]) => {
            quote!((#cell).store(#value, ::core::sync::atomic::Ordering::Relaxed))
        }
        ("read_latch", [cell]) => quote!((#cell).load(::core::sync::atomic::Ordering::Relaxed)),
        ("unlock", [word]) => quote!((#word).store(0, ::core::sync::atomic::Ordering::Relaxed)),
        ("acquire" | "acquire_at", [word, ..]) => {
            quote!(crate::sync::Atomic::load_as(#word, ::core::sync::atomic::Ordering::Relaxed))
        }
        ("release" | "release_at", [word, value, ..]) => quote! {
            crate::sync::Atomic::store_as(#word, #value, ::core::sync::atomic::Ordering::Relaxed)
        },
        ("store_fenced", [word, value, _]) => quote! {
            crate::sync::Atomic::store_as(#word, #value, ::core::sync::atomic::Ordering::Release)
        },
        _ => return None,
    })
}

impl Walk<'_> {
    /// A call of a named operation.
    pub(super) fn relaxed(&mut self, call: &ExprCall, name: &str) {
        if !self.worlds.loom {
            return;
        }
        let arguments: Vec<&Expr> = call.args.iter().collect();
        if let Some(weaker) = relaxed(name, &arguments) {
            self.instead(call, Operation, weaker);
        }
    }

    /// `Acquire`, or `Ordering::Acquire`.
    pub(super) fn ordering(&mut self, path: &ExprPath) {
        let mut names = path.path.segments.iter().rev().map(|segment| &segment.ident);
        let (Some(last), before) = (names.next(), names.next()) else { return };
        let found = WEAKER.iter().find(|(ordering, _)| last == ordering);
        let is_ordering = before.is_none_or(|before| before == "Ordering");
        let Some((_, weaker)) = found.filter(|_| is_ordering && self.worlds.loom) else { return };
        for weaker in *weaker {
            let before =
                format!("(if {{on}} {{ ::core::sync::atomic::Ordering::{weaker} }} else {{ ");
            self.plant(range(path.span()), Ordering, weaker, (&before, " })"));
        }
    }

    /// The call of a fence; what is to be said of its ordering is said here. Dropping it is a statement's.
    pub(super) fn fence(&mut self, call: &ExprCall) -> bool {
        let Expr::Path(path) = &*call.func else { return false };
        if path.path.segments.last().is_none_or(|it| it.ident != "fence") {
            return false;
        }
        if let (true, Some(Expr::Path(ordering))) = (self.worlds.loom, call.args.first()) {
            if ordering.path.segments.last().is_some_and(|it| it.ident == "SeqCst") {
                let text = "(if {on} { ::core::sync::atomic::Ordering::AcqRel } else { ";
                self.plant(range(ordering.span()), Fence, "AcqRel", (text, " })"));
            }
        }
        true
    }
}
