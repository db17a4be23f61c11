//! Which code is product code: everything but what is compiled for tests alone.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

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
