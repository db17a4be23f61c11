//! The checks that may notice a mutant, each as small as it can be run: a test, a conformance case, a seed of random
//! programs, a loom model.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use cargo_metadata::Artifact;
use serde::{Deserialize, Serialize};

use crate::compile::{Copy, World};
use crate::workers::say;

/// What a check is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The engine's tests.
    Engine,
    /// The device's tests.
    Device,
    /// The conformance suite on the loopback.
    Conformance,
    /// Random programs on the loopback and on the model.
    Differential,
    /// Loom models, without their controls.
    Loom,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// Something that passes where no mutant is on.
#[derive(Clone, Debug)]
pub struct Check {
    /// What it is one of.
    pub kind: Kind,
    /// The program and the test in it.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// What it is told.
    pub arguments: Vec<String>,
    /// What its environment has more than ours.
    pub variables: Vec<(&'static str, String)>,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

impl Check {
    /// The same with another variable.
    pub fn with(&self, name: &'static str, value: &str) -> Self {
        let mut check = self.clone();
        check.variables.push((name, value.to_owned()));
        check
    }

    /// A check of the device that is a script.
    #[cfg(test)]
    pub fn script(name: &str, text: &str) -> Self {
        Self {
            kind: Kind::Device,
            name: name.into(),
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), text.into()],
            variables: Vec::new(),
        }
    }
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// A check failed, or did not end.
    Noticed {
        /// What the check is one of.
        kind: Kind,
        /// Its name.
        by: String,
        /// Whether it did not end in its time.
        late: bool,
    },
    /// None did.
    Survived {
        /// How many reach it.
        reached: usize,
        /// The quickest of them, by name.
        reached_by: Vec<String>,
    },
}

/// How many random programs a check runs, and the seeds.
const PROGRAMS: &str = "300";
const SEEDS: [u32; 2] = [1, 2];

/// The transport whose cases are run one by one.
const LOOPBACK: &str = "rxe-loop";
/// The transports whose cases are run rule by rule.
const OTHERS: [&str; 2] = ["rxe-loop as rxe", "rxe-loop, two processes"];

/// How many preemptions a model explores.
pub const PREEMPTIONS: &str = "LOOM_MAX_PREEMPTIONS";
const FEW: &str = "2";

const QUICK_TESTS: &str =
    "test --no-run --profile mutate -p cq-core -p cq-verbs -p cq-testing --tests";
const TESTS: &str = "test --no-run --profile mutate -p cq-core -p cq-verbs -p cq-testing -p transport-rxe-loop --tests";
const PROGRAMS_OF_VERIFY: &str = "build --profile mutate -p verify --bins";
/// Builds the loom models.
pub const MODELS: &str = "test --no-run --release -p verify-loom --tests";

/// The program that is a test of its own, which lists nothing.
const WITHOUT_HARNESS: &str = "kv_store";

/// A case that can't be run in the copy: it looks for the files of a fabric in shared memory, and there they lie in the
/// folder that a check runs in.
const CASE_NOT_IN_THE_COPY: &str = "x02_files_are_their_users_alone_and_gone_with_the_last_process";
/// Tests that can't, for the same reason.
const TESTS_NOT_IN_THE_COPY: [&str; 2] = [
    "n06_the_descriptor_of_another_process_s_channel_is_closed_once_that_has_ended",
    "regions_have_huge_pages_for_all_that_map_them_where_the_system_gathers_them",
];

/// Builds them and finds the checks in them: all, or the engine's tests, which are quick to build and to run.
pub fn build(copy: &mut Copy<'_>, all: bool) -> Result<Vec<Check>> {
    say("building the tests");
    let mut checks = Vec::new();
    for artifact in copy.build(World::Normal, if all { TESTS } else { QUICK_TESTS })? {
        checks.extend(tests_of(&artifact)?);
    }
    if all {
        say("building the conformance suite and the random programs");
        for artifact in copy.build(World::Normal, PROGRAMS_OF_VERIFY)? {
            checks.extend(of_program(&artifact)?);
        }
        let not_here = TESTS_NOT_IN_THE_COPY.iter().chain([&CASE_NOT_IN_THE_COPY]);
        checks.retain(|check| !not_here.clone().any(|name| check.name.ends_with(name)));
        say("building the loom models");
        for artifact in copy.build(World::Loom, MODELS)? {
            let models = models_of(&artifact)?;
            checks.extend(models.iter().map(|model| model.with(PREEMPTIONS, FEW)));
        }
    }
    Ok(checks)
}

/// The tests of a program, or the program, if it has no harness.
fn tests_of(artifact: &Artifact) -> Result<Vec<Check>> {
    let Some(program) = artifact.executable.as_ref().filter(|_| artifact.profile.test) else {
        return Ok(Vec::new());
    };
    let folder = artifact.manifest_path.parent().context("a manifest is in no folder")?;
    let target = &artifact.target.name;
    let check = |name: String, arguments: &[&str]| Check {
        kind: if folder.iter().any(|part| part == "cq-core") { Kind::Engine } else { Kind::Device },
        name,
        program: program.clone().into(),
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        variables: vec![("CARGO_MANIFEST_DIR", folder.to_string())],
    };
    if target == WITHOUT_HARNESS {
        return Ok(vec![check(target.clone(), &[])]);
    }
    let listed = list(program.as_str(), &["--list", "--format", "terse"])?;
    let mut tests: Vec<_> = listed.iter().filter_map(|line| line.strip_suffix(": test")).collect();
    let ignored = list(program.as_str(), &["--list", "--ignored", "--format", "terse"])?;
    let ignored: Vec<_> = ignored.iter().filter_map(|line| line.strip_suffix(": test")).collect();
    let mut needy = Vec::new();
    if !ignored.is_empty() {
        // Told their names alone, it runs none, and says why of each.
        let said = list(program.as_str(), &[&["--exact"], &ignored[..]].concat())?;
        needy = said.iter().filter_map(|line| of_a_need(line)).map(str::to_owned).collect();
        needy.retain(|test| {
            let mut run = Command::new(program);
            run.args(["--exact", test, "--ignored"]).env("CARGO_MANIFEST_DIR", folder);
            let passes = run.output().is_ok_and(|run| run.status.success());
            if !passes {
                say(format_args!("left out, since it fails here: {target}::{test}"));
            }
            passes
        });
        tests.retain(|test| !ignored.contains(test));
    }
    let named = |test: &str, more: &[&str]| {
        check(format!("{target}::{test}"), &[&["--exact", test], more].concat())
    };
    let plain = tests.into_iter().map(|test| named(test, &[]));
    Ok(plain.chain(needy.iter().map(|test| named(test, &["--ignored"]))).collect())
}

/// The test of a line of libtest's that is ignored for what it needs; others are processes of tests.
fn of_a_need(line: &str) -> Option<&str> {
    Some(line.strip_prefix("test ")?.split_once(" ... ignored, needs ")?.0)
}

fn of_program(artifact: &Artifact) -> Result<Vec<Check>> {
    let Some(program) = &artifact.executable else { return Ok(Vec::new()) };
    let check = |kind, name: String, arguments: &[&str]| {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Check { kind, name, program: program.clone().into(), arguments, variables: Vec::new() }
    };
    let mut checks = Vec::new();
    if artifact.target.name == "verify" {
        let cases = |transport| list(program.as_str(), &["--cases", transport, "--list"]);
        checks.extend(cases(LOOPBACK)?.into_iter().map(|case| {
            let arguments = ["--cases", LOOPBACK, "--only", &case, "--exact"];
            check(Kind::Conformance, case.clone(), &arguments)
        }));
        for transport in OTHERS {
            checks.extend(rules(&cases(transport)?).into_iter().map(|rule| {
                let arguments = ["--cases", transport, "--only", &rule];
                check(Kind::Conformance, format!("{transport}: {rule}"), &arguments)
            }));
        }
    }
    if artifact.target.name == "differential" {
        checks.extend(SEEDS.map(|seed| {
            let arguments = ["--programs", PROGRAMS, "--seed", &seed.to_string()];
            check(Kind::Differential, format!("seed {seed}"), &arguments)
        }));
    }
    Ok(checks)
}

/// What the names of these cases begin with, as far as all cases of a rule can be run in the copy.
fn rules(cases: &[String]) -> BTreeSet<String> {
    let rule = |case: &str| Some(format!("{}_", case.split_once('_')?.0));
    let mut all: BTreeSet<_> = cases.iter().filter_map(|case| rule(case)).collect();
    all.retain(|it| !CASE_NOT_IN_THE_COPY.starts_with(it));
    all
}

/// The models of a program, without their controls.
pub fn models_of(artifact: &Artifact) -> Result<Vec<Check>> {
    if !artifact.target.is_test() {
        return Ok(Vec::new());
    }
    let one = |check: Check| Check { kind: Kind::Loom, ..check.with("LOOM_WITHOUT_CONTROLS", "1") };
    Ok(tests_of(artifact)?.into_iter().map(one).collect())
}

fn list(program: &str, arguments: &[&str]) -> Result<Vec<String>> {
    let cannot = || format!("cannot list the tests of {program}");
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.with_context(cannot)?;
    let [said, complaint] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    ensure!(output.status.success(), "{}: {}", cannot(), complaint.trim());
    Ok(said.lines().map(str::to_owned).collect())
}
