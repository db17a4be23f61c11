//! Which parameters of a function have the same type, so that a call may have mixed them up.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{FnArg, ItemImpl, ItemTrait, Signature, Type};

/// The functions of the crates.
#[derive(Debug, Default)]
pub struct Signatures {
    /// By owner, name and number of arguments, without the receiver of a method.
    pairs: BTreeMap<(String, String, usize), BTreeSet<Pair>>,
    /// The type or trait whose functions are read, which is nothing where there is none.
    owner: String,
}

/// The positions of two arguments.
pub type Pair = (usize, usize);

/// The owner of all methods: whose method is called can't be seen.
pub const METHODS: &str = ".";

impl Signatures {
    /// With what the standard library has.
    pub fn new() -> Self {
        let mut all = Self::default();
        for name in ["compare_exchange", "compare_exchange_weak"] {
            all.insert(METHODS, name, 4, [(0, 1)]);
        }
        all
    }

    /// Reads a file.
    pub fn add(&mut self, file: &syn::File) {
        self.visit_file(file);
    }

    /// Neighbours of one type among the arguments of a call.
    pub fn of(&self, owner: &str, name: &str, count: usize) -> Vec<Pair> {
        let key = (owner.to_owned(), name.to_owned(), count);
        self.pairs.get(&key).into_iter().flatten().copied().collect()
    }

    fn insert(
        &mut self,
        owner: &str,
        name: &str,
        count: usize,
        pairs: impl IntoIterator<Item = Pair>,
    ) {
        let key = (owner.to_owned(), name.to_owned(), count);
        self.pairs.entry(key).or_default().extend(pairs);
    }

    fn owned_by(&mut self, owner: String, go_on: impl FnOnce(&mut Self)) {
        let outside = std::mem::replace(&mut self.owner, owner);
        go_on(self);
        self.owner = outside;
    }
}

/// The name of a type, without where it is from and what it is of.
pub fn type_name(of: &Type) -> String {
    match of {
        Type::Path(path) => {
            path.path.segments.last().map(|it| it.ident.to_string()).unwrap_or_default()
        }
        Type::Reference(of) => type_name(&of.elem),
        other => other.to_token_stream().to_string(),
    }
}

impl Visit<'_> for Signatures {
    fn visit_item_impl(&mut self, item: &ItemImpl) {
        self.owned_by(type_name(&item.self_ty), |all| visit::visit_item_impl(all, item));
    }

    fn visit_item_trait(&mut self, item: &ItemTrait) {
        self.owned_by(item.ident.to_string(), |all| visit::visit_item_trait(all, item));
    }

    fn visit_signature(&mut self, signature: &Signature) {
        let types: Vec<String> = signature.inputs.iter().map(type_of).collect();
        let (name, pairs, owner) = (signature.ident.to_string(), pairs(&types), self.owner.clone());
        if signature.receiver().is_some() {
            let of_arguments = pairs.iter().filter(|pair| pair.0 > 0);
            let moved = of_arguments.map(|&(one, other)| (one - 1, other - 1));
            self.insert(METHODS, &name, types.len() - 1, moved);
        }
        self.insert(&owner, &name, types.len(), pairs);
    }
}

fn type_of(input: &FnArg) -> String {
    match input {
        FnArg::Receiver(_) => "self".to_owned(),
        FnArg::Typed(typed) => typed.ty.to_token_stream().to_string(),
    }
}

/// Each with the next of its type.
fn pairs(types: &[String]) -> Vec<Pair> {
    let next = |(one, of): (usize, &String)| {
        let rest = types.iter().enumerate().skip(one + 1);
        rest.filter(|(_, other)| *other == of).map(|(other, _)| (one, other)).next()
    };
    types.iter().enumerate().filter_map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_one_type_are_paired_with_the_next() {
        let mut signatures = Signatures::new();
        let source = "
            fn three(a: u32, b: &str, c: u32, d: u32) {}
            impl A { fn moved(&self, from: usize, to: usize) {} }
        ";
        signatures.add(&syn::parse_str(source).unwrap());
        assert_eq!(signatures.of("", "three", 4), [(0, 2), (2, 3)]);
        assert_eq!(signatures.of(METHODS, "moved", 2), [(0, 1)]);
        assert_eq!(signatures.of("A", "moved", 3), [(1, 2)]);
        assert_eq!(signatures.of("B", "moved", 3), []);
        assert_eq!(signatures.of(METHODS, "three", 4), []);
    }
}
