//! What is compiled where. The sources are built twice, for tests and for loom, and an item may be part of
//! either, of both, or of none: `#[cfg(test)]` is none, since nothing is planted in tests.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Token};

/// The builds that an item is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worlds {
    /// The build that ordinary tests run on.
    pub normal: bool,
    /// The build that loom models run on.
    pub loom: bool,
}

impl Worlds {
    /// Part of both.
    pub const BOTH: Self = Self { normal: true, loom: true };

    /// Part of neither.
    pub const fn is_none(self) -> bool {
        !self.normal && !self.loom
    }

    /// Part of both this and that.
    const fn and(self, other: Self) -> Self {
        Self { normal: self.normal && other.normal, loom: self.loom && other.loom }
    }

    /// Part of this or that.
    pub const fn or(self, other: Self) -> Self {
        Self { normal: self.normal || other.normal, loom: self.loom || other.loom }
    }

    /// What is left for the branches after one that has these.
    const fn without(self, taken: Self) -> Self {
        Self { normal: self.normal && !taken.normal, loom: self.loom && !taken.loom }
    }

    /// Narrowed by the `cfg` attributes of an item.
    pub fn under(self, attributes: &[Attribute]) -> Self {
        let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
        conditions.fold(self, |worlds, condition| match &condition.meta {
            Meta::List(list) => worlds.and(Self::of(&list.tokens)),
            Meta::Path(_) | Meta::NameValue(_) => worlds,
        })
    }

    /// Where a predicate of `cfg` holds. One that can't be read holds everywhere.
    fn of(predicate: &TokenStream) -> Self {
        match syn::parse2::<Meta>(predicate.clone()) {
            Ok(meta) => Self { normal: holds(&meta, false), loom: holds(&meta, true) },
            Err(_) => Self::BOTH,
        }
    }
}

/// On 64-bit x86 Linux, with debug assertions.
fn holds(meta: &Meta, loom: bool) -> bool {
    match meta {
        Meta::Path(path) if path.is_ident("loom") => loom,
        Meta::Path(path) => ["debug_assertions", "unix"].iter().any(|known| path.is_ident(known)),
        Meta::List(list) => {
            let inner = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(list.tokens.clone());
            let mut inner = inner.into_iter().flatten();
            match list.path.get_ident().map(ToString::to_string).as_deref() {
                Some("not") => inner.next().is_none_or(|meta| !holds(&meta, loom)),
                Some("any") => inner.any(|meta| holds(&meta, loom)),
                _ => inner.all(|meta| holds(&meta, loom)),
            }
        }
        Meta::NameValue(pair) => {
            let name = pair.path.get_ident().map(ToString::to_string).unwrap_or_default();
            let Expr::Lit(ExprLit { lit: Lit::Str(value), .. }) = &pair.value else { return false };
            has(&name, &value.value(), loom)
        }
    }
}

fn has(name: &str, value: &str, loom: bool) -> bool {
    if name == "feature" {
        // Those that `verify-loom` asks for; tests have every one, but `defmt`, which has a test of its own.
        return match loom {
            true => ["alloc", "async", "test-util"].contains(&value),
            false => value != "defmt",
        };
    }
    matches!(
        (name, value),
        ("target_has_atomic", "8" | "16" | "32" | "64" | "ptr")
            | ("target_arch", "x86_64")
            | ("target_os", "linux")
            | ("target_pointer_width", "64")
            | ("target_endian", "little")
    )
}

/// The items in the branches of a `cfg_if!`, each with its worlds; nothing in another macro.
pub fn files_in_branches(of: &syn::Macro, worlds: Worlds) -> Vec<(Worlds, syn::File)> {
    if of.path.segments.last().is_none_or(|it| it.ident != "cfg_if") {
        return Vec::new();
    }
    let parsed = |(worlds, items)| Some((worlds, syn::parse2(items).ok()?));
    branches(&of.tokens, worlds).into_iter().filter_map(parsed).collect()
}

/// The branches of a `cfg_if!`, each with its worlds.
fn branches(body: &TokenStream, worlds: Worlds) -> Vec<(Worlds, TokenStream)> {
    let (mut left, mut here, mut branches) = (worlds, Worlds::BOTH, Vec::new());
    let mut tokens = body.clone().into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                let attribute = [TokenTree::Punct(mark)].into_iter().chain(tokens.next()).collect();
                let attribute = Attribute::parse_outer.parse2(attribute);
                here = Worlds::BOTH.under(&attribute.unwrap_or_default());
            }
            TokenTree::Group(group) => {
                branches.push((left.and(here), group.stream()));
                left = left.without(here);
                here = Worlds::BOTH;
            }
            _ => {}
        }
    }
    branches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(predicate: &str) -> (bool, bool) {
        let Worlds { normal, loom } = Worlds::of(&predicate.parse().unwrap());
        (normal, loom)
    }

    #[test]
    fn predicates_say_where_an_item_is() {
        assert_eq!(of("test"), (false, false));
        assert_eq!(of("loom"), (false, true));
        assert_eq!(of("all(test, not(loom))"), (false, false));
        assert_eq!(of(r#"all(target_arch = "x86_64", not(loom))"#), (true, false));
        assert_eq!(of(r#"all(target_has_atomic = "64", not(cq_core_word32))"#), (true, true));
        assert_eq!(of(r#"any(loom, feature = "test-util")"#), (true, true));
        assert_eq!(of(r#"feature = "alloc""#), (true, true));
        assert_eq!(of(r#"all(feature = "poll", target_os = "linux")"#), (true, false));
    }

    #[test]
    fn a_cfg_if_is_read_branch_by_branch() {
        let body = "if #[cfg(loom)] { a } else if #[cfg(test)] { b } else { c }".parse().unwrap();
        let found = branches(&body, Worlds::BOTH);
        let found: Vec<_> =
            found.iter().map(|(w, body)| (w.normal, w.loom, body.to_string())).collect();
        assert_eq!(
            found,
            [
                (false, true, "a".to_owned()),
                (false, false, "b".to_owned()),
                (true, false, "c".to_owned())
            ]
        );
    }
}
