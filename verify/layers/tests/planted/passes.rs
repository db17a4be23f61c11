//! What is no fault.

use super::{TOP, faults, three};

const NOTHING: [&str; 0] = [];

#[test]
fn tests_use_everything() {
    let low = "
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
        cfg_if::cfg_if! { if #[cfg(test)] { use crate::high::Top; mod more { use crate::high::Top; } } }
    ";
    assert_eq!(three(TOP, "", low), NOTHING);
}

#[test]
fn files_of_tests_use_everything() {
    let files = [
        ("lib.rs", "mod high; mod low; #[cfg(test)] mod test;"),
        ("high.rs", TOP),
        ("low.rs", "#[cfg(test)] mod tests;"),
        ("low/tests.rs", "mod more; use crate::high::Top;"),
        ("low/tests/more.rs", "use crate::high::Top;"),
        ("test.rs", "use crate::high::Top; mod deep;"),
        ("test/deep.rs", "use crate::high::Top;"),
    ];
    assert_eq!(faults(&["high", "low"], &files), NOTHING);
}

#[test]
fn what_is_not_only_for_tests_is_product_code() {
    for cfg in ["any(test, feature = \"x\")", "not(test)", "feature = \"test\"", "loom"] {
        let low = format!("#[cfg({cfg})] use crate::high::Top;");
        assert_eq!(three(TOP, "", &low).len(), 1, "{cfg}");
    }
}

#[test]
fn a_module_and_its_parent_use_each_other() {
    let files = [
        ("lib.rs", "mod of;"),
        ("of.rs", "mod it; use self::it::A; pub struct B; fn f(_: it::A) {}"),
        ("of/it.rs", "use super::B; pub struct A;"),
    ];
    assert_eq!(faults(&["of"], &files), NOTHING);
}

#[test]
fn a_reexport_of_a_lower_layer() {
    let high = "pub use crate::base::B; pub use crate::low::*; pub struct Top;";
    let low = "pub use crate::base::B; pub fn f(_: crate::base::B) {}";
    assert_eq!(three(high, "pub struct B; fn b(_: super::base::B) {}", low), NOTHING);
}

#[test]
fn a_reexport_by_the_root_of_a_lower_layer() {
    let files = [
        ("lib.rs", "mod high; mod low; pub use crate::low::L;"),
        ("high.rs", "use crate::L;"),
        ("low.rs", "pub struct L;"),
    ];
    assert_eq!(faults(&["high", "low"], &files), NOTHING);
}

#[test]
fn a_module_reexports_what_is_in_it_from_a_higher_layer() {
    let files = [
        ("lib.rs", "mod setup; mod wr;"),
        ("setup.rs", "mod access; mod region; pub use self::{access::Access, region::Region};"),
        ("setup/access.rs", "pub struct Access;"),
        ("setup/region.rs", "use crate::wr::Sge; pub struct Region;"),
        ("wr.rs", "use crate::setup::Access; pub struct Sge;"),
    ];
    assert_eq!(faults(&["setup::region", "wr", "setup"], &files), NOTHING);
}

#[test]
fn siblings_on_one_level_without_a_circle() {
    let files = [
        ("lib.rs", "mod one; mod two; mod three;"),
        ("one.rs", "use crate::{two, three};"),
        ("two.rs", "use crate::three;"),
        ("three.rs", ""),
    ];
    assert_eq!(faults(&["one two three"], &files), NOTHING);
}

#[test]
fn words_that_are_no_paths() {
    let low = "
        //! [`crate::high::Top`]
        /// See [`crate::high::top`].
        #[doc = \"crate::high\"]
        #[derive(crate::high::Top)]
        pub(in crate::high) struct S;
        fn f<'high>(high: &'high u8) -> ::std::vec::Vec<u8> {
            high.top::<u8>(0..high.x);
            \"crate::high::top\";
            quote!(crate::high::top());
            <S as T>::high::x()
        }
        macro_rules! m { ($high:ident) => { $high::top() }; }
    ";
    assert_eq!(three(TOP, "", low), NOTHING);
}

#[test]
fn names_that_mean_something_nearer() {
    let base = "pub struct Top; mod high { pub fn top() {} }";
    let low = "mod high { pub fn top() {} } pub struct Top; fn f(_: Top) { high::top(); self::high::top(); }";
    assert_eq!(three(TOP, base, low), NOTHING);
}

#[test]
fn paths_of_modules() {
    let files = [
        (
            "lib.rs",
            "mod one { mod two; #[path = \"other.rs\"] mod three; } #[path = \"x/y.rs\"] mod four;",
        ),
        ("one/two.rs", ""),
        ("one/other.rs", ""),
        ("x/y.rs", "mod five;"),
        ("x/five.rs", ""),
    ];
    assert_eq!(faults(&["one four"], &files), NOTHING);
}
