//! Crates that use others, and crates that the table lacks.

use super::{Workspace, said};

const TABLE: &str = "[a]\nuses = ['b']\n[b]\nuses = []\n";
const ROOT: &str =
    "[workspace]\nmembers = ['a', 'b']\n[workspace.dependencies]\na = { path = 'a' }\n";

fn two(root: &str, table: &str, b_manifest: &str, b: &str) -> Vec<String> {
    let manifest = format!("[package]\nname = 'b-lib'\n{b_manifest}");
    said(&Workspace::new(&[
        ("Cargo.toml", root),
        ("verify/layers.toml", table),
        ("a/Cargo.toml", "[package]\nname = 'a'\n[dependencies]\nb-lib = { path = '../b' }"),
        ("a/src/lib.rs", "use b_lib::B;"),
        ("b/Cargo.toml", &manifest),
        ("b/src/lib.rs", b),
    ]))
}

#[test]
fn an_arrow_that_the_table_allows() {
    assert_eq!(two(ROOT, TABLE, "", ""), [""; 0]);
}

#[test]
fn an_arrow_that_it_does_not() {
    let found = two(ROOT, TABLE, "", "\nfn f() { a::f(); } extern crate a as other;");
    let wrong = |path| format!("b/src/lib.rs:2: `{path}`: the crate `b` may not use `a`");
    assert_eq!(found, [wrong("a"), wrong("a::f")]);
}

#[test]
fn an_arrow_to_a_crate_that_a_macro_mentions_too() {
    let found = two(ROOT, TABLE, "", "make!(a: 1);\nfn f() { a::f(); }");
    assert_eq!(found, ["b/src/lib.rs:2: `a::f`: the crate `b` may not use `a`"]);
}

#[test]
fn an_arrow_to_a_crate_with_the_name_of_a_function() {
    let found = two(ROOT, TABLE, "", "use a::f;\nfn a() {}");
    assert_eq!(found, ["b/src/lib.rs:1: `a::f`: the crate `b` may not use `a`"]);
}

#[test]
fn an_arrow_of_the_manifest() {
    let wrong = "b/Cargo.toml:4: `a`: the crate `b` may not use `a`";
    for section in ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
        let manifest = format!("[{section}]\na = {{ workspace = true }}");
        assert_eq!(two(ROOT, TABLE, &manifest, ""), [wrong]);
    }
    // Tests may use everything.
    assert_eq!(two(ROOT, TABLE, "[dev-dependencies]\na = { path = '../a' }", ""), [""; 0]);
}

#[test]
fn a_crate_without_a_table() {
    let found = two(ROOT, "[a]\nuses = ['b']", "", "");
    assert_eq!(found, ["verify/layers.toml: no table for the crate `b`"]);
}

#[test]
fn a_crate_that_is_no_member_but_a_dependency() {
    let found = two("[workspace]\nmembers = ['a']", "[a]\nuses = ['b']", "", "");
    assert_eq!(found, ["verify/layers.toml: no table for the crate `b`"]);
}

#[test]
fn names_of_the_table_that_are_no_crate_and_no_target() {
    let found = two(
        ROOT,
        "[a]\nuses = ['b', 'd']\n[b]\nuses = []\n'src/main.rs' = []\n[c]\nuses = []",
        "",
        "",
    );
    let no_crate = |name| format!("verify/layers.toml: the workspace has no crate `{name}`");
    let no_target = "verify/layers.toml: `b` has no target with the root `src/main.rs`";
    assert_eq!(found, [no_target, &no_crate("c"), &no_crate("d")]);
}

#[test]
fn every_target_has_its_own_modules() {
    let manifest = "[[bin]]\nname = 'c'\npath = 'src/c.rs'";
    let found = said(&Workspace::new(&[
        ("Cargo.toml", "[workspace]\nmembers = ['b']"),
        ("verify/layers.toml", "[b]\nuses = []\n'src/lib.rs' = ['x']\n'src/c.rs' = ['x']"),
        ("b/Cargo.toml", &format!("[package]\nname = 'b'\n{manifest}")),
        ("b/src/lib.rs", "mod x;"),
        ("b/src/x.rs", ""),
        ("b/src/c.rs", "mod x; fn main() { b::f(); }"),
        ("b/src/bin/d/main.rs", "mod y;"),
        ("b/src/bin/d/y.rs", ""),
        ("b/benches/e.rs", "#[path = \"shared/y.rs\"] mod y;"),
        ("b/benches/shared/y.rs", "mod z;"),
        ("b/benches/shared/z.rs", ""),
    ]));
    let lacks = |file, target| {
        format!("{file}: module `y` is in no layer of `b/{target}`; add it to verify/layers.toml")
    };
    let of_bench = lacks("b/benches/shared/y.rs", "benches/e.rs");
    assert_eq!(found, [of_bench, lacks("b/src/bin/d/y.rs", "src/bin/d/main.rs")]);
}
