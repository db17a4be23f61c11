//! Files, modules and the table, one without the other.

use super::{faults, three};

#[test]
fn a_module_in_no_layer() {
    let files = [("lib.rs", "mod one; mod two;"), ("one.rs", ""), ("two/mod.rs", "")];
    let said = "a/src/two/mod.rs: module `two` is in no layer of `a/src/lib.rs`; add it to verify/layers.toml";
    assert_eq!(faults(&["one"], &files), [said]);
}

#[test]
fn a_file_in_no_module() {
    let files = [("lib.rs", "mod one;"), ("one.rs", ""), ("one/lost.rs", "")];
    let said = "a/src/one/lost.rs: file in no module; declare it with `mod`, or remove it";
    assert_eq!(faults(&["one"], &files), [said]);
}

#[test]
fn a_module_without_a_file() {
    let said = "a/src/lib.rs:2: module `one` has no file";
    assert_eq!(faults(&["one"], &[("lib.rs", "\nmod one;")]), [said]);
}

#[test]
fn a_name_of_the_table_that_is_no_module() {
    let files = [("lib.rs", "mod one; #[cfg(test)] mod test;"), ("one.rs", ""), ("test.rs", "")];
    let said = |module| {
        format!(
            "verify/layers.toml: `a`, `src/lib.rs`: there is no module `{module}` outside tests"
        )
    };
    assert_eq!(faults(&["one one::two", "test"], &files), [said("one::two"), said("test")]);
}

#[test]
fn a_name_that_the_table_has_twice() {
    let files = [("lib.rs", "mod one;"), ("one.rs", "")];
    let said = "verify/layers.toml: `a`, `src/lib.rs`: module `one` is there twice";
    assert_eq!(faults(&["one", "one"], &files), [said]);
}

#[test]
fn a_file_that_is_no_rust_is_an_error() {
    let files = [
        ("Cargo.toml", "[workspace]\nmembers = ['a']"),
        ("a/Cargo.toml", "[package]\nname = 'a'"),
        ("a/src/lib.rs", "fn f() {}\nfn {"),
        ("verify/layers.toml", "[a]\nuses = []"),
    ];
    let error = super::Workspace::new(&files).check().unwrap_err();
    assert_eq!(error.to_string(), "a/src/lib.rs:2: cannot parse this");
}

#[test]
fn nothing_is_wrong_with_what_the_others_start_from() {
    assert_eq!(three(super::TOP, "", ""), [""; 0]);
}
