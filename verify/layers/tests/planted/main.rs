//! Faults that are planted in small workspaces, each of which is found, and nothing else; and what is no fault.

use std::fs;

use verify_layers::check;

mod allowed;

/// What is wrong with a workspace of these files.
fn said(files: &[(&str, &str)]) -> Vec<String> {
    let workspace = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let file = workspace.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    check(workspace.path()).unwrap().faults.into_iter().collect()
}

/// What is wrong with a workspace of the crate `a`, which has these layers and files.
fn faults(layers: &[&str], files: &[(&str, &str)]) -> Vec<String> {
    let table = format!("[a]\nuses = []\n\"src/lib.rs\" = {layers:?}\n");
    let paths: Vec<_> = files.iter().map(|(path, _)| format!("a/src/{path}")).collect();
    let mut all = vec![
        ("Cargo.toml", "[workspace]\nmembers = ['a']"),
        ("a/Cargo.toml", "[package]\nname = 'a'"),
        ("verify/layers.toml", table.as_str()),
    ];
    all.extend(paths.iter().map(String::as_str).zip(files.iter().map(|(_, text)| *text)));
    said(&all)
}

/// The crate `a` has the modules `high`, `low` and `base`, in this order; what is wrong if the latter two say this.
fn three(base: &str, low: &str) -> Vec<String> {
    let root =
        "pub mod high; pub mod low; pub mod base;\npub use crate::high::Top;\npub struct Own;";
    let high = "pub struct Top; pub fn top() {} pub mod inner { pub struct Deep; }\n#[macro_export] macro_rules! m { () => {}; }";
    let files = [("lib.rs", root), ("high.rs", high), ("low.rs", low), ("base.rs", base)];
    faults(&["high", "low", "base"], &files)
}

const NOTHING: [&str; 0] = [];

#[test]
fn an_arrow_goes_up_however_it_is_written() {
    for (line, path, low) in [
        (1, "crate::high::Top", "use crate::high::Top;"),
        (2, "crate::high", "\nuse crate::high;"),
        (1, "crate::high", "use crate::high::*;"),
        (1, "crate::high::Top", "use crate::high::Top as _;"),
        (1, "crate::high", "use crate::{base, high::{self}};"),
        (3, "crate::high::Top", "use crate::{\n  base,\n  high::Top,\n};"),
        (2, "crate::high", "fn f() {\n use crate::high;\n}"),
        (1, "crate::high::top", "fn f() { crate::high::top(); }"),
        (1, "crate::high::Top", "fn f(_: Vec<crate::high::Top>) {}"),
        (1, "crate::high::Top", "impl<T: crate::high::Top> X for T {}"),
        (1, "crate::high::Top", "fn f() { if let crate::high::Top = x {} }"),
        (1, "crate::high::Top", "fn f() { Vec::<crate::high::Top>::new(); }"),
        (1, "super::high::top", "fn f() { super::high::top(); }"),
        (1, "self::super::high::Top", "use self::super::high::Top;"),
        (1, "crate::high::top", "#[arg(value_parser = crate::high::top)] struct A;"),
        (
            1,
            "crate::high::top",
            "macro_rules! m { ($x:expr) => { #[cfg(test)] let a = 1; $crate::high::top($x); }; }",
        ),
        // Through the root.
        (1, "crate::Top", "use crate::Top;"),
        (1, "super::Top", "fn f(_: super::Top) {}"),
        (1, "crate::m", "crate::m!();"),
        // In a macro's arguments, in its body, in either branch of a `cfg_if!`.
        (2, "crate::high::top", "fn f() {\n println!(\"{}\", crate::high::top());\n}"),
        (1, "crate::high::top", "macro_rules! m { ($x:expr) => { $crate::high::top($x) }; }"),
        (1, "super::high::top", "macro_rules! m { () => { super::high::top() }; }"),
        (1, "crate::high::Top", "macro_rules! m { () => { use $crate::{base, high::{Top}}; }; }"),
        (1, "crate::high", "macro_rules! m { () => { x; use $crate::high::*; }; }"),
        (1, "crate::high::Top", "fn f() { vec![S { a: crate::high::Top, b: 1 }]; }"),
        (2, "me::high::top", "use crate::{self as me};\nfn f() { me::high::top(); }"),
        (1, "crate::high::Vec", "fn f() { vec![crate::high::Vec::<u8>::new()]; }"),
        (
            1,
            "crate::high::Top",
            "cfg_if::cfg_if! { if #[cfg(unix)] { use crate::high::Top; } else {} }",
        ),
        (
            1,
            "crate::high::Top",
            "cfg_if::cfg_if! { if #[cfg(unix)] {} else { use crate::high::Top; } }",
        ),
        (
            1,
            "crate::high::Top",
            "cfg_if::cfg_if! { if #[cfg(test)] {} else { use crate::high::Top; } }",
        ),
        // What is not only there for tests is product code.
        (1, "crate::high::Top", "#[cfg(any(test, feature = \"x\"))] use crate::high::Top;"),
        (1, "crate::high::Top", "#[cfg(not(test))] use crate::high::Top;"),
        (1, "crate::high::Top", "#[cfg(feature = \"test\")] use crate::high::Top;"),
        (1, "crate::high::Top", "#[cfg(loom)] use crate::high::Top;"),
    ] {
        let up = "goes up from low (layer 2) to high (layer 1)";
        assert_eq!(three("", low), [format!("a/src/low.rs:{line}: `{path}` {up}")], "{low}");
    }
}

#[test]
fn an_arrow_goes_up_from_and_to_deeper_modules_and_through_imports() {
    for (base, low, expected) in [
        (
            "",
            "mod of { mod it { use super::super::super::high::Top; } }",
            &[
                "a/src/low.rs:1: `super::super::super::high::Top` goes up from low::of::it (layer 2) to high (layer 1)",
            ][..],
        ),
        (
            "",
            "#[cfg(test)] mod sys {}\n#[cfg(not(test))] mod sys { pub use crate::high::Top; }",
            &[
                "a/src/low.rs:2: `crate::high::Top` goes up from low::sys (layer 2) to high (layer 1)",
            ],
        ),
        (
            "",
            "make! { use crate::high::{inner::*}; }",
            &[
                "a/src/low.rs:1: `crate::high::inner` goes up from low (layer 2) to high::inner (layer 1)",
            ],
        ),
        (
            "pub use crate::high::{Top as Other, inner};",
            "use crate::base::Other;\nuse crate::base::inner::Deep;",
            &[
                "a/src/base.rs:1: `crate::high::Top` goes up from base (layer 3) to high (layer 1)",
                "a/src/base.rs:1: `crate::high::inner` goes up from base (layer 3) to high::inner (layer 1)",
                "a/src/low.rs:1: `crate::base::Other` goes up from low (layer 2) to high (layer 1)",
                "a/src/low.rs:2: `crate::base::inner::Deep` goes up from low (layer 2) to high::inner (layer 1)",
            ],
        ),
        (
            "pub use crate::high::inner;",
            "use crate::base;\nfn f(_: base::inner::Deep) { m!(base::inner::Deep); }",
            &[
                "a/src/base.rs:1: `crate::high::inner` goes up from base (layer 3) to high::inner (layer 1)",
                "a/src/low.rs:2: `base::inner::Deep` goes up from low (layer 2) to high::inner (layer 1)",
            ],
        ),
        (
            "",
            "use super::*;",
            &[
                "a/src/low.rs:1: `super` goes up from low to the root; name the module that defines the item, or move it down",
            ],
        ),
        (
            "",
            "use crate::Own;",
            &[
                "a/src/low.rs:1: `crate::Own` goes up from low to the root; name the module that defines the item, or move it down",
            ],
        ),
        (
            "use crate::low::Top;",
            "use crate::base::Top; pub struct Top;",
            &["a/src/base.rs:1: `crate::low::Top` goes up from base (layer 3) to low (layer 2)"],
        ),
    ] {
        assert_eq!(three(base, low), expected, "{low}");
    }
    let files = [
        ("lib.rs", "mod queue; mod channel;"),
        ("queue/mod.rs", "pub mod mpsc; pub fn own() {}"),
        ("queue/mpsc.rs", "use crate::channel::C; use super::own;"),
        ("channel.rs", "use crate::queue::own; use crate::queue::mpsc;\npub struct C;"),
    ];
    let said = "a/src/channel.rs:1: `crate::queue::mpsc` goes up from channel (layer 2) to queue::mpsc (layer 1)";
    assert_eq!(faults(&["queue::mpsc", "channel", "queue"], &files), [said]);
    // A module that hands on what is above the user.
    let files = [
        ("lib.rs", "mod high; mod low; mod base;"),
        ("high.rs", "pub use crate::base::B;"),
        ("low.rs", "use crate::high::B;"),
        ("base.rs", "pub struct B;"),
    ];
    let said = "a/src/low.rs:1: `crate::high::B` goes up from low (layer 2) to high (layer 1)";
    assert_eq!(faults(&["high", "low", "base"], &files), [said]);
}

#[test]
fn modules_that_a_macro_declares_are_read() {
    for (root, path) in [
        (
            "cfg_if::cfg_if! { if #[cfg(not(loom))] { mod high; mod low; pub use crate::high::Top; } }",
            "crate::Top",
        ),
        (
            "only_here! { mod high; } cfg_rt! { mod low; #[cfg(test)] mod test; }",
            "crate::high::Top",
        ),
    ] {
        let low = format!("use {path};");
        let test = ("test.rs", "use crate::high::Top;");
        let files = [("lib.rs", root), ("high.rs", "pub struct Top;"), ("low.rs", &low), test];
        let files = &files[..if root.contains("test") { 4 } else { 3 }];
        let up = "goes up from low (layer 2) to high (layer 1)";
        assert_eq!(faults(&["high", "low"], files), [format!("a/src/low.rs:1: `{path}` {up}")]);
    }
}

#[test]
fn modules_with_one_parent_form_no_circle() {
    let part = |place: &str, path: &str, ends: &str| {
        format!("a/src/{place}: `{path}` is part of a circle: {ends}")
    };
    let files = [
        ("lib.rs", "mod one; mod two; mod three; mod four;"),
        ("one.rs", "use crate::two::B;"),
        ("two.rs", "\nuse crate::three; use super::four;"),
        ("three.rs", "fn f() { crate::one::x() }"),
        ("four.rs", ""),
    ];
    assert_eq!(
        faults(&["one two three four"], &files),
        [
            part("one.rs:1", "crate::two::B", "one -> two"),
            part("three.rs:1", "crate::one::x", "three -> one"),
            part("two.rs:2", "crate::three", "two -> three"),
        ]
    );
    let nested = [
        ("lib.rs", "mod of;"),
        ("of/mod.rs", "mod it;"),
        ("of/it.rs", "mod one; mod two { pub mod deep { use super::super::one; } }"),
        ("of/it/one.rs", "use super::two::deep;"),
    ];
    assert_eq!(
        faults(&["of"], &nested),
        [
            part("of/it.rs:1", "super::super::one", "of::it::two -> of::it::one"),
            part("of/it/one.rs:1", "super::two::deep", "of::it::one -> of::it::two"),
        ]
    );
    let hidden_by_imports = [
        ("lib.rs", "mod of;"),
        ("of.rs", "mod one; mod two; use self::one::A; use self::two::B;"),
        ("of/one.rs", "use super::B; pub struct A;"),
        ("of/two.rs", "use super::A; pub struct B;"),
    ];
    assert_eq!(
        faults(&["of"], &hidden_by_imports),
        [
            part("of/one.rs:1", "super::B", "of::one -> of::two"),
            part("of/two.rs:1", "super::A", "of::two -> of::one"),
        ]
    );
}

#[test]
fn files_modules_and_the_table_agree() {
    let root = "mod one; #[cfg(test)] mod test;";
    let table = |what| format!("the table of a/src/lib.rs: {what}");
    let gone = table("there is no module `one::two` outside tests");
    let of_tests = table("there is no module `test` outside tests");
    let twice = table("module `one` is there twice");
    for (layers, root, files, expected) in [
        (
            &["one"][..],
            "mod one; mod two;",
            &[("one.rs", ""), ("two/mod.rs", "")][..],
            &["a/src/two/mod.rs: module `two` is in no layer of a/src/lib.rs; add it to the table"]
                [..],
        ),
        (
            &["one"],
            "mod one;",
            &[("one.rs", ""), ("one/lost.rs", "")],
            &["a/src/one/lost.rs: file in no module; declare it with `mod`, or remove it"],
        ),
        (&["one"], "mod one {\nmod two; }", &[], &["a/src/lib.rs:2: module `two` has no file"]),
        (&["one one::two", "test"], root, &[("one.rs", ""), ("test.rs", "")], &[&gone, &of_tests]),
        (&["one", "one"], "mod one;", &[("one.rs", "")], &[&twice]),
        (
            &["one"],
            "mod one;",
            &[("one.rs", "fn f() {}\nfn {")],
            &["a/src/one.rs:2: cannot read this: cannot parse string into token stream"],
        ),
    ] {
        let files = [&[("lib.rs", root)], files].concat();
        assert_eq!(faults(layers, &files), expected);
    }
}

/// What is wrong if the crate `a` uses `b`, which has this manifest and root.
fn two(members: &str, table: &str, b_manifest: &str) -> Vec<String> {
    let root =
        format!("[workspace]\nmembers = {members}\n[workspace.dependencies]\na = {{ path = 'a' }}");
    said(&[
        ("Cargo.toml", &root),
        ("verify/layers.toml", table),
        ("a/Cargo.toml", "[package]\nname = 'a'\n[dependencies]\nb-lib = { path = '../b' }"),
        ("a/src/lib.rs", "use b_lib::B;"),
        ("b/Cargo.toml", &format!("[package]\nname = 'b-lib'\n{b_manifest}")),
        ("b/src/lib.rs", ""),
    ])
}

#[test]
fn the_table_names_the_crates_and_targets_that_there_are_and_what_they_may_use() {
    let (both, table) = ("['a', 'b']", "[a]\nuses = ['b']\n[b]\nuses = []\n");
    assert_eq!(two(both, table, ""), NOTHING);
    for section in ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
        let manifest = format!("[{section}]\na = {{ workspace = true }}");
        let wrong = "b/Cargo.toml: the crate `b` may not use `a`";
        assert_eq!(two(both, table, &manifest), [wrong]);
    }
    // Tests may use everything.
    assert_eq!(two(both, table, "[dev-dependencies]\na = { path = '../a' }"), NOTHING);
    // A dependency is a member, though nobody lists it.
    for members in [both, "['a']"] {
        let no_table = "verify/layers.toml: no table for the crate `b`";
        assert_eq!(two(members, "[a]\nuses = ['b']", ""), [no_table]);
    }
    let more = "[a]\nuses = ['b', 'd']\n[b]\nuses = []\n'src/main.rs' = []\n[c]\nuses = []";
    assert_eq!(
        two(both, more, ""),
        [
            "verify/layers.toml: `b` has no target with the root `src/main.rs`",
            "verify/layers.toml: the workspace has no crate `c`",
            "verify/layers.toml: the workspace has no crate `d`",
        ]
    );
}

#[test]
fn every_target_has_its_own_modules() {
    let found = said(&[
        ("Cargo.toml", "[workspace]\nmembers = ['b']"),
        ("verify/layers.toml", "[b]\nuses = []\n'src/lib.rs' = ['x']\n'src/c.rs' = ['x']"),
        (
            "b/Cargo.toml",
            "[package]\nname = 'b'\nedition = '2024'\n[[bin]]\nname = 'c'\npath = 'src/c.rs'",
        ),
        ("b/src/lib.rs", "mod x;"),
        ("b/src/x.rs", ""),
        ("b/src/c.rs", "mod x; fn main() { b::f(); }"),
        ("b/src/bin/d/main.rs", "mod y;"),
        ("b/src/bin/d/y.rs", ""),
        ("b/benches/e.rs", "#[path = \"shared/y.rs\"] mod y;"),
        ("b/benches/shared/y.rs", "mod z;"),
        ("b/benches/shared/z.rs", ""),
    ]);
    let lacks = |file, target| {
        format!("{file}: module `y` is in no layer of b/{target}; add it to the table")
    };
    let of_bench = lacks("b/benches/shared/y.rs", "benches/e.rs");
    assert_eq!(found, [of_bench, lacks("b/src/bin/d/y.rs", "src/bin/d/main.rs")]);
}
