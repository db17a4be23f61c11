//! What a stage is: what it shows, what it needs, where it runs.

use std::time::Duration;

use crate::changes::Changes;
use crate::run::{Job, Stop};

/// One check of `cargo verify`.
pub struct Stage {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What its passing shows, in one line.
    pub shows: &'static str,
    /// Why that is to be seen on every commit.
    pub why: &'static str,
    /// What its passing does not show.
    pub misses: &'static str,
    /// What `--long` has more of.
    pub long: &'static str,
    /// Why it runs only when it is named; empty where it runs on every commit.
    pub only_by_name: &'static str,
    /// How many seconds it may take on two processors that run the other stages meanwhile.
    pub budget: u32,
    /// What only one stage at a time can use. A target directory that is built in once more, but in vain, is not
    /// listed: cargo waits for it.
    pub shares: &'static [Shared],
    /// The Debian packages without which it cannot run, by what they are for.
    pub packages: &'static [&'static [&'static str]],
    /// What else it needs for all of it: rights, or a network.
    pub needs: &'static str,
    /// The files on which its result depends, as git(1) names them: the beginnings of paths, and behind a `*` ends.
    pub of: &'static [&'static str],
    /// Whether it is a part of the command before a commit.
    pub quick: Quick,
    /// When it runs on GitHub's machines, and on which.
    pub when: When,
    pub machines: &'static [Machine],
    /// Runs it. Of the words returned, the first line stands behind its name in the report, and the others below for who
    /// asked for this stage by its name.
    pub run: Run,
}

/// What runs a stage.
pub type Run = fn(&mut Job) -> Result<String, Stop>;

/// What of a stage is a part of the command before a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quick {
    No,
    /// All of it.
    Whole,
    /// What looks at what changed: the rest is left to be run.
    InPart,
}

/// When a stage runs on GitHub's machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Commit,
    Night,
    /// At both: what it finds comes without a commit, too.
    Always,
}

/// A machine of GitHub's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86,
    Arm,
    /// One of the first, whose kernel the stage uses with its modules.
    Kernel,
}

/// What stages share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// `target/debug`: tests.
    Debug,
    /// `target/checker`: this program, the library of the C ABI, random programs.
    Checker,
    /// `target/verbs`: what needs libibverbs; lints and documentation of everything.
    Verbs,
    /// `target/loom`.
    Loom,
    /// `target/bare-metal`.
    BareMetal,
    /// `target/mutate`.
    Mutate,
    /// QEMU, which emulates two processors with both of the machine's.
    Guest,
}

/// What all stages depend on.
const OF_ALL: [&str; 4] =
    ["Cargo.toml", "Cargo.lock", ".cargo/config.toml", "verify/src/stages/table.rs"];

/// How many times its budget a stage may take: machines differ, and other programs run on them.
pub const PATIENCE: u32 = 4;
/// The same of `--long`.
const LONG_PATIENCE: u32 = 200;
/// How many seconds more it may take where `--install` is given: for packages, compilers and tools, and until others have
/// installed theirs.
const INSTALLING: u32 = 900;

impl Stage {
    /// One that needs nothing, shares nothing, and runs at night.
    pub const fn new(name: &'static str, budget: u32, run: Run) -> Self {
        Self {
            name,
            shows: "",
            why: "",
            misses: "",
            long: "",
            only_by_name: "",
            budget,
            shares: &[],
            packages: &[],
            needs: "",
            of: &[],
            quick: Quick::No,
            when: When::Night,
            machines: &[Machine::X86],
            run,
        }
    }

    pub const fn shows(self, shows: &'static str) -> Self {
        Self { shows, ..self }
    }

    pub const fn why(self, why: &'static str) -> Self {
        Self { why, ..self }
    }

    pub const fn misses(self, misses: &'static str) -> Self {
        Self { misses, ..self }
    }

    pub const fn long(self, long: &'static str) -> Self {
        Self { long, ..self }
    }

    /// One that is left out where no stage is named.
    pub const fn by_name_only(self, reason: &'static str) -> Self {
        Self { only_by_name: reason, ..self }
    }

    /// With what it shares.
    pub const fn shares(self, shares: &'static [Shared]) -> Self {
        Self { shares, ..self }
    }

    pub const fn packages(self, packages: &'static [&'static [&'static str]]) -> Self {
        Self { packages, ..self }
    }

    pub const fn needs(self, needs: &'static str) -> Self {
        Self { needs, ..self }
    }

    /// With the files on which its result depends.
    pub const fn of(self, of: &'static [&'static str]) -> Self {
        Self { of, ..self }
    }

    /// As a part of the command before a commit.
    pub const fn quick(self) -> Self {
        Self { quick: Quick::Whole, ..self }
    }

    /// The same, where it looks at what changed alone.
    pub const fn quick_in_part(self) -> Self {
        Self { quick: Quick::InPart, ..self }
    }

    /// On GitHub's machines on each commit.
    pub const fn on_commits(self) -> Self {
        Self { when: When::Commit, ..self }
    }

    /// On GitHub's machines on each commit, and each night.
    pub const fn always(self) -> Self {
        Self { when: When::Always, ..self }
    }

    /// On machines of these kinds.
    pub const fn on(self, machines: &'static [Machine]) -> Self {
        Self { machines, ..self }
    }

    /// The command that runs it alone, wherever that is.
    pub fn command(&self) -> String {
        format!("cargo --locked verify --install {}", self.name)
    }

    /// When it runs on GitHub's machines, in words.
    pub fn on_github(&self) -> String {
        let when = match self.when {
            When::Commit => "each commit",
            When::Night => "each night",
            When::Always => "each commit and each night",
        };
        let arm = if self.machines.contains(&Machine::Arm) { ", also on Arm" } else { "" };
        [when, arm].concat()
    }

    /// Whether its result depends on one of these.
    pub fn is_concerned(&self, changes: &Changes) -> bool {
        changes.files().any(|file| OF_ALL.iter().chain(self.of).any(|of| matches(file, of)))
    }

    /// Whether it uses something that `other` needs.
    pub fn excludes(&self, other: &Self) -> bool {
        self.shares.iter().any(|shared| other.shares.contains(shared))
    }

    /// How long it may take before it counts as hung, where it may also have to install what it needs.
    pub fn limit(&self, long: bool, install: bool) -> Duration {
        let patience = if long { LONG_PATIENCE } else { PATIENCE };
        let installing = if install { INSTALLING } else { 0 };
        Duration::from_secs((self.budget * patience + installing).into())
    }
}

/// Whether a path begins like this, or ends as it says behind a `*`.
fn matches(path: &str, of: &str) -> bool {
    of.strip_prefix('*').map_or_else(|| path.starts_with(of), |end| path.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_concerned_by_where_a_path_begins_or_ends() {
        assert!(matches("cq-core/src/lib.rs", "cq-core/") && matches("cq-core/README.md", "*.md"));
        assert!(!matches("bench/cq-core/a.rs", "cq-core/") && !matches("a.md.rs", "*.md"));
    }
}
