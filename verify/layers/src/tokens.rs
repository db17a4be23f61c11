//! The paths in a stream of tokens. Attributes, documentation, the paths of `pub(in …)`, fields and methods are left
//! out, and so is what is quoted: that is code of another crate.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A path as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its names; generic arguments are left out.
    pub names: Vec<String>,
    /// Where it begins.
    pub line: usize,
    /// Whether it begins with `::`: with the name of a crate.
    pub of_crates: bool,
    /// Whether it is a call, or a macro's.
    pub called: Called,
}

/// What stands behind a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// Neither of these.
    Not,
    /// `(`
    Function,
    /// `!`
    Macro,
}

/// All paths, also those of one name, in their order.
pub fn paths(tokens: TokenStream) -> Vec<Written> {
    let mut found = Vec::new();
    Walk::new(tokens).all(&mut found);
    found
}

/// Macros whose arguments are quoted code.
const QUOTING: [&str; 4] = ["quote", "quote_spanned", "parse_quote", "parse_quote_spanned"];

struct Walk {
    tokens: Vec<TokenTree>,
    at: usize,
}

impl Walk {
    fn new(tokens: TokenStream) -> Self {
        Self { tokens: tokens.into_iter().collect(), at: 0 }
    }

    fn all(&mut self, found: &mut Vec<Written>) {
        while self.at < self.tokens.len() {
            self.next(found);
        }
    }

    /// Goes on by a path, a group, or a token.
    fn next(&mut self, found: &mut Vec<Written>) {
        match &self.tokens[self.at] {
            TokenTree::Group(group) => {
                Self::new(group.stream()).all(found);
                self.at += 1;
            }
            TokenTree::Ident(_) if self.is_member() => self.at += 1,
            TokenTree::Ident(ident) if ident == "pub" => self.visibility(),
            TokenTree::Ident(_) => self.path(false, &[], found),
            TokenTree::Punct(_) if self.is_colons(self.at) => {
                let of_crates = !self.continues();
                self.at += 2;
                match self.tokens.get(self.at) {
                    Some(TokenTree::Ident(_)) if of_crates => self.path(true, &[], found),
                    // Behind generic arguments: the names that are left belong to a type.
                    Some(TokenTree::Ident(_)) => self.path(false, &[], &mut Vec::new()),
                    _ => {}
                }
            }
            TokenTree::Punct(mark) => self.mark(mark.as_char()),
            TokenTree::Literal(_) => self.at += 1,
        }
    }

    /// An attribute, a lifetime, or a variable of a macro with the rest of its path.
    fn mark(&mut self, mark: char) {
        self.at += 1;
        match (mark, self.tokens.get(self.at)) {
            ('#', Some(TokenTree::Group(group))) if group.delimiter() == Delimiter::Bracket => {
                self.at += 1;
            }
            ('#', Some(TokenTree::Punct(inner))) if inner.as_char() == '!' => self.at += 2,
            ('\'', Some(TokenTree::Ident(_))) => self.at += 1,
            ('$', Some(TokenTree::Ident(name))) if name != "crate" => {
                self.path(false, &[], &mut Vec::new());
            }
            _ => {}
        }
    }

    fn visibility(&mut self) {
        self.at += 1;
        if let Some(TokenTree::Group(group)) = self.tokens.get(self.at) {
            let first = group.stream().into_iter().next();
            self.at += usize::from(first.is_some_and(|token| token.to_string() == "in"));
        }
    }

    /// A path that begins here, below `above`.
    fn path(&mut self, of_crates: bool, above: &[String], found: &mut Vec<Written>) {
        let mut names = above.to_vec();
        let line = self.tokens[self.at].span().start().line;
        while let Some(TokenTree::Ident(name)) = self.tokens.get(self.at) {
            names.push(name.to_string());
            self.at += 1;
            if !self.is_colons(self.at) {
                break;
            }
            match self.tokens.get(self.at + 2) {
                Some(TokenTree::Ident(_)) => self.at += 2,
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    Self::new(group.stream()).list(of_crates, &names, found);
                    self.at += 3;
                    return;
                }
                Some(TokenTree::Punct(mark)) if mark.as_char() == '*' => self.at += 3,
                _ => break,
            }
        }
        let called = match self.tokens.get(self.at) {
            Some(TokenTree::Group(it)) if it.delimiter() == Delimiter::Parenthesis => {
                Called::Function
            }
            Some(TokenTree::Punct(mark)) if mark.as_char() == '!' => Called::Macro,
            _ => Called::Not,
        };
        let quotes = names.last().is_some_and(|name| QUOTING.contains(&name.as_str()));
        if quotes && called == Called::Macro {
            self.at += 2;
        }
        found.push(Written { names, line, of_crates, called });
    }

    /// The list of a `use` declaration, behind `above::`.
    fn list(&mut self, of_crates: bool, above: &[String], found: &mut Vec<Written>) {
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                TokenTree::Ident(name) if name == "as" => self.at += 2,
                TokenTree::Ident(_) => self.path(of_crates, above, found),
                _ => self.at += 1,
            }
        }
    }

    fn is_colons(&self, at: usize) -> bool {
        let is_colon = |at: usize, joint: bool| match self.tokens.get(at) {
            Some(TokenTree::Punct(mark)) => {
                mark.as_char() == ':' && (!joint || mark.spacing() == Spacing::Joint)
            }
            _ => false,
        };
        is_colon(at, true) && is_colon(at + 1, false)
    }

    fn punct(&self, before: usize) -> Option<char> {
        match self.tokens.get(self.at.checked_sub(before)?)? {
            TokenTree::Punct(mark) => Some(mark.as_char()),
            _ => None,
        }
    }

    /// A field or a method: behind a `.` that is no range.
    fn is_member(&self) -> bool {
        self.punct(1) == Some('.') && self.punct(2) != Some('.')
    }

    /// Whether `::` stands behind generic arguments.
    fn continues(&self) -> bool {
        self.punct(1) == Some('>') && !matches!(self.punct(2), Some('-' | '='))
    }
}
