//! Which parameters of a function have the same type, so that a call may have mixed them up.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{FnArg, ItemImpl, ItemTrait, Signature, Type};

/// The functions of the crates.
#[derive(Debug, Default)]
pub struct Signatures {
    /// By the type or trait that they belong to, which is nothing where there is none.
    functions: BTreeMap<Key, BTreeSet<Pair>>,
    /// By name alone: whose method is called can't be seen.
    methods: BTreeMap<Key, BTreeSet<Pair>>,
    /// Whose functions are read.
    owner: String,
}

/// Owner, name and number of arguments.
type Key = (String, String, usize);

/// The positions of two arguments.
pub type Pair = (usize, usize);

/// What the standard library has: a receiver is no argument.
const KNOWN: [(&str, usize, Pair); 2] =
    [("compare_exchange", 4, (0, 1)), ("compare_exchange_weak", 4, (0, 1))];

impl Signatures {
    /// With what the standard library has.
    pub fn new() -> Self {
        let mut all = Self::default();
        for (name, count, pair) in KNOWN {
            let key = (String::new(), name.to_owned(), count);
            all.methods.entry(key).or_default().insert(pair);
        }
        all
    }

    /// Reads a file.
    pub fn add(&mut self, file: &syn::File) {
        self.visit_file(file);
    }

    /// Neighbours of one type among the arguments of a call by path.
    pub fn of_function(&self, owner: &str, name: &str, count: usize) -> Vec<Pair> {
        pairs_of(&self.functions, owner, name, count)
    }

    /// Neighbours of one type among the arguments of a method call, without its receiver.
    pub fn of_method(&self, name: &str, count: usize) -> Vec<Pair> {
        pairs_of(&self.methods, "", name, count)
    }

    fn owned_by(&mut self, owner: String, go_on: impl FnOnce(&mut Self)) {
        let outside = std::mem::replace(&mut self.owner, owner);
        go_on(self);
        self.owner = outside;
    }
}

fn pairs_of(
    all: &BTreeMap<Key, BTreeSet<Pair>>,
    owner: &str,
    name: &str,
    count: usize,
) -> Vec<Pair> {
    let key = (owner.to_owned(), name.to_owned(), count);
    all.get(&key).into_iter().flatten().copied().collect()
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
        let (name, pairs) = (signature.ident.to_string(), pairs(&types));
        if signature.receiver().is_some() {
            let of_arguments = pairs.iter().filter(|pair| pair.0 > 0);
            let moved = of_arguments.map(|&(one, other)| (one - 1, other - 1));
            let key = (String::new(), name.clone(), types.len() - 1);
            self.methods.entry(key).or_default().extend(moved);
        }
        let key = (self.owner.clone(), name, types.len());
        self.functions.entry(key).or_default().extend(pairs);
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
        assert_eq!(signatures.of_function("", "three", 4), [(0, 2), (2, 3)]);
        assert_eq!(signatures.of_method("moved", 2), [(0, 1)]);
        assert_eq!(signatures.of_function("A", "moved", 3), [(1, 2)]);
        assert_eq!(signatures.of_function("B", "moved", 3), []);
        assert_eq!(signatures.of_method("three", 4), []);
    }
}
