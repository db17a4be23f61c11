use super::*;
use crate::checks::Kind;

/// A model that fails with control 1, in its second panic with other words, and holds without.
const FAILS: &str = "if test $VERIFY_MUTANT = 1; then
    echo \"thread 'main' panicked at a.rs:1:2:\nlost wake-up: 1\nnote: more\n\" >&2
    echo \"thread 'main' panicked at b.rs:3:4:\nwhile it unwound\n\" >&2
    exit 101
fi";

fn model(script: &str) -> Check {
    Check {
        kind: Kind::Loom,
        name: "models::ring::looks".into(),
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        variables: Vec::new(),
    }
}

fn control(expects: &str, models: &[&str]) -> Control {
    let models = models.iter().map(ToString::to_string).collect();
    let failure = Failure { test: "ring::looks".into(), models, expects: expects.into() };
    Control {
        name: "Look".into(),
        why: "it looks".into(),
        file: "cq-core/src/a.rs".into(),
        of: "look()".into(),
        instead: "false".into(),
        fails: vec![failure],
    }
}

/// Whether all is well, with the complaints and the summary.
fn report(control: Control, script: &str) -> (bool, String, String) {
    let (controls, models) = ([control], [model(script)]);
    let trials = all(&controls, &models, &[]).unwrap();
    let tried = trials.iter().map(|trial| trial.run().unwrap()).collect();
    let report = Report { tried, built: Duration::ZERO, taken: Duration::ZERO };
    assert_eq!(report.table().lines().count(), 2 + trials.len() - 1);
    (report.is_well(), report.complaints(), report.summary())
}

#[test]
fn a_model_that_fails_as_it_must_and_holds_without_is_well() {
    let (is_well, complaints, summary) = report(control("lost wake-up", &[]), FAILS);
    assert!(is_well && complaints.is_empty(), "{complaints}");
    assert!(summary.starts_with("1 controls: 1 models fail as they must, 0 do not; 0 of 1 tests"));
}

#[test]
fn a_control_that_holds_is_told() {
    let (is_well, complaints, summary) = report(control("lost wake-up", &[]), "true");
    assert!(!is_well && complaints.starts_with("Look: ring::looks holds"), "{complaints}");
    assert!(summary.contains("0 models fail as they must, 1 do not"), "{summary}");
}

#[test]
fn a_control_that_fails_elsewhere_is_told_also_where_a_later_panic_says_what_is_expected() {
    for expects in ["torn", "while it unwound", "panicked"] {
        let (is_well, complaints, _) = report(control(expects, &[]), FAILS);
        let expected =
            format!("Look: ring::looks must fail with {expects:?}, not: lost wake-up: 1\n");
        assert_eq!((is_well, complaints), (false, expected));
    }
}

#[test]
fn a_model_that_fails_without_a_control_is_told() {
    let always = FAILS.replace("$VERIFY_MUTANT = 1", "1 = 1");
    let (is_well, complaints, summary) = report(control("lost wake-up", &[]), &always);
    let expected = "ring::looks must hold where no control is planted: lost wake-up: 1\n";
    assert_eq!((is_well, &complaints[..]), (false, expected));
    assert!(summary.contains("1 of 1 tests fail without"), "{summary}");
}

#[test]
fn each_model_of_a_test_is_tried_by_itself() {
    let of_two = FAILS.replace("$VERIFY_MUTANT = 1", "\"$LOOM_MODEL\" = one");
    let (is_well, complaints, _) = report(control("lost wake-up", &["one", "two"]), &of_two);
    assert!(!is_well && complaints.starts_with("Look: ring::looks: two holds"), "{complaints}");
}

#[test]
fn a_test_that_is_not_there_is_told() {
    let controls = [control("lost", &[])];
    let said = all(&controls, &[], &[]).unwrap_err().to_string();
    assert!(said.contains("`ring::looks`, and no loom test is called so"), "{said}");
    let said = all(&controls, &[model("true")], &["Leap".into()]).unwrap_err().to_string();
    assert_eq!(said, "no control has Leap in its name");
}
