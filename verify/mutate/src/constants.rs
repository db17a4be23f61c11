//! Which `const fn`s are needed as such. A mutant is chosen at run time, so it can't stand in a function that
//! is evaluated when its caller compiles. Any other one loses its `const` in the mutated copy.
//!
//! A function is needed if its name stands in the initializer of a constant or static, in a `const` block, in
//! the length of an array or in an enum's discriminant, anywhere in the workspace, or in the body of a
//! `const fn` that is needed, or in a macro. Names are all that is compared, so of two functions of one name both
//! are.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Names of functions that have to stay `const`.
#[derive(Debug, Default)]
pub struct Constants {
    needed: BTreeSet<String>,
    /// What the bodies of `const fn`s name.
    bodies: BTreeMap<String, BTreeSet<String>>,
}

impl Constants {
    /// Reads a file.
    pub fn add(&mut self, tokens: TokenStream) {
        self.scan(tokens, false);
    }

    /// Follows what needed functions call, once every file was read.
    pub fn close(&mut self) {
        let mut todo: Vec<String> = self.needed.iter().cloned().collect();
        while let Some(name) = todo.pop() {
            for called in self.bodies.remove(&name).into_iter().flatten() {
                if self.needed.insert(called.clone()) {
                    todo.push(called);
                }
            }
        }
    }

    /// Whether functions of this name have to stay `const`.
    pub fn needs(&self, name: &str) -> bool {
        self.needed.contains(name)
    }

    fn scan(&mut self, tokens: TokenStream, in_macro: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for at in 0..tokens.len() {
            let before = at.checked_sub(1).map(|before| &tokens[before]);
            match &tokens[at] {
                TokenTree::Ident(word) if word == "const" => {
                    self.constant(before, &tokens[at + 1..], in_macro);
                }
                TokenTree::Ident(word) if word == "static" => self.initializer(&tokens[at + 1..]),
                TokenTree::Ident(word) if word == "enum" => self.discriminants(&tokens[at + 1..]),
                TokenTree::Group(group) => {
                    self.length(group.delimiter(), group.stream());
                    let argument = group.delimiter() == Delimiter::Brace && is_mark(before, '<');
                    if argument {
                        names(group.stream(), &mut self.needed);
                    }
                    // `name! { … }` or `macro_rules! name { … }`.
                    let two = at.checked_sub(2).map(|before| &tokens[before]);
                    let is_body = in_macro || is_mark(before, '!') || is_mark(two, '!');
                    self.scan(group.stream(), is_body && !is_transparent(&tokens[..at]));
                }
                _ => {}
            }
        }
    }

    /// What follows a `const`.
    fn constant(&mut self, before: Option<&TokenTree>, rest: &[TokenTree], in_macro: bool) {
        let words: Vec<String> = rest.iter().take(4).map(ToString::to_string).collect();
        if let Some(at) = words.iter().position(|word| word == "fn") {
            let Some(name) = words.get(at + 1) else { return };
            if in_macro {
                self.needed.insert(name.clone());
            }
            let body = rest.iter().find_map(braces).unwrap_or_default();
            names(body, self.bodies.entry(name.clone()).or_default());
        } else if let Some(TokenTree::Group(block)) = rest.first() {
            names(block.stream(), &mut self.needed);
        } else if !is_mark(before, '*') && !is_mark(before, '<') && !is_mark(before, ',') {
            self.initializer(rest);
        }
    }

    /// `NAME: TYPE = VALUE;`
    fn initializer(&mut self, rest: &[TokenTree]) {
        let end = rest.iter().position(|token| is_mark(Some(token), ';'));
        let value = rest[..end.unwrap_or(0)].iter().cloned().collect();
        names(value, &mut self.needed);
    }

    fn discriminants(&mut self, rest: &[TokenTree]) {
        if let Some(body) = rest.iter().find_map(braces) {
            names(body, &mut self.needed);
        }
    }

    /// `[VALUE; LENGTH]`
    fn length(&mut self, delimiter: Delimiter, inside: TokenStream) {
        let mut inside = inside.into_iter();
        if delimiter == Delimiter::Bracket && inside.any(|token| is_mark(Some(&token), ';')) {
            names(inside.collect(), &mut self.needed);
        }
    }
}

/// Whether what stands here is the name of a macro whose content is read as if it stood outside.
fn is_transparent(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Ident(name), TokenTree::Punct(_)] if name == "cfg_if")
}

fn braces(token: &TokenTree) -> Option<TokenStream> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.stream()),
        _ => None,
    }
}

fn is_mark(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

fn names(tokens: TokenStream, into: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                into.insert(name.to_string());
            }
            TokenTree::Group(group) => names(group.stream(), into),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str) -> Constants {
        let mut constants = Constants::default();
        constants.add(source.parse().unwrap());
        constants.close();
        constants
    }

    #[test]
    fn what_a_constant_calls_is_needed_and_what_that_calls() {
        let constants = of("
            const A: u32 = a();
            const fn a() -> u32 { b() }
            const fn b() -> u32 { 1 }
            const fn c() -> u32 { a() }
        ");
        assert!(constants.needs("a") && constants.needs("b"));
        assert!(!constants.needs("c"));
    }

    #[test]
    fn every_place_that_is_evaluated_early_counts() {
        let source = "
            static S: u8 = a();
            fn f() -> [u8; b()] { [const { c() }; d()] }
            enum E { One = e() }
            keep! { const fn g() {} }
            macro_rules! make { () => { const fn i() {} } }
            cfg_if::cfg_if! { if #[cfg(x)] { const fn h() {} } }
        ";
        let constants = of(source);
        for name in ["a", "b", "c", "d", "e", "g", "i"] {
            assert!(constants.needs(name), "{name}");
        }
        assert!(!constants.needs("f") && !constants.needs("h"));
    }

    #[test]
    fn pointers_and_parameters_are_no_constants() {
        let constants = of("fn f<T, const N: usize>(p: *const u8) { g(); }");
        assert!(!constants.needs("g"));
    }
}
