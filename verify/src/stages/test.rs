//! The tests of what needs nothing but Rust: unit and integration tests by cargo-nextest, each in a process of its own, which is
//! killed where it hangs; examples, and those of the documentation.
//!
//! | module | owns |
//! |---|---|
//! | `ignored` | the tests that are ignored, and why |
//! | `needs` | what some of those need, and whether this machine has it |

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use cargo_metadata::Package;

use self::ignored::Ignored;
use self::needs::{NEEDS, Need};
use super::tools::{NEXTEST, with_tools};
use super::{libtest, package};
use crate::changes::Changes;
use crate::packages;
use crate::run::{Job, Stop, cargo, is_ci, processors};

mod ignored;
mod needs;

/// Files of no package that change what any test is made of.
const ANY: [&str; 2] = [".toml", ".lock"];
/// The program of the device's own tests.
const DEVICE: &str = "transport-rxe-loop";

/// Runs them.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let changed = changed(job)?;
    if changed.as_ref().is_some_and(Vec::is_empty) {
        return Ok("no package has changed that is tested here".into());
    }
    let packages: Vec<_> = changed.iter().flatten().flat_map(|name| ["-p", name]).collect();
    NEXTEST.install(job)?;
    let built = job.run("cargo test --no-run", cargo(&["test", "--no-run"]).args(&packages))?;
    if built.lines().any(|line| line.starts_with("warning: ")) {
        // Clippy sees everything with libibverbs only.
        return Err(Stop::Failed("the compiler warns where libibverbs is left out".into()));
    }
    let ignored = ignored::all(job, &packages)?;
    let Chosen { runs, left, demanded } = chosen(&ignored, job)?;
    // As `.config/nextest.toml` has them.
    let profile = match (job.long, &job.changed) {
        (true, _) => "long",
        (_, Some(_)) => "changed",
        _ => "default",
    };
    let stay = |test: &&Ignored| !runs.contains(*test);
    let mut all = command(ignored.iter().filter(stay), profile);
    all.args(&packages);
    let count = nextest(job, "cargo nextest run", &mut all)?;
    job.run("cargo test --examples", cargo(&["test", "--examples"]).args(&packages))?;
    let documentation = documentation(job, &packages)?;
    if job.long {
        // What happens in between is another matter without debug assertions.
        let of_it = ignored.iter().filter(|test| test.program == DEVICE);
        let mut fast = command(of_it.filter(stay), profile);
        fast.args(["--release", "-p", DEVICE, "--lib"]);
        nextest(job, "cargo nextest run --release of the device", &mut fast)?;
    }
    match demanded {
        Some(line) if is_ci() => Err(Stop::Skipped(line)),
        _ => Ok(format!("{count} tests, {documentation} of the documentation{left}")),
    }
}

/// The packages that changed and are tested, if the stage is to look at those alone. Where a file changed that is in none, that
/// may be any.
fn changed(job: &mut Job) -> Result<Option<Vec<String>>, Stop> {
    if job.changed.is_none() {
        return Ok(None);
    }
    let metadata = package::metadata(job)?;
    let root = &metadata.workspace_root;
    let folder =
        |it: &&Package| Some(it.manifest_path.parent()?.strip_prefix(root).ok()?.to_string());
    let all = metadata.workspace_packages();
    let folders: BTreeMap<_, _> = all.iter().filter_map(|it| Some((folder(it)?, *it))).collect();
    let tested = metadata.workspace_default_packages();
    let mut names = BTreeSet::new();
    for file in job.changed.iter().flat_map(Changes::files) {
        // The package of the innermost folder around it.
        let around =
            |folder: &str| file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        match folders.iter().rev().find(|(folder, _)| around(folder)) {
            Some((_, package)) if tested.contains(package) => {
                _ = names.insert(package.name.to_string())
            }
            None if ANY.iter().any(|end| file.ends_with(end)) => return Ok(None),
            _ => {}
        }
    }
    Ok(Some(names.into_iter().collect()))
}

/// What becomes of the tests that are ignored.
#[derive(Default)]
struct Chosen<'a> {
    /// Those that run, since what they need is there.
    runs: BTreeSet<&'a Ignored>,
    /// In words, how many need what this machine does not have.
    left: String,
    /// The first line of those that CI has to run.
    demanded: Option<String>,
}

/// Asks this machine for what the ignored tests need.
fn chosen<'a>(ignored: &'a [Ignored], job: &mut Job) -> Result<Chosen<'a>, Stop> {
    let unknown = |test: &&Ignored| {
        test.reason.starts_with("needs ") && NEEDS.iter().all(|need| need.reason != test.reason)
    };
    if let Some(Ignored { name, reason, .. }) = ignored.iter().find(unknown) {
        return Err(Stop::Failed(format!("{name} {reason}, for which `needs.rs` has no probe")));
    }
    let mut chosen = Chosen::default();
    for Need { reason, packages, probe, demanded } in NEEDS {
        let tests: Vec<_> = ignored.iter().filter(|test| test.reason == reason).collect();
        if tests.is_empty() {
            // Where packages are left out, another one may have them.
            match job.changed {
                Some(_) => continue,
                None => return Err(Stop::Failed(format!("no test {reason} any more"))),
            }
        }
        let installed = if job.install { packages::ensure(packages, job) } else { Ok(()) };
        let is_there = installed.map_err(|why| why.to_string()).and_then(|()| probe());
        let Err(why) = is_there else {
            chosen.runs.extend(tests);
            continue;
        };
        for Ignored { name, .. } in &tests {
            job.log(&format!("left out: {name} {reason}"))?;
        }
        let line = format!("left out, {reason}: {} ({why})", tests.len());
        chosen.left += &format!("\n{line}");
        chosen.demanded = chosen.demanded.or_else(|| demanded.then_some(line));
    }
    Ok(chosen)
}

/// The command that runs all tests of a profile but these.
fn command<'a>(ignored: impl Iterator<Item = &'a Ignored>, profile: &str) -> Command {
    let mut tests = cargo(&["nextest", "run", "--run-ignored", "all"]);
    // They mostly wait: for timers, and for other processes.
    tests.args(["--test-threads", &(3 * processors()).to_string()]);
    tests.args(["--profile", profile]);
    tests.args(["-E", &ignored::all_but(ignored)]);
    tests
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
