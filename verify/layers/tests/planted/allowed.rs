//! What is no fault.

use super::{NOTHING, faults, three};

#[test]
fn what_is_allowed_is_no_fault() {
    for (layers, files) in [
        // A module and its parent.
        (
            &["of"][..],
            &[
                ("lib.rs", "mod of;"),
                ("of.rs", "mod it; use self::it::A; pub struct B; fn f(_: it::A) {}"),
                ("of/it.rs", "use super::B; pub struct A;"),
            ][..],
        ),
        // A re-export by the root.
        (
            &["high", "low"],
            &[
                (
                    "lib.rs",
                    "mod high; mod low; pub use crate::low::L; pub use other; pub use other::Foreign;",
                ),
                ("high.rs", "use crate::{Foreign, L}; use other::{self, A}; fn f() { other::x() }"),
                ("low.rs", "pub struct L;"),
            ],
        ),
        // A re-export of what is in a module, which stands above it.
        (
            &["setup::region", "wr", "setup"],
            &[
                ("lib.rs", "mod setup; mod wr;"),
                (
                    "setup.rs",
                    "mod access; mod region; pub use self::{access::Access, region::Region};",
                ),
                ("setup/access.rs", "pub struct Access;"),
                ("setup/region.rs", "use crate::wr::Sge; pub struct Region;"),
                ("wr.rs", "use crate::setup::Access; pub struct Sge;"),
            ],
        ),
        // Siblings on one level.
        (
            &["one two three"],
            &[
                ("lib.rs", "mod one; mod two; mod three;"),
                ("one.rs", "use crate::{two, three};"),
                ("two.rs", "use crate::three;"),
                ("three.rs", ""),
            ],
        ),
        // Files that an attribute names.
        (
            &["one four"],
            &[
                (
                    "lib.rs",
                    "mod one { mod two; #[path = \"other.rs\"] mod three; } #[path = \"x/y.rs\"] mod four;",
                ),
                ("one/two.rs", ""),
                ("one/other.rs", ""),
                ("x/y.rs", "mod five;"),
                ("x/five.rs", ""),
            ],
        ),
        // Modules of tests.
        (
            &["high", "low"],
            &[
                ("lib.rs", "mod high; mod low; #[cfg(test)] mod test;"),
                ("high.rs", "pub struct Top;"),
                ("low.rs", "#[cfg(test)] mod tests;"),
                ("low/tests.rs", "mod more; use crate::high::Top;"),
                ("low/tests/more.rs", "use crate::high::Top;"),
                ("test.rs", "use crate::high::Top; mod deep;"),
                ("test/deep.rs", "use crate::high::Top;"),
            ],
        ),
    ] {
        assert_eq!(faults(layers, files), NOTHING, "{files:?}");
    }
}

#[test]
fn tests_and_words_that_mean_something_else_are_no_arrows() {
    let of_tests = "
        #[cfg(test)] use crate::high::Top;
        #[cfg(all(test, unix))] mod more { use crate::high::Top; }
        #[cfg(test)] mod tests { use crate::high::*; }
        #[test] fn t() { crate::high::top(); }
        pub struct S { #[cfg(test)] chance: crate::high::Top, other: u8 }
        impl S { #[cfg(test)] fn f() { crate::high::top(); } }
        fn f() {
            #[cfg(test)]
            crate::high::top();
            #[cfg(test)]
            let x = crate::high::top();
            match 1 { #[cfg(test)] 1 => crate::high::top(), _ => {} }
            S { #[cfg(test)] chance: crate::high::Top, other: 1 };
        }
        macro_rules! m { () => { #[test] fn t() { $crate::high::top(); } }; }
        mod third { #![cfg(test)] use crate::high::Top; }
        cfg_if::cfg_if! { if #[cfg(test)] { use crate::high::Top; mod more2 { use crate::high::Top; } } }
    ";
    let no_paths = "
        //! [`crate::high::Top`]
        /// See [`crate::high::top`].
        #[doc = \"crate::high\"]
        pub(in crate::high) struct S;
        use ::other::high::Top;
        fn f<'high>(high: &'high u8) -> ::std::vec::Vec<u8> { high.top::<u8>(0..high.x); quote!(crate::high::top()); \"crate::high::top\" }
        macro_rules! m { ($high:ident) => { $high::top(self.x, \"crate::high::top\") }; }
        mod high { pub fn top() {} }
        fn g() { high::top(); self::high::top(); }
    ";
    for low in [of_tests, no_paths] {
        assert_eq!(three("", low), NOTHING);
    }
}
