//! Which parameters of a function have the same type, so that a call may have mixed them up.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{FnArg, Signature};

/// The functions of the crates, by name and number of arguments.
#[derive(Debug, Default)]
pub struct Signatures {
    functions: BTreeMap<(String, usize), BTreeSet<Pair>>,
    methods: BTreeMap<(String, usize), BTreeSet<Pair>>,
}

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
            all.methods.entry((name.to_owned(), count)).or_default().insert(pair);
        }
        all
    }

    /// Reads a file.
    pub fn add(&mut self, file: &syn::File) {
        self.visit_file(file);
    }

    /// Neighbours of one type among the arguments of a call by path.
    pub fn of_function(&self, name: &str, count: usize) -> impl Iterator<Item = Pair> + '_ {
        self.functions.get(&(name.to_owned(), count)).into_iter().flatten().copied()
    }

    /// Neighbours of one type among the arguments of a method call, without its receiver.
    pub fn of_method(&self, name: &str, count: usize) -> impl Iterator<Item = Pair> + '_ {
        self.methods.get(&(name.to_owned(), count)).into_iter().flatten().copied()
    }
}

impl Visit<'_> for Signatures {
    fn visit_signature(&mut self, signature: &Signature) {
        let types: Vec<String> = signature.inputs.iter().map(type_of).collect();
        let key = (signature.ident.to_string(), types.len());
        let pairs = pairs(&types);
        if signature.receiver().is_some() {
            let of_arguments = pairs.iter().filter(|pair| pair.0 > 0);
            let moved = of_arguments.map(|&(one, other)| (one - 1, other - 1));
            self.methods.entry((key.0.clone(), key.1 - 1)).or_default().extend(moved);
        }
        self.functions.entry(key).or_default().extend(pairs);
        visit::visit_signature(self, signature);
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
        assert_eq!(signatures.of_function("three", 4).collect::<Vec<_>>(), [(0, 2), (2, 3)]);
        assert_eq!(signatures.of_method("moved", 2).collect::<Vec<_>>(), [(0, 1)]);
        assert_eq!(signatures.of_function("moved", 3).collect::<Vec<_>>(), [(1, 2)]);
        assert_eq!(signatures.of_method("three", 4).count(), 0);
    }
}
