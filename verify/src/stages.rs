//! The table of stages, and what each one runs and demands.

use std::process::Command;
use std::time::Duration;

use crate::guest;
use crate::run::{Job, Stop, cargo, processors};

mod abi;
mod api;
mod artifacts;
mod bare_metal;
#[cfg(test)]
mod checks;
mod conformance;
mod differential;
mod doc;
mod exports;
mod fabric;
mod fuzz;
mod layers;
mod layout;
mod libibverbs;
pub mod libtest;
mod loom;
mod markdown;
mod miri;
mod package;
mod planted;
mod positions;
mod preload;
mod processors;
mod readme;
mod sanitizers;
mod soft_roce;
mod toolchain;
mod verbs;

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
    /// How many seconds it may take on two processors that run the other stages meanwhile.
    pub budget: u32,
    /// What only one stage at a time can use. A target directory that is built in once more, but in vain, is not
    /// listed: cargo waits for it.
    pub shares: &'static [Shared],
    /// The Debian packages without which it cannot run, by what they are for.
    pub packages: &'static [&'static [&'static str]],
    /// Runs it. Of the words returned, the first line stands behind its name in the report, and the others below for who
    /// asked for this stage by its name.
    pub run: Run,
}

/// What runs a stage.
pub type Run = fn(&mut Job) -> Result<String, Stop>;

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
    /// QEMU, which emulates two processors with both of the machine's; the names of devices on its own kernel.
    Guest,
}

/// How many times its budget a stage may take: machines differ, and other programs run on them.
const PATIENCE: u32 = 4;
/// The same of `--long`.
const LONG_PATIENCE: u32 = 200;

impl Stage {
    /// One that shares nothing, and needs no package.
    pub const fn new(name: &'static str, budget: u32, run: Run) -> Self {
        let (shows, why, misses, long) = ("", "", "", "");
        Self { name, shows, why, misses, long, budget, shares: &[], packages: &[], run }
    }

    const fn shows(self, shows: &'static str) -> Self {
        Self { shows, ..self }
    }

    const fn why(self, why: &'static str) -> Self {
        Self { why, ..self }
    }

    const fn misses(self, misses: &'static str) -> Self {
        Self { misses, ..self }
    }

    const fn long(self, long: &'static str) -> Self {
        Self { long, ..self }
    }

    /// With what it shares.
    pub const fn shares(self, shares: &'static [Shared]) -> Self {
        Self { shares, ..self }
    }

    const fn packages(self, packages: &'static [&'static [&'static str]]) -> Self {
        Self { packages, ..self }
    }

    /// Whether it uses something that `other` needs.
    pub fn excludes(&self, other: &Self) -> bool {
        self.shares.iter().any(|shared| other.shares.contains(shared))
    }

    /// How long it may take before it counts as hung.
    pub fn limit(&self, long: bool) -> Duration {
        let patience = if long { LONG_PATIENCE } else { PATIENCE };
        Duration::from_secs((self.budget * patience).into())
    }
}

/// All stages, in the order in which they start: what others wait for, and then what takes longest.
pub static STAGES: [Stage; 23] = [
    Stage::new("fmt", 5, fmt)
        .shows("every file is formatted by rustfmt")
        .why("differences of format hide the others"),
    Stage::new("layers", 5, layers::run)
        .shows("in verify/layers.toml's crates a module uses only those below it")
        .why("a dependency upwards joins two layers")
        .misses("paths by `super`; what an imported name leads to"),
    Stage::new("layout", 60, layout::run)
        .shows("the C ABI has the structures, constants and symbols of libibverbs and librdmacm")
        .why("a wrong offset silently corrupts programs")
        .shares(&[Shared::Checker])
        .packages(&[layout::PACKAGES]),
    Stage::new("verbs", 270, verbs::run)
        .shows("tests that need libibverbs pass, also on the loopback")
        .why("the binding is tested without a device")
        .shares(&[Shared::Verbs])
        .packages(&[libibverbs::PACKAGES]),
    Stage::new("loom", 300, loom::run)
        .shows("models of the engine's protocols hold in every interleaving, and fail when weakened")
        .why("no test on x86 detects a missing memory ordering")
        .long("three preemptions in large models, too")
        .shares(&[Shared::Loom]),
    Stage::new("test", 580, test)
        .shows("unit, integration and documentation tests pass")
        .why("the suite can't kill processes, corrupt memory or fail system calls")
        .long("thousands of kills, corrupted fabrics and random inputs, also without debug assertions")
        .shares(&[Shared::Debug]),
    Stage::new("soft-roce", 390, soft_roce::run)
        .shows("transport-verbs works on Linux' Soft-RoCE driver, on this machine's kernel where that has it (with `--install`, by root) or else in QEMU, and between two hosts; connecting by addresses differs from the loopback only as listed")
        .why("only an independent driver detects mistakes that loopback and model share")
        .shares(&[Shared::Guest])
        .packages(&[libibverbs::PACKAGES, guest::PACKAGES, soft_roce::PACKAGES]),
    Stage::new("mutate", 150, mutate)
        .shows("each control, a wrong step of a protocol, fails its loom models")
        .why("a check that detects nothing looks like one that passes")
        .misses("without `--long`, what no control weakens")
        .long("each mutant of engine and device fails a check, or has a listed reason")
        .shares(&[Shared::Mutate]),
    Stage::new("clippy", 180, clippy)
        .shows("no target has a warning")
        .why("lints require documented unsafe blocks and the minimum Rust version")
        .shares(&[Shared::Verbs])
        .packages(&[libibverbs::PACKAGES]),
    Stage::new("conformance", 125, conformance::run)
        .shows("every transport follows each rule of the contract, except for listed deviations")
        .why("the suite is the specification: every rule on every transport, including a real driver")
        .shares(&[Shared::Guest, Shared::Checker]),
    Stage::new("bare-metal", 200, bare_metal::run)
        .shows("firmware libraries compile for Cortex-M, RISC-V and bare 64-bit targets, without `alloc` from core alone; the example firmware runs on Cortex-M and RISC-V in QEMU, also under embassy and RTIC, and hangs if it can lose a wake-up")
        .why("std, a 64-bit atomic or a missed interrupt excludes firmware")
        .shares(&[Shared::BareMetal])
        .packages(&[bare_metal::PACKAGES]),
    Stage::new("abi", 150, abi::run)
        .shows("programs run unchanged on the loopback: ibverbs-utils, perftest, pyverbs' tests, rdmacm-utils, qperf, fio, libfabric, uDAPL, UCX, Open MPI, every entry of librpma")
        .why("programs use verbs in ways that our tests do not")
        .long("tests of five crates, UCX's own over RC and UD, eight ranks of Open MPI, nixl, Mooncake, gloo")
        .shares(&[Shared::Checker])
        .packages(&[abi::PACKAGES]),
    Stage::new("package", 100, package::run)
        .shows("a dry run publishes the libraries in order; each builds from its package alone, and all together with all features, by the oldest promised compiler; manifests and the tables of features are complete")
        .why("in the workspace a newer compiler finds every file: there nobody notices a package that lacks one, or a younger feature of Rust")
        .long("each feature by itself")
        .packages(&[libibverbs::PACKAGES]),
    Stage::new("api", 1200, api::run)
        .shows("each library's public API is as in verify/api, breaks nothing without a new minor version, names only listed foreign crates, loses nothing with more features")
        .why("items, auto traits and foreign crates' versions change unnoticed")
        .misses("what is behind a signature; features in pairs")
        .packages(&[libibverbs::PACKAGES]),
    Stage::new("doc", 110, doc::run)
        .shows("the documentation builds without a warning, by default and as docs.rs renders it; its links and those of all pages resolve; what is read first is short")
        .why("links break when names change")
        .long("that of private modules, too")
        .shares(&[Shared::Verbs])
        .packages(&[libibverbs::PACKAGES]),
    Stage::new("readme", 300, readme::run)
        .shows("the README's examples of a terminal and the programs of its tables succeed, and print what it shows")
        .why("they are the first thing that a user tries")
        .long("transport-verbs with libclang from PyPI, as on Debian 13")
        .shares(&[Shared::Debug])
        .packages(&[readme::PACKAGES]),
    Stage::new("differential", 40, differential::run)
        .shows("random programs agree on model and loopback, also between processes and through the C ABI")
        .why("random programs find what the suite's cases do not")
        .long("tens of thousands")
        .shares(&[Shared::Checker]),
    Stage::new("miri", 600, miri::run)
        .shows("the engine's tests of queues, raw memory, channels and accounting do nothing undefined")
        .why("neither tests nor models see invalid reads and references")
        .misses("mapped memory, so the device; ppoll(2), level-triggered epoll(7), sockets; rings of millions of slots; compiled code")
        .long("64 seeds; counters, handlers, ends, completions, requests"),
    Stage::new("sanitizers", 200, sanitizers::run)
        .shows("no races in engine and device (ThreadSanitizer); the C ABI touches only its own memory and leaks nothing in programs of `abi` (AddressSanitizer, LeakSanitizer)")
        .why("Miri can't run C and most system calls")
        .misses("orderings by fences alone; races between processes; uninitialised reads; tests in which messages race for memory")
        .long("sixteen times the cases of properties; all programs")
        .packages(&[abi::PACKAGES]),
    Stage::new("fuzz", 200, fuzz::run)
        .shows("no bytes from a hostile process, peer, option, file or C caller end or hang a program")
        .why("tests have only inputs that somebody thought of")
        .misses("what ten seconds a target do not reach; two hostile processes at once")
        .long("an hour a target"),
    Stage::new("processors", 400, processors::run)
        .shows("the engine's tests pass on 64-bit Arm, and on 32-bit without 64-bit atomics; layouts and byte orders on big-endian s390x; the device's suite on 64-bit Arm")
        .why("a wrong width or byte order is right on x86")
        .misses("weak orderings, if emulated on x86; system calls that QEMU lacks")
        .long("all device tests that QEMU can run")
        .packages(&[processors::PACKAGES]),
    Stage::new("positions", 60, positions::run)
        .shows("entries, generations, free slots and releases are right at every wrap, in rings of 1 to 2¹⁶ slots")
        .why("a position wraps once in years")
        .misses("larger rings, which have one test each")
        .long("a hundred times the cases")
        .shares(&[Shared::Debug]),
    Stage::new("planted", 5, planted::run)
        .shows("each fault of verify/planted.toml can be planted")
        .why("checks must detect real faults")
        .misses("without `--long`, whether it is found")
        .long("its stage finds each"),
];

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
        let Stage { name, shows, why, misses, long, budget, .. } = stage;
        let limit = stage.limit(false).as_secs();
        let line = |head, text: &str| match text {
            "" => String::new(),
            text => format!("  {head}{text}\n"),
        };
        let (misses, long) = (line("not: ", misses), line("--long: ", long));
        format!(
            "{name}: {shows}\n  since {why}\n{misses}{long}  {budget} s, ended after {limit} s\n"
        )
    };
    STAGES.iter().map(details).collect()
}

fn fmt(job: &mut Job) -> Result<String, Stop> {
    let arguments = ["fmt", "--all", "--check", "--", "--color", "never"];
    job.run("cargo fmt", &mut cargo(&arguments))?;
    // Workspaces of their own, each of one package: `--all` would format what those depend on once more.
    for manifest in [
        "bench/firmware/Cargo.toml",
        "cq-core/examples/firmware/Cargo.toml",
        "verify/fuzz/Cargo.toml",
    ] {
        let mut fmt = cargo(&["fmt", "--manifest-path", manifest]);
        job.run(&format!("cargo fmt of {manifest}"), fmt.args(&arguments[2..]))?;
    }
    Ok("formatted".into())
}

/// What is off by default, and has lines and links of its own.
const OPTIONAL: &str = "cq-core/async,cq-verbs/defmt,cq-verbs/heapless,cq-verbs/tokio,cq-testing/std,\
    transport-rxe-loop/serde,transport-rxe-loop/tracing,transport-verbs/tracing";

fn clippy(job: &mut Job) -> Result<String, Stop> {
    let words = format!(
        "clippy {} --all-targets --features {OPTIONAL} -- -D warnings",
        libibverbs::WORKSPACE
    );
    job.run("cargo clippy", &mut libibverbs::cargo(&words))?;
    Ok("no warnings".into())
}

fn test(job: &mut Job) -> Result<String, Stop> {
    let mut tests = cargo(&["test"]);
    // They mostly wait: for timers, and for other processes.
    tests.env("RUST_TEST_THREADS", (3 * processors()).to_string());
    tests.env("RUSTDOC", concat!(env!("CARGO_MANIFEST_DIR"), "/src/stages/rustdoc.sh"));
    let output = job.run("cargo test", &mut tests)?;
    if output.lines().any(|line| line.starts_with("warning: ")) {
        // Clippy sees everything with libibverbs only.
        return Err(Stop::Failed("the compiler warns where libibverbs is left out".into()));
    }
    if job.long {
        // What happens in between is another matter without debug assertions.
        let mut fast = cargo(&["test", "--release", "-p", "transport-rxe-loop", "--lib"]);
        libtest::run("cargo test --release of the device", &mut fast, job)?;
    }
    Ok(format!("{} tests; {}", libtest::passed(&output), libtest::ignored(&output)))
}

/// What plants them.
const MUTATE: &str = "verify-mutate";

/// Faults that are planted one at a time, mechanically or by hand, and what notices them, by the package
/// `verify-mutate`: the controls of the loom models, and with `--long` all mutants.
fn mutate(job: &mut Job) -> Result<String, Stop> {
    // With this package, so that what both are made of is built once.
    let words = ["--profile", "checker", "-p", "verify", "-p", MUTATE, "--bin", MUTATE];
    let built = artifacts::build(job, "cargo build", cargo(&["build"]).args(words))?;
    let program = artifacts::executables(&built).into_iter().find(|it| it.name == MUTATE);
    let program = program.ok_or(Stop::Failed("cargo built no tool".into()))?;
    let tool = || Command::new(&program.path);
    let controls = job.run("planting controls", tool().arg("--controls"))?;
    let summary = last_line(&controls)?.to_owned();
    if !job.long {
        return Ok([&summary, controls.trim_end()].join("\n"));
    }
    let mutants = job.run("planting mutants", tool().arg("--long"))?;
    let summary = format!("{}; {summary}", last_line(&mutants)?);
    Ok([&summary, controls.trim_end(), mutants.trim_end()].join("\n"))
}

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
    use super::*;

    #[test]
    fn stages_exclude_each_other_by_what_they_share() {
        let excludes = |a, b| named(a).unwrap().excludes(named(b).unwrap());
        assert!(excludes("doc", "clippy") && excludes("conformance", "soft-roce"));
        assert!(!excludes("loom", "test") && !excludes("fmt", "fmt"));
    }

    #[test]
    fn every_stage_can_end_in_time() {
        for stage in &STAGES {
            let times =
                [Duration::from_secs(stage.budget.into()), stage.limit(false), stage.limit(true)];
            assert!(times.is_sorted_by(|a, b| a < b), "{}", stage.name);
        }
    }
}
