//! Each operator on a small source.

use super::*;
use crate::worlds::Worlds;

const ENGINE: &str = "cq-core/src/a.rs";

fn planted(source: &str, worlds: Worlds) -> Planting {
    let source = Source::new(ENGINE, worlds, source.into()).unwrap();
    plant(&[source])
}

/// `operator: change`, in the order of the source.
fn changes(source: &str) -> Vec<String> {
    of(&planted(source, Worlds::BOTH))
}

fn of(planting: &Planting) -> Vec<String> {
    let text = |mutant: &Mutant| format!("{}: {}", mutant.operator, mutant.name.change);
    planting.mutants.iter().map(text).collect()
}

/// The mutants of a function's body.
fn body(text: &str) -> Vec<String> {
    changes(&format!("fn f(a: bool, b: bool, n: u32) -> u32 {{ {text} }}"))
}

fn rendered(source: &str) -> String {
    let planting = planted(source, Worlds::BOTH);
    planting.files.first().map(|file| render(&file.text, &file.edits).text).unwrap_or_default()
}

#[test]
fn conditions_are_flipped_and_never_hold() {
    assert_eq!(body("if a { 1 } else { 2 }"), ["never: a => false", "flip: a => !(a)"]);
    assert_eq!(body("while a {} 1"), ["flip: a => !(a)"]);
    assert_eq!(body("if let 3 = n { 1 } else { 2 }"), ["never: let 3 = n => false"]);
    assert_eq!(body("while let 3 = n {} 1"), ["never: let 3 = n => false"]);
    assert_eq!(body("match n { 1 if a => 1, _ => 2 }"), ["never: a => false", "flip: a => !(a)"]);
    assert_eq!(body("a.then(|| 1).unwrap_or(2)"), ["flip: a => !(a)"]);
    assert_eq!(body("if !a { 1 } else { 2 }"), ["never: !a => false", "flip: a => !(a)"]);
    assert_eq!(body("g(true)"), ["flip: true => !(true)"]);
    assert_eq!(body("n & !MASK"), [""; 0]);
}

#[test]
fn sides_of_a_condition_are_left_out() {
    assert_eq!(
        body("if a && b { 1 } else { 2 }"),
        [
            "never: a && b => false",
            "flip: a => !(a)",
            "part: a => true",
            "flip: b => !(b)",
            "part: b => true",
        ]
    );
    let or = body("if a || b { 1 } else { 2 }");
    assert!(or.contains(&"part: a => false".into()) && or.contains(&"part: b => false".into()));
    let chain = body("if let 3 = n && b { 1 } else { 2 }");
    assert_eq!(chain, ["never: let 3 = n && b => false", "flip: b => !(b)", "part: b => true"]);
    assert_eq!(
        rendered("fn f(n: u32) { if let 3 = n {} }"),
        "fn f(n: u32) { if let 3 = n && !crate::mutants::on(1) {} }"
    );
}

#[test]
fn comparisons_and_sums_are_shifted() {
    assert_eq!(
        changes("fn f(n: u32) -> bool { n < 3 }"),
        ["flip: n < 3 => !(n < 3)", "shift: n < 3 => n <= 3"]
    );
    assert_eq!(changes("fn f(n: u32) -> bool { n == 3 }"), ["flip: n == 3 => !(n == 3)"]);
    assert_eq!(body("n + 1"), ["sum: n + 1 => n - 1", "sum: 1 => 0"]);
    assert_eq!(body("n - 2"), ["sum: n - 2 => n + 2"]);
    assert_eq!(
        body("n.wrapping_add(1)"),
        ["opposite: n.wrapping_add(1) => n . wrapping_sub (1)", "sum: 1 => 0"]
    );
}

#[test]
fn statements_are_dropped() {
    assert_eq!(body("g(n); n"), ["drop: g(n); => nothing"]);
    assert_eq!(body("self.n = n; n"), ["drop: self.n = n; => nothing"]);
    assert_eq!(body("self.n += n; n"), ["drop: self.n += n; => nothing"]);
    assert_eq!(body("g(n)?; n"), ["drop: g(n)?; => nothing"]);
    assert_eq!(body("let _ = g(n); n"), ["drop: let _ = g(n); => nothing"]);
    assert_eq!(body("let _guard = lock(n); n"), ["drop: lock(n) => nothing"]);
    assert_eq!(body("let m = g(n); m"), [""; 0]);
    assert_eq!(changes("fn f() { g() }"), ["drop: g() => nothing"]);
    assert_eq!(changes("fn f() -> u32 { g() }"), [""; 0]);
    assert_eq!(
        body("match n { 1 => g(), _ => h(), } n"),
        ["drop: g() => nothing", "drop: h() => nothing"]
    );
    assert_eq!(body("for i in 0..n { g(i) } n"), ["drop: g(i) => nothing"]);
}

#[test]
fn arguments_of_one_type_are_swapped() {
    let source = "
        fn f() -> u32 { g(1, x, 2) }
        fn g(from: u32, what: &str, to: u32) -> u32 { from }
    ";
    assert_eq!(changes(source), ["swap: g(1, x, 2) => g (2 , x , 1)"]);
    assert_eq!(
        body("word.compare_exchange(n, m, x, y)"),
        ["swap: word.compare_exchange(n, m, x, y) => word . compare_exchange (m , n , x , y)"]
    );
}

#[test]
fn orderings_are_weakened_where_loom_compiles() {
    let source = "fn f(w: &W) -> u32 { w.swap(1, Ordering::AcqRel) }";
    assert_eq!(
        changes(source),
        [
            "ordering: Ordering::AcqRel => Acquire",
            "ordering: Ordering::AcqRel => Release",
            "ordering: Ordering::AcqRel => Relaxed",
        ]
    );
    let normal = Worlds { normal: true, loom: false };
    assert!(of(&planted(source, normal)).is_empty());
    assert_eq!(
        changes("fn f() { fence(SeqCst); }"),
        ["fence: fence(SeqCst); => nothing", "fence: SeqCst => AcqRel"]
    );
}

#[test]
fn named_operations_are_relaxed() {
    assert_eq!(
        changes("fn f(w: &W) -> u32 { sync::observe(w) }"),
        ["operation: sync::observe(w) => crate :: sync :: load (w)"]
    );
    let publish = changes("fn f(w: &W) { publish(w, 1); }");
    assert_eq!(publish.len(), 2, "weakened, and dropped: {publish:?}");
}

#[test]
fn what_stands_there_instead_of_a_site_is_left_alone() {
    let source = "fn f() { if intact(Site::Fence) { g() } else { h() } }";
    assert_eq!(changes(source), ["drop: g() => nothing"]);
    let source = "fn f() { if !intact(Site::Fence) { h(1 + 2); return; } g() }";
    assert_eq!(changes(source), ["drop: g() => nothing"]);
    let source = "fn f() -> bool { !intact(Site::Fence) || g() }";
    assert_eq!(changes(source), ["flip: g() => !(g())", "part: g() => false"]);
}

#[test]
fn tests_constants_and_macros_are_left_alone() {
    for source in [
        "#[cfg(test)] mod tests { fn f() { g(); } }",
        "#[cfg(loom)] fn f() { g(); }",
        "const A: u32 = 1 + 2;",
        "static A: [u32; 1 + 2] = [0; 3];",
        "const A: u32 = f(1); const fn f(n: u32) -> u32 { n + 1 }",
        "pub const fn f(n: u32) -> bool { n < 3 }",
        "fn f() { assert!(1 < 2); }",
        "fn f() { #[cfg(loom)] g(); }",
        "macro_rules! m { () => { fn f() { g(); } } }",
        "fn f() { steps::done(Step::Opened); }",
    ] {
        assert!(changes(source).is_empty(), "{source}");
    }
}

#[test]
fn names_hold_the_function_and_a_number_where_one_is_not_enough() {
    let source = "impl A { fn f(&self) {\n g(1);\n g(1); } }";
    let planting = planted(source, Worlds::BOTH);
    let names: Vec<_> = planting.mutants.iter().map(|it| (it.line, it.name.nth)).collect();
    assert_eq!(names, [(2, 1), (3, 2)]);
    assert_eq!(planting.mutants[0].name.function, "A::f");
}

#[test]
fn no_line_moves() {
    let source = "fn f(n: u32) {\n    if n < 3 {\n        g(n,\n            1);\n    }\n}\n";
    assert_eq!(rendered(source).lines().count(), source.lines().count());
}
