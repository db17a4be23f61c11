//! The tests of what needs nothing but Rust: unit and integration tests by cargo-nextest, each in a process of its own, which is
//! killed where it hangs; examples, and those of the documentation.
//!
//! | module | owns |
//! |---|---|
//! | `ignored` | the tests that are ignored, and why |
//! | `needs` | what some of those need, and whether this machine has it |

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use self::ignored::Ignored;
use self::needs::{NEEDS, Need};
use super::tools::{NEXTEST, with_tools};
use super::{libtest, package};
use crate::run::{Job, Stop, cargo, is_ci, processors};

mod ignored;
mod needs;

/// Runs them.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let packages = packages(job)?;
    if packages.as_ref().is_some_and(Vec::is_empty) {
        return Ok("no package has changed that is tested here".into());
    }
    let packages: Vec<_> = packages.iter().flatten().flat_map(|name| ["-p", name]).collect();
    NEXTEST.install(job)?;
    let built = job.run("cargo test --no-run", cargo(&["test", "--no-run"]).args(&packages))?;
    if built.lines().any(|line| line.starts_with("warning: ")) {
        // Clippy sees everything with libibverbs only.
        return Err(Stop::Failed("the compiler warns where libibverbs is left out".into()));
    }
    let ignored = ignored::all(job, &packages)?;
    let (runs, left) = chosen(&ignored, job)?;
    let mut tests = cargo(&["nextest", "run", "--run-ignored", "all"]);
    // They mostly wait: for timers, and for other processes.
    tests.args(["--test-threads", &(3 * processors()).to_string()]).args(&packages);
    tests.args(["-E", &ignored::all_but(ignored.iter().filter(|test| !runs.contains(test)))]);
    if job.long {
        tests.args(["--profile", "long"]);
    }
    let count = nextest(job, "cargo nextest run", &mut tests)?;
    job.run("cargo test --examples", cargo(&["test", "--examples"]).args(&packages))?;
    let documentation = documentation(job, &packages)?;
    if job.long {
        // What happens in between is another matter without debug assertions.
        let mut fast = cargo(&["nextest", "run", "--profile", "long", "--release"]);
        fast.args(["-p", "transport-rxe-loop", "--lib"]);
        nextest(job, "cargo nextest run --release of the device", &mut fast)?;
    }
    Ok(format!("{count} tests, {documentation} of the documentation{left}"))
}

/// The packages that changed and are tested, if a stage is to look at those alone.
fn packages(job: &mut Job) -> Result<Option<Vec<String>>, Stop> {
    let metadata = package::metadata(job)?;
    let Some(changed) = &job.changed else { return Ok(None) };
    let root = &metadata.workspace_root;
    let tested = metadata.workspace_default_packages();
    let folders: BTreeMap<_, _> = metadata
        .workspace_packages()
        .into_iter()
        .filter_map(|it| Some((it.manifest_path.parent()?.strip_prefix(root).ok()?, it)))
        .collect();
    // The package of the innermost folder around it.
    let of = |file: &str| {
        let around =
            folders.iter().rev().find(|(folder, _)| file.starts_with(&format!("{folder}/")));
        around.map(|(_, package)| *package)
    };
    let changed = changed.files().filter_map(of);
    let names = changed.filter(|it| tested.contains(it)).map(|it| it.name.to_string());
    Ok(Some(names.collect::<BTreeSet<_>>().into_iter().collect()))
}

/// Those of the ignored tests that are to run, and in words those that need what this machine does not have.
fn chosen<'a>(
    ignored: &'a [Ignored],
    job: &mut Job,
) -> Result<(BTreeSet<&'a Ignored>, String), Stop> {
    let (mut runs, mut left) = (BTreeSet::new(), String::new());
    for test in ignored.iter().filter(|test| test.reason.starts_with("needs ")) {
        if NEEDS.iter().all(|need| need.reason != test.reason) {
            let Ignored { name, reason, .. } = test;
            return Err(Stop::Failed(format!(
                "{name} {reason}: no probe of `needs.rs` says whether it is there"
            )));
        }
    }
    for Need { reason, probe, demanded } in NEEDS {
        let tests: Vec<_> = ignored.iter().filter(|test| test.reason == reason).collect();
        match probe() {
            // Another package has them.
            _ if tests.is_empty() && job.changed.is_some() => {}
            _ if tests.is_empty() => {
                return Err(Stop::Failed(format!("no test {reason} any more")));
            }
            Ok(()) => runs.extend(tests),
            Err(why) => {
                let line = format!("{} tests are left out: {reason} ({why})", tests.len());
                tests
                    .iter()
                    .try_for_each(|test| job.log(&format!("left out: {} {reason}", test.name)))?;
                if is_ci() && demanded {
                    return Err(Stop::Skipped(line));
                }
                left += &format!("\n{line}");
            }
        }
    }
    Ok((runs, left))
}

/// Runs tests: how many passed, or which did not.
fn nextest(job: &mut Job, what: &str, tests: &mut Command) -> Result<u32, Stop> {
    let (status, said) = job.attempt(what, with_tools(tests))?;
    match failed(&said)[..] {
        _ if status.success() => passed(&said),
        [] => Err(Stop::Failed(format!("{what}: {status}"))),
        ref names => Err(Stop::Failed(format!("{what}: {}", names.join(", ")))),
    }
}

/// Those that did not pass, and how: the lines below the summary.
fn failed(said: &str) -> Vec<String> {
    let lines = said.lines().skip_while(|line| !line.trim_start().starts_with("Summary ["));
    let name = |line: &str| {
        let (how, name) = (line.split_whitespace().next()?, line.split_once(") ")?.1);
        Some(format!("{how} {name}"))
    };
    lines.skip(1).filter_map(name).collect()
}

/// How many passed, as nextest sums up.
fn passed(said: &str) -> Result<u32, Stop> {
    let lines = said.lines().filter_map(|line| line.trim_start().strip_prefix("Summary ["));
    let sums = lines.filter_map(|line| {
        line.split_once("tests run: ")?.1.split_once(" passed")?.0.parse::<u32>().ok()
    });
    match sums.sum() {
        0 => Err(Stop::Failed("no test ran".into())),
        sum => Ok(sum),
    }
}

/// Runs the tests of the documentation, and counts them.
fn documentation(job: &mut Job, packages: &[&str]) -> Result<u32, Stop> {
    let mut tests = cargo(&["test", "--doc"]);
    tests
        .args(packages)
        .env("RUSTDOC", concat!(env!("CARGO_MANIFEST_DIR"), "/src/stages/rustdoc.sh"));
    Ok(libtest::passed(&job.run("cargo test --doc", &mut tests)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_are_those_of_the_summary_and_none_is_a_failure() {
        let said = "        PASS [   0.005s] cq-core queue::a\n     Summary [   0.017s] 3 tests run: 3 passed (1 slow), 5 skipped\n";
        assert_eq!(passed(said).unwrap(), 3);
        let said = "     Summary [ 100.914s] 9 tests run: 7 passed, 2 failed, 99 skipped\n        FAIL [   0.206s] (688/1791) abi a::b\n\
                     \x20    TIMEOUT [ 300.002s] (  3/1791) cq-core::engine c::d\nerror: test run failed\n";
        assert_eq!(failed(said), ["FAIL abi a::b", "TIMEOUT cq-core::engine c::d"]);
        assert!(passed("     Summary [   0.017s] 0 tests run: 0 passed, 5 skipped").is_err());
    }
}
