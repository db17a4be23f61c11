//! The checks that may notice a mutant, each as small as it can be run: a test, a conformance case, a seed of random
//! programs, a loom model.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::compile::{Artifact, CompileError, Copy, World};

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

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Engine, Self::Device, Self::Conformance, Self::Differential, Self::Loom];

    /// As it is called in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Device => "device",
            Self::Conformance => "conformance",
            Self::Differential => "differential",
            Self::Loom => "loom",
        }
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
        write!(f, "{} {}", self.kind.name(), self.name)
    }
}

/// The checks can't be found.
#[derive(Debug, thiserror::Error)]
pub enum ChecksError {
    /// What they are can't be built.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A program does not say which tests it has.
    #[error("cannot list the tests of {program}: {why}")]
    List {
        /// Which.
        program: PathBuf,
        /// Why not.
        why: String,
    },
    /// A manifest can't be read.
    #[error("cannot read {path}: {why}")]
    Manifest {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

/// How many random programs a check runs, and the seeds.
const PROGRAMS: &str = "300";
const SEEDS: [u32; 2] = [1, 2];

/// The transport whose cases are run one by one.
const LOOPBACK: &str = "rxe-loop";
/// The transports whose cases are run rule by rule.
const OTHERS: [&str; 2] = ["rxe-loop as rxe", "rxe-loop, two processes"];

/// Preemptions that a model explores first, and for what survives that.
const PREEMPTIONS: [&str; 2] = ["2", "3"];

const TESTS: [&str; 9] = [
    "test",
    "--no-run",
    "--profile",
    "mutate",
    "-p",
    "cq-core",
    "-p",
    "transport-rxe-loop",
    "--tests",
];
const QUICK_TESTS: [&str; 7] =
    ["test", "--no-run", "--profile", "mutate", "-p", "cq-core", "--tests"];
const PROGRAMS_OF_VERIFY: [&str; 6] = ["build", "--profile", "mutate", "-p", "verify", "--bins"];
/// Builds the loom models.
pub const MODELS: [&str; 6] = ["test", "--no-run", "--release", "-p", "verify-loom", "--tests"];

/// What can't be run in the copy: this looks for the files of a fabric in shared memory, and there they lie in the
/// folder that a check runs in.
const NOT_IN_THE_COPY: [&str; 1] =
    ["x02_files_are_their_users_alone_and_gone_with_the_last_process"];

/// Builds them and finds the checks in them: all, or the engine's tests, which are quick to build and to run. The
/// second list is for what survives the first.
pub fn build(
    copy: &mut Copy<'_>,
    all: bool,
    mut tell: impl FnMut(&str),
) -> Result<(Vec<Check>, Vec<Check>), ChecksError> {
    tell("building the tests");
    let tests = if all { &TESTS[..] } else { &QUICK_TESTS[..] };
    let tests = copy.build(World::Normal, tests, &mut tell)?;
    let (mut programs, mut models) = (Vec::new(), Vec::new());
    if all {
        tell("building the conformance suite and the random programs");
        programs = copy.build(World::Normal, &PROGRAMS_OF_VERIFY, &mut tell)?;
        tell("building the loom models");
        models = copy.build(World::Loom, &MODELS, &mut tell)?;
    }
    tell("listing the checks");
    let mut checks = Vec::new();
    for artifact in tests.iter().filter(|artifact| artifact.profile.test) {
        checks.extend(tests_of(artifact)?);
    }
    for artifact in &programs {
        checks.extend(of_program(artifact)?);
    }
    let can_run = |check: &Check| !NOT_IN_THE_COPY.iter().any(|name| check.name.ends_with(name));
    checks.retain(can_run);
    let (mut first, mut second) = (checks, Vec::new());
    for artifact in models.iter().filter(|it| it.target.kind.iter().any(|kind| kind == "test")) {
        let [quick, thorough] = bounded(&models_of(artifact)?);
        first.extend(quick);
        second.extend(thorough);
    }
    Ok((first, second))
}

/// The tests of a program, or the program, if it has no harness.
fn tests_of(artifact: &Artifact) -> Result<Vec<Check>, ChecksError> {
    let Some(program) = &artifact.executable else { return Ok(Vec::new()) };
    let in_engine = artifact.manifest_path.parent().is_some_and(|it| it.ends_with("cq-core"));
    let kind = if in_engine { Kind::Engine } else { Kind::Device };
    let target = &artifact.target.name;
    let folder = artifact.manifest_path.parent().unwrap_or(Path::new("")).display().to_string();
    let variables = vec![("CARGO_MANIFEST_DIR", folder)];
    let check = |name: String, arguments| {
        let (program, variables) = (program.clone(), variables.clone());
        Check { kind, name, program, arguments, variables }
    };
    if without_harness(&artifact.manifest_path)?.contains(target) {
        return Ok(vec![check(target.clone(), Vec::new())]);
    }
    let tests = list(program, &["--list", "--format", "terse"])?;
    let tests = tests.iter().filter_map(|line| line.strip_suffix(": test"));
    let exact = |test: &str| vec!["--exact".to_owned(), test.to_owned()];
    Ok(tests.map(|test| check(format!("{target}::{test}"), exact(test))).collect())
}

fn of_program(artifact: &Artifact) -> Result<Vec<Check>, ChecksError> {
    let Some(program) = &artifact.executable else { return Ok(Vec::new()) };
    let check = |kind, name: String, arguments: &[&str]| {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Check { kind, name, program: program.clone(), arguments, variables: Vec::new() }
    };
    Ok(match artifact.target.name.as_str() {
        "verify" => {
            let cases = |transport| list(program, &["--cases", transport, "--list"]);
            let one = |case: &String| {
                let arguments = ["--cases", LOOPBACK, "--only", case, "--exact"];
                check(Kind::Conformance, case.clone(), &arguments)
            };
            let mut checks: Vec<_> = cases(LOOPBACK)?.iter().map(one).collect();
            for transport in OTHERS {
                let of_rule = |rule: &String| {
                    let arguments = ["--cases", transport, "--only", rule];
                    check(Kind::Conformance, format!("{transport}: {rule}"), &arguments)
                };
                checks.extend(rules(&cases(transport)?).iter().map(of_rule));
            }
            checks
        }
        "differential" => {
            let one = |seed: u32| {
                let arguments = ["--programs", PROGRAMS, "--seed", &seed.to_string()];
                check(Kind::Differential, format!("seed {seed}"), &arguments)
            };
            SEEDS.map(one).into()
        }
        _ => Vec::new(),
    })
}

/// What the names of these cases begin with, as far as all cases of a rule can be run in the copy.
fn rules(cases: &[String]) -> BTreeSet<String> {
    let rule = |case: &str| Some(format!("{}_", case.split_once('_')?.0));
    let all: BTreeSet<_> = cases.iter().filter_map(|case| rule(case)).collect();
    let left_out: Vec<_> = NOT_IN_THE_COPY.iter().filter_map(|case| rule(case)).collect();
    all.into_iter().filter(|rule| !left_out.contains(rule)).collect()
}

/// The models of a program, without their controls.
pub fn models_of(artifact: &Artifact) -> Result<Vec<Check>, ChecksError> {
    let variables = vec![("LOOM_WITHOUT_CONTROLS", "1".to_owned())];
    let one = |check| Check { kind: Kind::Loom, variables: variables.clone(), ..check };
    Ok(tests_of(artifact)?.into_iter().map(one).collect())
}

/// The same with few preemptions and with more.
fn bounded(models: &[Check]) -> [Vec<Check>; 2] {
    PREEMPTIONS.map(|preemptions| {
        let one = |model: &Check| {
            let mut check = model.clone();
            check.name = format!("{} to {preemptions} preemptions", model.name);
            check.variables.push(("LOOM_MAX_PREEMPTIONS", preemptions.to_owned()));
            check
        };
        models.iter().map(one).collect()
    })
}

fn list(program: &Path, arguments: &[&str]) -> Result<Vec<String>, ChecksError> {
    let failed = |why: String| ChecksError::List { program: program.to_owned(), why };
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error: io::Error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// The test programs of a package that are no libtest.
fn without_harness(manifest: &Path) -> Result<BTreeSet<String>, ChecksError> {
    #[derive(Deserialize)]
    struct Manifest {
        #[serde(default)]
        test: Vec<TestTarget>,
    }
    #[derive(Deserialize)]
    struct TestTarget {
        name: String,
        harness: Option<bool>,
    }
    let failed = |why: String| ChecksError::Manifest { path: manifest.to_owned(), why };
    let text = fs::read_to_string(manifest).map_err(|error| failed(error.to_string()))?;
    let parsed: Manifest = toml::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let bare = parsed.test.into_iter().filter(|target| target.harness == Some(false));
    Ok(bare.map(|target| target.name).collect())
}
