use super::*;

const RULES: [Rule; 3] = [
    Rule { id: "C8", statement: "Every one. Once." },
    Rule { id: "X3", statement: "Nobody waits for the dead." },
    Rule { id: "N6", statement: "No wake-up is lost." },
];
use crate::conformance::Case;

const C8: &str = "c08_once";
const N6: &str = "n06_awake";
const SILENT: Deviation =
    Deviation { transport: "a", case: N6, instead: "it sleeps", why: "it is tired" };

fn outcome(transport: &'static str, name: &'static str, result: Result<(), &str>) -> Outcome {
    let result = result.map_err(str::to_owned);
    Outcome { transport, case: Case { name, run: || {} }, result }
}

fn judge(outcomes: &[Outcome], deviations: &[Deviation]) -> Verdict {
    let known = Known { deviations: deviations.to_vec(), ..Known::default() };
    Verdict::judge(outcomes, &RULES, vec!["a"], known)
}

#[test]
fn a_case_that_cannot_exist_must_say_so() {
    let alone = Confined { transport: "a", cases: &[N6], says: "alone", why: "it takes two" };
    let judge = |result| {
        let known = Known { confined: vec![alone], ..Known::default() };
        let outcomes = [outcome("a", C8, Ok(())), outcome("a", N6, result)];
        Verdict::judge(&outcomes, &RULES, vec!["a"], known)
    };
    let verdict = judge(Err("alone (x.rs:1)"));
    assert_eq!(verdict.faults(), &[] as &[String]);
    assert!(verdict.markdown().contains("| N6 | No wake-up is lost | – |"), "and no mark");
    assert!(verdict.text().contains("it takes two") && verdict.markdown().contains("takes two"));
    assert_eq!(judge(Err("asleep")).faults(), ["a: n06_awake failed: asleep"]);
    assert!(judge(Ok(())).faults().join("").contains("n06_awake can exist there"));
}

#[test]
fn all_that_hold_and_what_cannot_be_seen_are_no_fault() {
    let verdict = judge(&[outcome("a", C8, Ok(())), outcome("a", N6, Ok(()))], &[]);
    assert_eq!(verdict.faults(), &[] as &[String]);
    assert!(verdict.markdown().contains("| C8 | Every one | ✓ 1 |"), "{}", verdict.markdown());
    assert!(verdict.markdown().contains("| X3 | Nobody waits for the dead | – |"));
    assert!(verdict.summary().starts_with("0 faults"), "{}", verdict.summary());
}

#[test]
fn a_rule_without_a_case_is_a_fault() {
    let verdict = judge(&[outcome("a", C8, Ok(()))], &[]);
    assert_eq!(verdict.faults(), ["a: no case of N6"]);
    assert!(verdict.text().contains("NO CASE"));
}

#[test]
fn a_failed_case_is_a_fault_with_its_reason() {
    let verdict = judge(&[outcome("a", C8, Err("twice")), outcome("a", N6, Ok(()))], &[]);
    assert_eq!(verdict.faults(), ["a: c08_once failed: twice"]);
    assert!(verdict.text().contains("FAILED 1 of 1"));
}

#[test]
fn a_known_deviation_is_a_note_until_it_passes() {
    let fails = [outcome("a", C8, Ok(())), outcome("a", N6, Err("asleep"))];
    let verdict = judge(&fails, &[SILENT]);
    assert_eq!(verdict.faults(), &[] as &[String]);
    assert!(verdict.markdown().contains("✗ 0 [1]") && verdict.text().contains("it sleeps"));
    assert!(verdict.markdown().contains("it is tired"), "{}", verdict.markdown());

    let passes = [outcome("a", C8, Ok(())), outcome("a", N6, Ok(()))];
    let faults = judge(&passes, &[SILENT]).faults().join("");
    assert!(faults.contains("n06_awake does not deviate any more"), "{faults}");
}

#[test]
fn a_transport_that_could_not_run_is_named_with_the_reason_and_has_no_column() {
    let verdict = Verdict::of(&[], &[("verbs-rxe", "no QEMU".to_owned())]);
    assert!(verdict.summary().ends_with("; without verbs-rxe: no QEMU"));
    assert!(!verdict.header().contains(&"verbs-rxe".to_owned()));
    let about_it = |fault: &&String| fault.starts_with("verbs-rxe");
    assert_eq!(verdict.faults().iter().find(about_it), None, "nothing was judged");
    assert!(verdict.markdown().contains("**verbs-rxe did not run: no QEMU**"));
}

#[test]
fn notes_that_follow_each_other_are_a_range() {
    assert_eq!(runs(&[1, 3, 4, 5, 9, 10]), ["1", "3–5", "9–10"]);
}

#[test]
fn a_deviation_of_no_case_is_a_fault() {
    let outcomes = [outcome("a", C8, Ok(())), outcome("a", N6, Ok(()))];
    let gone = Deviation { case: "c08_gone", ..SILENT };
    let faults = judge(&outcomes, &[gone]).faults().join("");
    assert!(faults.contains("there is no case c08_gone"), "{faults}");
}
