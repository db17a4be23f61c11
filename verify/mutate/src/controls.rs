//! Controls: wrong texts for steps that a protocol cannot do without, by which models show that they would notice. A
//! control stands in `verify/controls.toml` and not in the sources, which hold the right algorithm alone. It is planted in a
//! copy of the workspace of its own, where it is chosen as a mutant is, so that all of them cost one build.
//!
//! ```toml
//! [[control]]
//! name = "NeverWeaken"
//! why = "a weaker arm leaves a stronger one in force"
//! file = "cq-core/src/queue/arm.rs"
//! of = "armed < wanted"    # an expression, or statements; there exactly once
//! instead = "true"         # the same; nothing, where a statement is to be missing
//!
//! [[control.fails]]
//! test = "arm::n06_who_is_armed_is_woken"
//! models = ["any, then solicited"]    # each by itself; the whole test, where it is not said
//! expects = "lost wake-up"            # in its first panic
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::attempt;
use crate::checks::{self, Check};
use crate::compile::{Copy, World};
use crate::plant::{Edit, Planted, Planting};
use crate::sources::question;
use crate::tree::Tree;
use crate::workers::{self, say};

mod trial;

use self::trial::{Report, Trial};

/// Where the list is, relative to the workspace.
const PATH: &str = "verify/controls.toml";

/// The number of the first control; none is 0.
const FIRST: u32 = 1;

/// A wrong text, and who must notice it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Control {
    name: String,
    /// What the right text is there for.
    why: String,
    /// Relative to the workspace.
    file: String,
    /// The right text.
    of: String,
    /// The wrong one.
    instead: String,
    fails: Vec<Failure>,
}

/// Models that must fail.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    /// The test that they are in.
    test: String,
    /// Each of these by itself; all of the test where there is none.
    #[serde(default)]
    models: Vec<String>,
    /// What the panic must say.
    expects: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    control: Vec<Control>,
}

/// Tries the controls with one of these texts in their names, each on the models that it names; whether all fail as
/// they must, and hold without.
pub fn run(root: &Path, target: &Path, only: &[String], jobs: usize) -> Result<bool> {
    let start = Instant::now();
    let text =
        fs::read_to_string(root.join(PATH)).with_context(|| format!("cannot read {PATH}"))?;
    let controls = parse(&text).with_context(|| format!("{PATH} is wrong"))?;
    let planting = Planting::of(plant(root, &controls)?);
    let tree = Tree::new(root, &target.join("tree"))?;
    let copy = Copy::new(&tree, &planting, target)?;
    say("building the loom models with the controls");
    let mut models = Vec::new();
    let artifacts = copy.build_whole(World::Loom, checks::MODELS);
    for artifact in artifacts.with_context(|| format!("the controls of {PATH}"))? {
        models.extend(checks::models_of(&artifact)?);
    }
    let built = start.elapsed();
    let trials = trials(&controls, &models, only)?;
    attempt::be_careful();
    let tried = workers::map("models", jobs, &trials, Trial::run)?;
    let report = Report { tried, built, taken: start.elapsed() };
    let (table, complaints, summary) = (report.table(), report.complaints(), report.summary());
    writeln!(io::stdout(), "{table}\n\n{complaints}{summary}")?;
    Ok(report.is_well())
}

fn parse(text: &str) -> Result<Vec<Control>> {
    let List { control: controls } = toml::from_str(text)?;
    let mut names = BTreeSet::new();
    for Control { name, why, of, instead, fails, .. } in &controls {
        ensure!(names.insert(name), "two controls are called `{name}`: rename one");
        // A panic that says nothing would be any panic.
        let texts = fails.iter().flat_map(|it| [&it.test, &it.expects]).chain([name, why, of]);
        ensure!(
            !fails.is_empty() && texts.into_iter().all(|text| !text.trim().is_empty()),
            "the control `{name}` leaves something empty: it has to say why it is there, what is wrong, \
             a test, and what that is expected to say"
        );
        ensure!(of != instead, "the control `{name}` puts the same text in the place of its text");
    }
    Ok(controls)
}

/// The files with the controls in, which are numbered in their order.
fn plant(root: &Path, controls: &[Control]) -> Result<Vec<Planted>> {
    let mut files: BTreeMap<&str, Planted> = BTreeMap::new();
    for (number, control) in (FIRST..).zip(controls) {
        let Control { name, file, .. } = control;
        if !files.contains_key(&file[..]) {
            let text = fs::read_to_string(root.join(file));
            let cannot = || format!("the control `{name}` names {file}, which cannot be read");
            files.insert(file, Planted::new(file, &text.with_context(cannot)?));
        }
        if let Some(planted) = files.get_mut(&file[..]) {
            planted.edits.push(edit(&planted.text, control, number)?);
        }
    }
    Ok(files.into_values().collect())
}

/// Chooses between both texts where the right one stands.
fn edit(text: &str, control: &Control, number: u32) -> Result<Edit> {
    let Control { name, file, of, instead, .. } = control;
    let on = question(file, number);
    let on = on.with_context(|| {
        format!(
            "the control `{name}` names {file}, which is no source of the engine or of the device"
        )
    })?;
    let start = match text.match_indices(of).map(|(start, _)| start).collect::<Vec<_>>()[..] {
        [start] => start,
        [] => bail!(
            "the control `{name}` replaces a text that {file} does not have: `{of}`; say how that step is written now"
        ),
        ref several => bail!(
            "the control `{name}` replaces a text that {file} has {} times: `{of}`; say more of what is around it",
            several.len()
        ),
    };
    // On one line, so that what is said of a line holds for the original too.
    let instead = instead.split_whitespace().collect::<Vec<_>>().join(" ");
    // Statements can't stand in parentheses, and an expression in braces would be one where a line begins.
    let [open, close] = if of.ends_with([';', '}']) { ["{ ", " }"] } else { ["(", ")"] };
    let before = format!("{open}if {on} {{ {instead} }} else {{ ");
    let after = format!(" }}{close}");
    Ok(Edit { around: start..start + of.len(), before, after, mutant: None })
}

/// Each model without a control, then with each of the controls that it must notice, as far as they are asked for.
fn trials<'a>(
    controls: &'a [Control],
    models: &[Check],
    only: &[String],
) -> Result<Vec<Trial<'a>>> {
    let is_asked =
        |control: &Control| only.is_empty() || only.iter().any(|text| control.name.contains(text));
    let (mut alone, mut trials) = (BTreeMap::new(), Vec::new());
    for (number, control) in (FIRST..).zip(controls).filter(|(_, control)| is_asked(control)) {
        for Failure { test, models: parts, expects } in &control.fails {
            let check = models.iter().find(|it| it.name == format!("models::{test}"));
            let check = check.with_context(|| {
                format!(
                    "`{}` is to be noticed by `{test}`, and no loom test is called so",
                    control.name
                )
            })?;
            alone.insert(test, Trial { check: check.clone(), control: None });
            let of_part = |model: &String| Check {
                name: format!("{}: {model}", check.name),
                ..check.with("LOOM_MODEL", model)
            };
            let mut checks: Vec<_> = parts.iter().map(of_part).collect();
            if checks.is_empty() {
                checks.push(check.clone());
            }
            let control = Some((number, &control.name[..], &expects[..]));
            trials.extend(checks.into_iter().map(|check| Trial { check, control }));
        }
    }
    ensure!(!trials.is_empty(), "no control has {} in its name", only.join(" or "));
    // They take longest: what comes last should not.
    Ok(alone.into_values().chain(trials).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::render;

    const ENTRY: &str = "[[control]]
        name = 'Look'
        why = 'it looks'
        file = 'cq-core/src/a.rs'
        of = 'look()'
        instead = 'false'
        [[control.fails]]
        test = 'ring::looks'
        expects = 'lost'
    ";

    fn control(of: &str, instead: &str) -> Control {
        let text = ENTRY.replace("'look()'", &format!("{of:?}"));
        parse(&text.replace("'false'", &format!("{instead:?}"))).unwrap().remove(0)
    }

    fn planted(text: &str, controls: &[Control]) -> Result<String> {
        let edits: Result<Vec<_>> =
            (FIRST..).zip(controls).map(|(number, control)| edit(text, control, number)).collect();
        Ok(render(text, &edits?).text)
    }

    #[test]
    fn an_entry_is_there_once_and_proves_something() {
        for (entry, said) in [
            (ENTRY.repeat(2), "two controls are called `Look`"),
            (ENTRY.replace("'it looks'", "''"), "leaves something empty"),
            (ENTRY.replace("'look()'", "''"), "leaves something empty"),
            (ENTRY.replace("'ring::looks'", "''"), "leaves something empty"),
            (ENTRY.replace("'lost'", "' '"), "leaves something empty"),
            (ENTRY.replace("'false'", "'look()'"), "the same text"),
            (ENTRY.replace("expects", "expect"), "unknown field"),
        ] {
            let flaw = parse(&entry).unwrap_err().to_string();
            assert!(flaw.contains(said), "{flaw}");
        }
    }

    #[test]
    fn an_expression_is_chosen_in_parentheses_and_statements_in_braces() {
        let text = planted("fn f() { a() && b }", &[control("a()", "true")]).unwrap();
        let choice = "(if crate::mutants::on(1) { true } else { a() })";
        assert_eq!(text, format!("fn f() {{ {choice} && b }}"));
        let text = planted("fn f() { a(); b(); c(); }", &[control("a(); b();", "b();\n a();")]);
        let choice = "{ if crate::mutants::on(1) { b(); a(); } else { a(); b(); } }";
        assert_eq!(text.unwrap(), format!("fn f() {{ {choice} c(); }}"));
        // One within another; a statement may be replaced by nothing.
        let controls = [control("loop { x = y; }", ""), control("x = y", "return")];
        let inner = "(if crate::mutants::on(2) { return } else { x = y })";
        let outer = "{ if crate::mutants::on(1) {  } else { loop ";
        let text = planted("loop { x = y; }", &controls).unwrap();
        assert_eq!(text, format!("{outer}{{ {inner}; }} }} }}"));
    }

    #[test]
    fn a_text_is_in_one_place_of_the_engine_or_the_device() {
        let look = control("a()", "b()");
        let of = |file: &str| Control { file: file.into(), ..look.clone() };
        let device = planted("a()", &[of("transport-rxe-loop/src/a.rs")]).unwrap();
        assert!(device.starts_with("(if ::cq_core::mutants::on(1) "));
        for (text, control, said) in [
            ("fn f() {}", &look, "`Look` replaces a text that cq-core/src/a.rs does not"),
            ("a() + a()", &look, "that cq-core/src/a.rs has 2 times: `a()`"),
            ("a()", &of("verify/src/a.rs"), "is no source of"),
        ] {
            let flaw = planted(text, std::slice::from_ref(control)).unwrap_err().to_string();
            assert!(flaw.contains(said), "{flaw}");
        }
        let flaw = plant(Path::new("/nowhere"), &[look]).unwrap_err().to_string();
        assert!(flaw.contains("which cannot be read"), "{flaw}");
    }

    /// A model that fails with control 1, in its second panic with other words, and holds without.
    const FAILS: &str = "if test $VERIFY_MUTANT = 1; then
        printf \"thread 'main' panicked at a.rs:1:2:\nlost wake-up: 1\nnote: more\n\" >&2
        printf \"thread 'main' panicked at b.rs:3:4:\nwhile it unwound\n\" >&2
        exit 101
    fi";

    #[test]
    fn a_model_fails_as_it_must_with_the_control_and_holds_without() {
        let always = &FAILS.replace("$VERIFY_MUTANT = 1", "1 = 1");
        let of_one = &FAILS.replace("$VERIFY_MUTANT = 1", "\"$LOOM_MODEL\" = one");
        let elsewhere =
            |text| format!("Look: ring::looks must fail with {text:?}, not: lost wake-up: 1\n");
        let late = [elsewhere("torn"), elsewhere("while it unwound"), elsewhere("panicked")];
        let holds = |model| {
            format!("Look: ring::looks{model} holds, or there is no such model in the test\n")
        };
        let broken = "ring::looks must hold where no control is planted: lost wake-up: 1\n";
        for (expects, script, models, complaint, summary) in [
            ("lost wake-up", FAILS, "", "", "1 models fail as they must, 0 do not; 0 of 1 tests"),
            ("lost wake-up", "true", "", &holds(""), "0 models fail as they must, 1 do not"),
            ("torn", FAILS, "", &late[0], "1 do not"),
            // Only a later panic says what is expected.
            ("while it unwound", FAILS, "", &late[1], "1 do not"),
            ("panicked", FAILS, "", &late[2], "1 do not"),
            ("lost wake-up", always, "", broken, "1 of 1 tests fail without"),
            ("lost wake-up", of_one, "models = ['one', 'two']", &holds(": two"), "1 models fail"),
        ] {
            let entry = format!("{}{models}", ENTRY.replace("'lost'", &format!("'{expects}'")));
            let (controls, name) = (parse(&entry).unwrap(), "models::ring::looks");
            let trials = trials(&controls, &[Check::script(name, script)], &[]).unwrap();
            let tried = trials.iter().map(|trial| trial.run().unwrap()).collect();
            let report = Report { tried, built: Default::default(), taken: Default::default() };
            assert_eq!(
                (report.is_well(), &report.complaints()[..]),
                (complaint.is_empty(), complaint)
            );
            assert!(report.summary().contains(summary), "{}", report.summary());
            assert_eq!(report.table().lines().count(), 2 + trials.len() - 1);
        }
    }

    #[test]
    fn what_is_not_there_is_told() {
        let controls = [control("a()", "b()")];
        let said = |models: &[Check], only: &[String]| {
            trials(&controls, models, only).unwrap_err().to_string()
        };
        assert!(said(&[], &[]).contains("`ring::looks`, and no loom test is called so"));
        let model = Check::script("models::ring::looks", "true");
        assert_eq!(said(&[model], &["Leap".into()]), "no control has Leap in its name");
    }
}
