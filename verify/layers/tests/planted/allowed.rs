//! What is no fault.

use super::{Files, NOTHING, Names, TOP, faults, three};

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
fn what_is_allowed_is_no_fault() {
    let a_module_and_its_parent = [
        ("lib.rs", "mod of;"),
        ("of.rs", "mod it; use self::it::A; pub struct B; fn f(_: it::A) {}"),
        ("of/it.rs", "use super::B; pub struct A;"),
    ];
    let a_reexport_by_the_root = [
        ("lib.rs", "mod high; mod low; pub use crate::low::L;"),
        ("high.rs", "use crate::L;"),
        ("low.rs", "pub struct L;"),
    ];
    let a_reexport_of_what_is_in_a_module = [
        ("lib.rs", "mod setup; mod wr;"),
        ("setup.rs", "mod access; mod region; pub use self::{access::Access, region::Region};"),
        ("setup/access.rs", "pub struct Access;"),
        ("setup/region.rs", "use crate::wr::Sge; pub struct Region;"),
        ("wr.rs", "use crate::setup::Access; pub struct Sge;"),
    ];
    let siblings_on_one_level = [
        ("lib.rs", "mod one; mod two; mod three;"),
        ("one.rs", "use crate::{two, three};"),
        ("two.rs", "use crate::three;"),
        ("three.rs", ""),
    ];
    let elsewhere =
        "mod one { mod two; #[path = \"other.rs\"] mod three; } #[path = \"x/y.rs\"] mod four;";
    let files_of_modules_elsewhere = [
        ("lib.rs", elsewhere),
        ("one/two.rs", ""),
        ("one/other.rs", ""),
        ("x/y.rs", "mod five;"),
        ("x/five.rs", ""),
    ];
    let cases: [(Names<'_>, Files<'_>); 5] = [
        (&["of"], &a_module_and_its_parent),
        (&["high", "low"], &a_reexport_by_the_root),
        (&["setup::region", "wr", "setup"], &a_reexport_of_what_is_in_a_module),
        (&["one two three"], &siblings_on_one_level),
        (&["one four"], &files_of_modules_elsewhere),
    ];
    for (layers, files) in cases {
        assert_eq!(faults(layers, files), NOTHING, "{files:?}");
    }
    // Re-exports of a lower layer.
    let high = "pub use crate::base::B; pub use crate::low::*; pub struct Top;";
    let low = "pub use crate::base::B; pub fn f(_: crate::base::B) {}";
    assert_eq!(three(high, "pub struct B; fn b(_: super::base::B) {}", low), NOTHING);
}

#[test]
fn words_that_mean_something_else_are_no_arrows() {
    let no_paths = "
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
    assert_eq!(three(TOP, "", no_paths), NOTHING);
    let base = "pub struct Top; mod high { pub fn top() {} }";
    let nearer = "mod high { pub fn top() {} } pub struct Top; fn f(_: Top) { high::top(); self::high::top(); }";
    assert_eq!(three(TOP, base, nearer), NOTHING);
}
