//! Faults that are planted in small workspaces, each of which is found, and nothing else; and what is no fault.

use std::fs;

use verify_layers::{Report, check};

mod allowed;

fn checked(files: &[(&str, &str)]) -> anyhow::Result<Report> {
    let workspace = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let file = workspace.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    check(workspace.path(), None, &[])
}

/// What is wrong with a workspace of these files.
fn said(files: &[(&str, &str)]) -> Vec<String> {
    checked(files).unwrap().faults.into_iter().collect()
}

type Names<'a> = &'a [&'a str];
type Files<'a> = &'a [(&'a str, &'a str)];

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

/// The crate `a` has the modules `high`, `low` and `base`, in this order; what is wrong if they say this.
fn three(high: &str, base: &str, low: &str) -> Vec<String> {
    let root =
        "pub mod high; pub mod low; pub mod base;\npub use crate::high::Top;\npub struct Own;";
    let files = [("lib.rs", root), ("high.rs", high), ("low.rs", low), ("base.rs", base)];
    faults(&["high", "low", "base"], &files)
}

/// A module with something to use.
const TOP: &str = "pub struct Top; pub fn top() {} pub mod inner { pub struct Deep; }";
const NOTHING: [&str; 0] = [];

fn up(line: usize, path: &str) -> String {
    format!("a/src/low.rs:{line}: `{path}` goes up from low (layer 2) to high (layer 1)")
}

#[test]
fn an_arrow_goes_up_however_it_is_written() {
    for (line, path, low) in [
        (1, "crate::high::Top", "use crate::high::Top;"),
        (2, "crate::high", "\nuse crate::high;"),
        (1, "crate::high", "use crate::high::*;"),
        (1, "crate::high::Top", "use crate::high::Top as _;"),
        (1, "crate::high::self", "use crate::{base, high::{self}};"),
        (3, "crate::high::Top", "use crate::{\n  base,\n  high::Top,\n};"),
        (2, "crate::high", "fn f() {\n use crate::high;\n}"),
        (1, "crate::high::top", "fn f() { crate::high::top(); }"),
        (1, "crate::high::Top", "fn f(_: Vec<crate::high::Top>) {}"),
        (1, "crate::high::Top", "impl<T: crate::high::Top> X for T {}"),
        (1, "crate::high::Top", "fn f() { if let crate::high::Top = x {} }"),
        (1, "crate::high::Top", "fn f() { Vec::<crate::high::Top>::new(); }"),
        (1, "super::high::top", "fn f() { super::high::top(); }"),
        (1, "self::super::high::Top", "use self::super::high::Top;"),
        // Through the root.
        (1, "crate::Top", "use crate::Top;"),
        (1, "super::Top", "fn f(_: super::Top) {}"),
        // In a macro's arguments, in its body, in either branch of a `cfg_if!`.
        (2, "crate::high::top", "fn f() {\n println!(\"{}\", crate::high::top());\n}"),
        (1, "crate::high::top", "macro_rules! m { ($x:expr) => { $crate::high::top($x) }; }"),
        (1, "super::high::top", "macro_rules! m { () => { super::high::top() }; }"),
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
        // What is not only there for tests is product code.
        (1, "crate::high::Top", "#[cfg(any(test, feature = \"x\"))] use crate::high::Top;"),
        (1, "crate::high::Top", "#[cfg(not(test))] use crate::high::Top;"),
        (1, "crate::high::Top", "#[cfg(feature = \"test\")] use crate::high::Top;"),
        (1, "crate::high::Top", "#[cfg(loom)] use crate::high::Top;"),
    ] {
        assert_eq!(three(TOP, "", low), [up(line, path)], "{low}");
    }
}

#[test]
fn an_arrow_from_or_to_a_deeper_module_goes_up() {
    for (up, low) in [
        (
            "from low::of::it (layer 2) to high (layer 1)",
            "mod of { mod it { use super::super::super::high::Top; } }",
        ),
        (
            "`crate::high::inner` goes up from low (layer 2) to high::inner (layer 1)",
            "make! { use crate::high::{inner::*}; }",
        ),
    ] {
        let found = three(TOP, "", low);
        assert!(found.len() == 1 && found[0].ends_with(up), "{found:?}");
    }
    let files = [
        ("lib.rs", "mod queue; mod channel;"),
        ("queue/mod.rs", "pub mod mpsc; pub fn own() {}"),
        ("queue/mpsc.rs", "use crate::channel::C; use super::own;"),
        ("channel.rs", "use crate::queue::own; use crate::queue::mpsc;\npub struct C;"),
    ];
    let said = "a/src/channel.rs:1: `crate::queue::mpsc` goes up from channel (layer 2) to queue::mpsc (layer 1)";
    assert_eq!(faults(&["queue::mpsc", "channel", "queue"], &files), [said]);
}

#[test]
fn an_arrow_goes_up_through_a_reexport() {
    for (reexport, low, path) in [
        ("high::Top as Other", "use crate::base::Other;", "crate::base::Other"),
        ("high::*", "use crate::base::Top;", "crate::base::Top"),
        ("high::*", "use crate::base::*; fn f(_: Top) {}", "Top"),
        ("high::*", "use crate::base::*; fn f() { top(); }", "top"),
        ("high::top", "use crate::base; fn f() { base::top(); }", "base::top"),
    ] {
        let found = three(TOP, &format!("pub use crate::{reexport};"), low);
        assert!(found[0].starts_with("a/src/base.rs:1: `crate::high"), "{found:?}");
        assert_eq!(found[1..], [up(1, path)], "{reexport}");
    }
    let low = "use crate::base;\nfn f(_: base::inner::Deep) {}";
    let found = three(TOP, "pub use crate::high::inner;", low);
    let deep =
        "a/src/low.rs:2: `base::inner::Deep` goes up from low (layer 2) to high::inner (layer 1)";
    assert!(found.iter().any(|it| it == deep), "{found:?}");
    for (path, low) in [
        ("me::high::top", "use crate::{self as me};\nfn f() { me::high::top(); }"),
        ("me::high", "extern crate self as me;\nuse me::high;"),
    ] {
        let found = three(TOP, "", low);
        assert!(found.contains(&up(2, path)), "{found:?}");
    }
}

#[test]
fn nobody_uses_what_the_root_defines() {
    let said = "a/src/low.rs:1: `crate::Own` goes up from low to an item of the root src/lib.rs; move the item down";
    assert_eq!(three(TOP, "", "use crate::Own;"), [said]);
}

#[test]
fn an_arrow_goes_up_to_what_a_macro_declares_or_is() {
    let cfg_if =
        "cfg_if::cfg_if! { if #[cfg(not(loom))] { mod high; mod low; pub use crate::high::Top; } }";
    let another = "only_here! { mod high; } cfg_rt! { mod low; #[cfg(test)] mod test; }";
    let test = ("test.rs", "use crate::high::Top;");
    let makes_macro = "macro_rules! m { () => {}; }";
    let exports_macro = "#[macro_export] macro_rules! m { () => {}; }";
    let makes_item = "numbers! { Top = 1 }";
    let reexports = "mod high; mod low; pub use crate::high::*;";
    let cases: [(&str, Files<'_>, &str, &str, &str); 5] = [
        (cfg_if, &[], TOP, "use crate::Top;", "crate::Top"),
        (another, &[test], TOP, "use crate::high::Top;", "crate::high::Top"),
        ("#[macro_use] mod high; mod low;", &[], makes_macro, "m!();", "m"),
        ("mod high; mod low;", &[], exports_macro, "crate::m!();", "crate::m"),
        (reexports, &[], makes_item, "use crate::Top;", "crate::Top"),
    ];
    for (root, more, high, low, path) in cases {
        let files = [&[("lib.rs", root), ("high.rs", high), ("low.rs", low)], more].concat();
        assert_eq!(faults(&["high", "low"], &files), [up(1, path)], "{root}");
    }
}

#[test]
fn modules_with_one_parent_form_no_circle() {
    let of_two = "circle: one -> two (a/src/one.rs:1 crate::two::B), \
                  two -> one (a/src/two.rs:2 crate::one::A, and 1 more)";
    let shorter = "circle: one -> three (a/src/one.rs:1 crate::three), \
                   three -> one (a/src/three.rs:1 crate::one::x)";
    let of_three = "circle: one -> two (a/src/one.rs:1 crate::two), \
                    two -> three (a/src/two.rs:1 crate::three), \
                    three -> one (a/src/three.rs:1 crate::one::x)";
    for (one, two, three, said) in [
        (
            "use crate::two::B;\npub struct A;",
            "\nuse crate::one::A; use super::one; pub struct B;",
            "",
            of_two,
        ),
        (
            "use crate::two; use crate::three;",
            "use crate::three;",
            "fn f() { crate::one::x() }",
            shorter,
        ),
        ("use crate::two;", "use crate::three;", "fn f() { crate::one::x() }", of_three),
    ] {
        let files = [("one.rs", one), ("two.rs", two), ("three.rs", three)];
        let files = [&[("lib.rs", "mod one; mod two; mod three;")], &files[..]].concat();
        assert_eq!(faults(&["one two three"], &files), [said]);
    }
}

#[test]
fn nor_deeper_ones() {
    let nested = [
        ("lib.rs", "mod of;"),
        ("of/mod.rs", "mod it;"),
        ("of/it.rs", "mod one; mod two { pub mod deep { use super::super::one; } }"),
        ("of/it/one.rs", "use super::two::deep;"),
    ];
    let said = "circle: of::it::one -> of::it::two (a/src/of/it/one.rs:1 super::two::deep), \
                of::it::two -> of::it::one (a/src/of/it.rs:1 super::super::one)";
    assert_eq!(faults(&["of"], &nested), [said]);
    let hidden_by_a_reexport = [
        ("lib.rs", "mod of;"),
        ("of.rs", "mod one; mod two; use self::one::A; use self::two::B;"),
        ("of/one.rs", "use super::B; pub struct A;"),
        ("of/two.rs", "use super::A; pub struct B;"),
    ];
    let said = "circle: of::one -> of::two (a/src/of/one.rs:1 super::B), \
                of::two -> of::one (a/src/of/two.rs:1 super::A)";
    assert_eq!(faults(&["of"], &hidden_by_a_reexport), [said]);
}

#[test]
fn files_modules_and_the_table_agree() {
    let no_layer =
        "a/src/two/mod.rs: module `two` is in no layer of `a/src/lib.rs`; add it to the table";
    let no_module = "a/src/one/lost.rs: file in no module; declare it with `mod`, or remove it";
    let of_table = |what| format!("verify/layers.toml: `a`, `src/lib.rs`: {what}");
    let gone = of_table("there is no module `one::two` outside tests");
    let of_tests = of_table("there is no module `test` outside tests");
    let twice = of_table("module `one` is there twice");
    let root = "mod one; #[cfg(test)] mod test;";
    let cases: [(Names<'_>, &str, Names<'_>, Names<'_>); 5] = [
        (&["one"], "mod one; mod two;", &["one.rs", "two/mod.rs"], &[no_layer]),
        (&["one"], "mod one;", &["one.rs", "one/lost.rs"], &[no_module]),
        (&["one"], "\nmod one;", &[], &["a/src/lib.rs:2: module `one` has no file"]),
        (&["one one::two", "test"], root, &["one.rs", "test.rs"], &[&gone, &of_tests]),
        (&["one", "one"], "mod one;", &["one.rs"], &[&twice]),
    ];
    for (layers, root, empty, expected) in cases {
        let empty = empty.iter().map(|file| (*file, ""));
        let files: Vec<_> = [("lib.rs", root)].into_iter().chain(empty).collect();
        assert_eq!(faults(layers, &files), expected);
    }
}

#[test]
fn a_file_that_is_no_rust_is_an_error() {
    let files = [
        ("Cargo.toml", "[workspace]\nmembers = ['a']"),
        ("a/Cargo.toml", "[package]\nname = 'a'"),
        ("a/src/lib.rs", "fn f() {}\nfn {"),
        ("verify/layers.toml", "[a]\nuses = []"),
    ];
    let error = checked(&files).unwrap_err();
    assert_eq!(error.to_string(), "a/src/lib.rs:2: cannot parse this");
}

const TABLE: &str = "[a]\nuses = ['b']\n[b]\nuses = []\n";
const ROOT: &str =
    "[workspace]\nmembers = ['a', 'b']\n[workspace.dependencies]\na = { path = 'a' }\n";

/// What is wrong if the crate `a` uses `b`, which says this.
fn two(root: &str, table: &str, b_manifest: &str, b: &str) -> Vec<String> {
    let manifest = format!("[package]\nname = 'b-lib'\n{b_manifest}");
    said(&[
        ("Cargo.toml", root),
        ("verify/layers.toml", table),
        ("a/Cargo.toml", "[package]\nname = 'a'\n[dependencies]\nb-lib = { path = '../b' }"),
        ("a/src/lib.rs", "use b_lib::B;"),
        ("b/Cargo.toml", &manifest),
        ("b/src/lib.rs", b),
    ])
}

#[test]
fn a_crate_uses_those_that_the_table_allows() {
    assert_eq!(two(ROOT, TABLE, "", ""), NOTHING);
    let wrong =
        |line, path| format!("b/src/lib.rs:{line}: `{path}`: the crate `b` may not use `a`");
    let other_name = "\nfn f() { a::f(); } extern crate a as other;";
    assert_eq!(two(ROOT, TABLE, "", other_name), [wrong(2, "a::f"), wrong(2, "a")]);
    // A macro mentions its name, too; a function has it.
    assert_eq!(two(ROOT, TABLE, "", "make!(a: 1);\nfn f() { a::f(); }"), [wrong(2, "a::f")]);
    assert_eq!(two(ROOT, TABLE, "", "use a::f;\nfn a() {}"), [wrong(1, "a::f")]);
    for section in ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
        let manifest = format!("[{section}]\na = {{ workspace = true }}");
        let wrong = "b/Cargo.toml:4: `a`: the crate `b` may not use `a`";
        assert_eq!(two(ROOT, TABLE, &manifest, ""), [wrong]);
    }
    // Tests may use everything.
    assert_eq!(two(ROOT, TABLE, "[dev-dependencies]\na = { path = '../a' }", ""), NOTHING);
}

#[test]
fn the_table_names_the_crates_and_targets_that_there_are() {
    let no_table = "verify/layers.toml: no table for the crate `b`";
    // A dependency is a member, though nobody lists it.
    for root in [ROOT, "[workspace]\nmembers = ['a']"] {
        assert_eq!(two(root, "[a]\nuses = ['b']", "", ""), [no_table]);
    }
    let table = "[a]\nuses = ['b', 'd']\n[b]\nuses = []\n'src/main.rs' = []\n[c]\nuses = []";
    let no_crate = |name| format!("verify/layers.toml: the workspace has no crate `{name}`");
    let no_target = "verify/layers.toml: `b` has no target with the root `src/main.rs`";
    assert_eq!(two(ROOT, table, "", ""), [no_target, &no_crate("c"), &no_crate("d")]);
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
        format!("{file}: module `y` is in no layer of `b/{target}`; add it to the table")
    };
    let of_bench = lacks("b/benches/shared/y.rs", "benches/e.rs");
    assert_eq!(found, [of_bench, lacks("b/src/bin/d/y.rs", "src/bin/d/main.rs")]);
}
