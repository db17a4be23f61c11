//! The tests that are ignored, each with the reason that its source gives: processes of other tests, and those that need what
//! not every machine has.

use std::collections::BTreeMap;
use std::process::Command;

use serde::Deserialize;

use crate::run::{Job, Stop, cargo};
use crate::stages::tools::with_tools;

/// An ignored test.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ignored {
    /// The program of tests that it is in, as nextest calls it.
    pub program: String,
    /// Its name there.
    pub name: String,
    /// Why it is ignored.
    pub reason: String,
}

/// What `cargo nextest list` says, as far as it is wanted.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct List {
    rust_suites: BTreeMap<String, Suite>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Suite {
    binary_path: String,
    testcases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    ignored: bool,
}

/// Those of these packages.
pub fn all(job: &mut Job, packages: &[&str]) -> Result<Vec<Ignored>, Stop> {
    let mut list = cargo(&["nextest", "list", "--message-format", "json", "--run-ignored", "all"]);
    let list = job.ask("cargo nextest list", with_tools(list.args(packages)))?;
    let wrong = |error| Stop::Failed(format!("nextest's list can't be read: {error}"));
    let List { rust_suites } = serde_json::from_str(&list).map_err(wrong)?;
    let mut all = Vec::new();
    for (program, Suite { binary_path, testcases }) in rust_suites {
        let names = testcases.iter().filter(|(_, case)| case.ignored).map(|(name, _)| name);
        let names: Vec<_> = names.collect();
        if names.is_empty() {
            continue;
        }
        // A program that is told their names alone runs none, and says why of each.
        let mut tests = Command::new(binary_path);
        tests.arg("--exact").args(&names);
        let said = job.ask(&format!("ignored tests of {program}"), &mut tests)?;
        let reasons: BTreeMap<_, _> = said.lines().filter_map(reason).collect();
        for name in names {
            let Some(reason) = reasons.get(name) else {
                return Err(Stop::Failed(format!("{program} {name} is ignored without a reason")));
            };
            let (program, name) = (program.clone(), name.clone());
            all.push(Ignored { program, name, reason: reason.clone() });
        }
    }
    Ok(all)
}

/// The test of a line of libtest's, and why it is ignored.
fn reason(line: &str) -> Option<(String, String)> {
    let (name, reason) = line.strip_prefix("test ")?.split_once(" ... ignored, ")?;
    Some((name.to_owned(), reason.to_owned()))
}

/// All tests but these, in nextest's words.
pub fn all_but<'a>(tests: impl Iterator<Item = &'a Ignored>) -> String {
    let mut names = BTreeMap::<&str, Vec<String>>::new();
    for Ignored { program, name, .. } in tests {
        names.entry(program).or_default().push(format!("test(={name})"));
    }
    let of = |(program, names): (&str, Vec<String>)| {
        format!(" - (binary_id(={program}) & ({}))", names.join(" + "))
    };
    ["all()".to_owned()].into_iter().chain(names.into_iter().map(of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_named_by_its_program() {
        let test = |program: &str, line| {
            let (name, reason) = reason(line).unwrap();
            Ignored { program: program.to_owned(), name, reason }
        };
        let tests = [
            test("one", "test a::b ... ignored, needs a wire"),
            test("two", "test a ... ignored, a process of another test"),
            test("one", "test c ... ignored, needs a wire"),
        ];
        assert_eq!(
            all_but(tests.iter()),
            "all() - (binary_id(=one) & (test(=a::b) + test(=c))) - (binary_id(=two) & (test(=a)))"
        );
        assert_eq!(all_but(tests[..0].iter()), "all()");
        assert_eq!(reason("test b ... ok"), None);
    }
}
