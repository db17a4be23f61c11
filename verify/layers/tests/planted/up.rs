//! Arrows that go up, however they are written.

use super::{TOP, faults, three};

fn up(line: usize, path: &str) -> String {
    format!("a/src/low.rs:{line}: `{path}` goes up from low (layer 2) to high (layer 1)")
}

#[test]
fn by_use() {
    assert_eq!(three(TOP, "", "use crate::high::Top;"), [up(1, "crate::high::Top")]);
    assert_eq!(three(TOP, "", "\nuse crate::high;"), [up(2, "crate::high")]);
    assert_eq!(three(TOP, "", "use crate::high::*;"), [up(1, "crate::high")]);
    assert_eq!(three(TOP, "", "use crate::high::Top as _;"), [up(1, "crate::high::Top")]);
    assert_eq!(three(TOP, "", "use crate::{base, high::{self}};"), [up(1, "crate::high::self")]);
}

#[test]
fn by_a_group_of_use_at_its_line() {
    let low = "use crate::{\n  base,\n  high::Top,\n};";
    assert_eq!(three(TOP, "", low), [up(3, "crate::high::Top")]);
}

#[test]
fn by_a_use_in_a_function() {
    let low = "fn f() {\n use crate::high;\n}";
    assert_eq!(three(TOP, "", low), [up(2, "crate::high")]);
}

#[test]
fn by_a_path_in_code() {
    let path = |low| three(TOP, "", low);
    assert_eq!(path("fn f() { crate::high::top(); }"), [up(1, "crate::high::top")]);
    assert_eq!(path("fn f(_: Vec<crate::high::Top>) {}"), [up(1, "crate::high::Top")]);
    assert_eq!(path("impl<T: crate::high::Top> X for T {}"), [up(1, "crate::high::Top")]);
    assert_eq!(path("fn f() { if let crate::high::Top = x {} }"), [up(1, "crate::high::Top")]);
    assert_eq!(path("fn f() { Vec::<crate::high::Top>::new(); }"), [up(1, "crate::high::Top")]);
}

#[test]
fn by_super() {
    assert_eq!(three(TOP, "", "fn f() { super::high::top(); }"), [up(1, "super::high::top")]);
    assert_eq!(three(TOP, "", "use self::super::high::Top;"), [up(1, "self::super::high::Top")]);
    let low = "mod of { mod it { use super::super::super::high::Top; } }";
    let found = three(TOP, "", low);
    let up = "from low::of::it (layer 2) to high (layer 1)";
    assert!(found.len() == 1 && found[0].ends_with(up), "{found:?}");
}

#[test]
fn through_a_reexport() {
    let found = three(TOP, "pub use crate::high::Top as Other;", "use crate::base::Other;");
    let of_base =
        "a/src/base.rs:1: `crate::high::Top` goes up from base (layer 3) to high (layer 1)";
    assert_eq!(found, [of_base, &up(1, "crate::base::Other")]);
}

#[test]
fn through_a_glob_reexport() {
    let found = three(TOP, "pub use crate::high::*;", "use crate::base::Top;");
    let of_base = "a/src/base.rs:1: `crate::high` goes up from base (layer 3) to high (layer 1)";
    assert_eq!(found, [of_base, &up(1, "crate::base::Top")]);
    let found =
        three(TOP, "pub use crate::high::*;", "use crate::base::*;\nfn f(_: Top) { top(); }");
    assert_eq!(found, [of_base, &up(2, "Top"), &up(2, "top")]);
}

#[test]
fn through_a_reexported_module() {
    let found = three(
        TOP,
        "pub use crate::high::inner;",
        "use crate::base;\nfn f(_: base::inner::Deep) {}",
    );
    let to = "from low (layer 2) to high::inner (layer 1)";
    assert!(
        found.iter().any(|it| it.starts_with("a/src/low.rs:2") && it.ends_with(to)),
        "{found:?}"
    );
}

#[test]
fn through_an_imported_module() {
    let found =
        three(TOP, "pub use crate::high::top;", "use crate::base;\nfn f() { base::top(); }");
    assert!(found.contains(&up(2, "base::top")), "{found:?}");
}

#[test]
fn through_the_root() {
    assert_eq!(three(TOP, "", "use crate::Top;"), [up(1, "crate::Top")]);
    assert_eq!(three(TOP, "", "fn f(_: super::Top) {}"), [up(1, "super::Top")]);
}

#[test]
fn to_what_the_root_defines() {
    let found = three(TOP, "", "use crate::Own;");
    let said = "a/src/low.rs:1: `crate::Own` goes up from low to an item of the root src/lib.rs; move the item down";
    assert_eq!(found, [said]);
}

#[test]
fn in_the_arguments_of_a_macro() {
    let low = "fn f() {\n println!(\"{}\", crate::high::top());\n}";
    assert_eq!(three(TOP, "", low), [up(2, "crate::high::top")]);
    let low = "make! { use crate::high::{Top as Other, inner::*}; }";
    let deep =
        "a/src/low.rs:1: `crate::high::inner` goes up from low (layer 2) to high::inner (layer 1)";
    assert_eq!(three(TOP, "", low), [&up(1, "crate::high::Top"), deep]);
}

#[test]
fn in_the_body_of_a_macro() {
    let low = "macro_rules! m { ($x:expr) => { $crate::high::top($x) }; }";
    assert_eq!(three(TOP, "", low), [up(1, "crate::high::top")]);
    let low = "macro_rules! m { () => { super::high::top() }; }";
    assert_eq!(three(TOP, "", low), [up(1, "super::high::top")]);
}

#[test]
fn in_either_branch_of_a_cfg_if() {
    let branches = [
        "if #[cfg(unix)] { use crate::high::Top; } else {}",
        "if #[cfg(unix)] {} else { use crate::high::Top; }",
    ];
    for branch in branches {
        let low = format!("cfg_if::cfg_if! {{ {branch} }}");
        assert_eq!(three(TOP, "", &low), [up(1, "crate::high::Top")]);
    }
}

#[test]
fn in_modules_that_a_cfg_if_declares() {
    let root =
        "cfg_if::cfg_if! { if #[cfg(not(loom))] { mod high; mod low; pub use crate::high::Top; } }";
    let found = faults(
        &["high", "low"],
        &[("lib.rs", root), ("high.rs", TOP), ("low.rs", "use crate::Top;")],
    );
    assert_eq!(found, [up(1, "crate::Top")]);
}

#[test]
fn in_modules_that_another_macro_declares() {
    let root = "only_here! { mod high; } cfg_rt! { mod low; #[cfg(test)] mod test; }";
    let test = ("test.rs", "use crate::high::Top;");
    let files = [("lib.rs", root), ("high.rs", TOP), ("low.rs", "use crate::high::Top;"), test];
    assert_eq!(faults(&["high", "low"], &files), [up(1, "crate::high::Top")]);
}

#[test]
fn by_another_name_of_the_root() {
    let name = |low| three(TOP, "", low);
    assert_eq!(
        name("use crate::{self as me};\nfn f() { me::high::top(); }")[0],
        up(2, "me::high::top")
    );
    assert_eq!(name("extern crate self as me;\nuse me::high;")[0], up(2, "me::high"));
}

#[test]
fn to_a_macro_by_its_name_alone() {
    let root = "#[macro_use] mod high; mod low;";
    let high = "macro_rules! m { () => {}; }";
    let files = [("lib.rs", root), ("high.rs", high), ("low.rs", "m!();")];
    assert_eq!(faults(&["high", "low"], &files), [up(1, "m")]);
}

#[test]
fn to_an_exported_macro() {
    let high = "#[macro_export] macro_rules! m { () => {}; }";
    let root = "mod high; mod low;";
    let files = [("lib.rs", root), ("high.rs", high), ("low.rs", "crate::m!();")];
    assert_eq!(faults(&["high", "low"], &files), [up(1, "crate::m")]);
}

#[test]
fn to_an_item_that_a_macro_defines() {
    let high = "numbers! { Top = 1 }";
    let files = [
        ("lib.rs", "mod high; mod low; pub use crate::high::*;"),
        ("high.rs", high),
        ("low.rs", "use crate::Top;"),
    ];
    assert_eq!(faults(&["high", "low"], &files), [up(1, "crate::Top")]);
}

#[test]
fn from_or_to_a_module_that_the_table_names_deeper() {
    let files = [
        ("lib.rs", "mod queue; mod channel;"),
        ("queue/mod.rs", "pub mod mpsc; pub fn own() {}"),
        ("queue/mpsc.rs", "use crate::channel::C; use super::own;"),
        ("channel.rs", "use crate::queue::own; use crate::queue::mpsc;\npub struct C;"),
    ];
    let said = "a/src/channel.rs:1: `crate::queue::mpsc` goes up from channel (layer 2) to queue::mpsc (layer 1)";
    assert_eq!(faults(&["queue::mpsc", "channel", "queue"], &files), [said]);
}
