//! Circles of modules with one parent.

use super::faults;

#[test]
fn of_two() {
    let files = [
        ("lib.rs", "mod one; mod two;"),
        ("one.rs", "use crate::two::B;\npub struct A;"),
        ("two.rs", "\nuse crate::one::A; use super::one; pub struct B;"),
    ];
    let said = "circle: one -> two (a/src/one.rs:1 crate::two::B), \
                two -> one (a/src/two.rs:2 crate::one::A, and 1 more)";
    assert_eq!(faults(&["one two"], &files), [said]);
}

#[test]
fn of_three() {
    let files = [
        ("lib.rs", "mod one; mod two; mod three;"),
        ("one.rs", "use crate::two; use crate::three;"),
        ("two.rs", "use crate::three;"),
        ("three.rs", "fn f() { crate::one::x() }"),
    ];
    let said = "circle: one -> three (a/src/one.rs:1 crate::three), \
                three -> one (a/src/three.rs:1 crate::one::x)";
    assert_eq!(faults(&["one two three"], &files), [said]);
    let files = [files[0], ("one.rs", "use crate::two;"), files[2], files[3]];
    let said = "circle: one -> two (a/src/one.rs:1 crate::two), \
                two -> three (a/src/two.rs:1 crate::three), \
                three -> one (a/src/three.rs:1 crate::one::x)";
    assert_eq!(faults(&["one two three"], &files), [said]);
}

#[test]
fn in_a_nested_folder() {
    let files = [
        ("lib.rs", "mod of;"),
        ("of/mod.rs", "mod it;"),
        ("of/it.rs", "mod one; mod two { pub mod deep { use super::super::one; } }"),
        ("of/it/one.rs", "use super::two::deep;"),
    ];
    let said = "circle: of::it::one -> of::it::two (a/src/of/it/one.rs:1 super::two::deep), \
                of::it::two -> of::it::one (a/src/of/it.rs:1 super::super::one)";
    assert_eq!(faults(&["of"], &files), [said]);
}

#[test]
fn that_a_reexport_by_the_parent_hides() {
    let files = [
        ("lib.rs", "mod of;"),
        ("of.rs", "mod one; mod two; use self::one::A; use self::two::B;"),
        ("of/one.rs", "use super::B; pub struct A;"),
        ("of/two.rs", "use super::A; pub struct B;"),
    ];
    let said = "circle: of::one -> of::two (a/src/of/one.rs:1 super::B), \
                of::two -> of::one (a/src/of/two.rs:1 super::A)";
    assert_eq!(faults(&["of"], &files), [said]);
}
