//! The stages, and what each one runs and demands.
//!
//! | module | owns |
//! |---|---|
//! | `stage` | what a stage is |
//! | `table` | all of them, in order |
//! | `checks`, `workflow` | the page and the workflows that are made from that |
//! | `toolchain`, `tools`, `libibverbs`, `artifacts`, `libtest`, `preload`, `fabric`, `exports`, `markdown` | what several of them use |
//!
//! The other modules are stages, by their names.

use crate::run::Stop;

mod abi;
mod api;
mod artifacts;
mod bare_metal;
#[cfg(test)]
mod checks;
mod conformance;
mod deny;
mod differential;
mod doc;
mod exports;
mod fabric;
mod features;
mod fuzz;
mod layers;
mod layout;
mod libibverbs;
pub mod libtest;
mod loom;
mod markdown;
mod miri;
mod mutate;
mod package;
mod planted;
mod positions;
mod preload;
mod processors;
mod readme;
mod sanitizers;
mod soft_roce;
mod stage;
mod style;
mod table;
mod test;
mod toolchain;
mod tools;
mod verbs;
mod workflow;

#[cfg(test)]
pub use self::stage::Shared;
pub use self::stage::{Quick, Stage};
pub use self::table::STAGES;

/// The stage called `name`.
pub fn named(name: &str) -> Result<&'static Stage, String> {
    let found = STAGES.iter().find(|stage| stage.name == name);
    found.ok_or_else(|| {
        let names = STAGES.each_ref().map(|stage| stage.name).join(", ");
        format!("no stage is called `{name}`; there are {names}")
    })
}

/// The stages, a line each: the name and what it shows.
pub fn list() -> String {
    STAGES.iter().map(|stage| format!("  {:<13}{}\n", stage.name, stage.shows)).collect()
}

/// The stages as `--list` shows them: with their times, why they run on every commit, and what `--long` adds.
pub fn details() -> String {
    let details = |stage: &Stage| {
        let Stage { name, shows, why, misses, long, needs, only_by_name, budget, .. } = stage;
        let packages = stage.packages.concat().join(", ");
        let limit = stage.limit(false, false).as_secs();
        let line = |head: &str, text: &str| match text {
            "" => String::new(),
            text => format!("  {head}{text}\n"),
        };
        let lines = [
            line("not: ", misses),
            line("--long: ", long),
            line("only by its name: ", only_by_name),
            line("needs Debian's packages or the like: ", &packages),
            line("needs ", needs),
            line(&format!("on GitHub, {}: ", stage.on_github()), &stage.command()),
        ];
        let lines = lines.concat();
        format!("{name}: {shows}\n  since {why}\n{lines}  {budget} s, ended after {limit} s\n")
    };
    STAGES.iter().map(details).collect()
}

/// The manifests of the workspaces: ours, and others of one package each.
const WORKSPACES: [&str; 4] = [
    "Cargo.toml",
    "bench/firmware/Cargo.toml",
    "cq-core/examples/firmware/Cargo.toml",
    "verify/fuzz/Cargo.toml",
];

/// The line behind which there is nothing more; an error where there is none at all.
fn last_line(output: &str) -> Result<&str, Stop> {
    output.lines().last().ok_or(Stop::Failed("it printed nothing".into()))
}

/// How many lines are shown of what something printed that failed.
const SHOWN: usize = 60;

/// The end of what something printed, below the line that tells of it.
fn last_words(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let tail = &lines[lines.len().saturating_sub(SHOWN)..];
    tail.iter().flat_map(|line| ["\n  ", line]).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::packages;

    #[test]
    fn stages_exclude_each_other_by_what_they_share() {
        let excludes = |a, b| named(a).unwrap().excludes(named(b).unwrap());
        assert!(excludes("doc", "clippy") && excludes("conformance", "soft-roce"));
        assert!(!excludes("loom", "test") && !excludes("fmt", "fmt"));
    }

    #[test]
    fn how_each_package_is_found_is_known_and_of_no_other() {
        let packages = STAGES.iter().flat_map(|stage| stage.packages).chain(&abi::LONG_PACKAGES);
        let named: BTreeSet<_> = packages.flat_map(|names| names.iter().copied()).collect();
        assert!(named.iter().copied().eq(packages::all()), "{named:?}");
    }

    #[test]
    fn every_stage_depends_on_files() {
        let concerns_none = STAGES.iter().filter(|stage| stage.of.is_empty());
        assert_eq!(concerns_none.map(|stage| stage.name).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn every_stage_can_end_in_time() {
        for stage in &STAGES {
            let times = [
                Duration::from_secs(stage.budget.into()),
                stage.limit(false, false),
                stage.limit(true, false),
            ];
            assert!(times.is_sorted_by(|a, b| a < b), "{}", stage.name);
        }
    }
}
