//! Tests of crates over libibverbs and librdmacm, as they are published, by version: fetched, built, run and judged.
//!
//! What is fetched and built stays under `target/verify/crates`.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::meeting::Place;
use super::side::Said;
use super::{Fabric, Round, last_words};
use crate::guest::Program;
use crate::packages;
use crate::run::{Job, Stop, cargo, flags, root};
use crate::stages::{artifacts, libibverbs, libtest};

/// What some of them are built with, beside what libibverbs' bindings need.
pub const PACKAGES: &[&str] = &["cmake"];

/// A published crate, and what its tests must show.
struct Crate {
    name: &'static str,
    version: &'static str,
    /// Which of its programs are built, in cargo's words.
    targets: &'static str,
    /// Which of these are no tests: they must end well.
    examples: &'static [&'static str],
    /// The environment that they need.
    variables: &'static [&'static str],
    /// So many tests must pass.
    least: u32,
    /// Which tests fail, and why they may.
    exceptions: &'static [Exception],
}

/// A test that fails, and the reason.
type Exception = (&'static str, &'static str);

const CRATES: &[Crate] = &[
    Crate {
        name: "sideway",
        version: "0.4.3",
        targets: "--lib --test test_*",
        examples: &[],
        variables: &[],
        least: 67,
        exceptions: &[(
            "ibverbs::device::tests::test_iterations",
            "asks for the names of devices that it made by itself",
        )],
    },
    Crate {
        name: "ibverbs",
        version: "0.9.2",
        targets: "--lib --example loopback",
        examples: &["loopback"],
        variables: &[],
        least: 2,
        exceptions: &[],
    },
    Crate {
        name: "ibverbs-rs",
        version: "0.4.1",
        targets: "--lib",
        examples: &[],
        variables: &[],
        least: 88,
        exceptions: &[],
    },
    Crate {
        name: "ruapc-rdma",
        version: "0.2.0-alpha.7",
        targets: "--lib",
        examples: &[],
        variables: &[],
        least: 129,
        exceptions: &[
            (
                "verbs::context::gid::backend::tests::ioctl_gid_entry_does_not_need_sysfs",
                BY_NETLINK,
            ),
            ("verbs::context::gid::tests::gid_table_matches_per_index_queries", BY_NETLINK),
        ],
    },
    Crate {
        name: "async-rdma",
        version: "0.5.0",
        targets: "--lib --tests",
        examples: &[],
        variables: &["RXE_LOOP_IMITATE=rxe"],
        least: 50,
        exceptions: &[("context::tests::test1", "asks `rdma link` which devices there are")],
    },
];

const BY_NETLINK: &str = "asks the kernel by netlink for the device's driver";

/// Where they are fetched and built.
const HOME: &str = "target/verify/crates";

/// Runs them all, in this round: how many tests passed of each.
pub fn run(round: &Round, folder: &Path, job: &mut Job) -> Result<String, Stop> {
    packages::ensure(libibverbs::PACKAGES, job)?;
    packages::ensure(PACKAGES, job)?;
    let mut summary = String::new();
    for published in CRATES {
        let tests = published.tests(round, folder, job)?;
        summary += &format!("\n{published}: {tests} tests");
        for (test, reason) in published.exceptions {
            summary += &format!(", without {test}, which {reason}");
        }
    }
    Ok(summary)
}

impl Crate {
    /// Fetches, builds and runs its tests: how many passed.
    fn tests(&self, round: &Round, folder: &Path, job: &mut Job) -> Result<u32, Stop> {
        let home = self.fetched(job)?;
        let programs = self.built(&home, job)?;
        let mut one = |program: &Program, words: &[&str]| {
            let place = Place { folder, round, fabric: Fabric::new() };
            let said = self.start(program, words, &home, &place, job)?;
            let gone = place.fabric.check_gone();
            Ok::<_, Stop>((said, gone))
        };
        let mut passed = 0;
        for program in &programs {
            let is_test = !self.examples.contains(&program.name.as_str());
            let (said, gone) = one(program, &if is_test { self.all() } else { Vec::new() })?;
            let judged = ended_well(&said).and(gone);
            judged.map_err(|why| self.fault(&program.name, &why, &said))?;
            passed += if is_test { libtest::passed(&said.output) } else { 1 };
        }
        for (test, _) in self.exceptions {
            let mut fails = false;
            for program in &programs {
                fails |= ended_well(&one(program, &["--exact", test])?.0).is_err();
            }
            if !fails {
                return Err(Stop::Failed(format!(
                    "{self}: {test} passes, or is none of its tests"
                )));
            }
        }
        enough(passed, self.least).map_err(|why| Stop::Failed(format!("{self}: {why}")))?;
        Ok(passed)
    }

    /// What a program of tests is told: to run all but the exceptions.
    fn all(&self) -> Vec<&'static str> {
        let skips = self.exceptions.iter().flat_map(|(test, _)| ["--skip", test]);
        ["--exact"].into_iter().chain(skips).collect()
    }

    fn fault(&self, program: &str, why: &str, said: &Said) -> Stop {
        Stop::Failed(format!("{self}, {program}: {why}{}", last_words(&said.output)))
    }

    /// Where its sources are, fetched where that has not been done.
    fn fetched(&self, job: &mut Job) -> Result<PathBuf, Stop> {
        let folder = root().join(HOME).join(format!("{}-{}", self.name, self.version));
        let id = format!("{}@{}", self.name, self.version);
        let mut fetch = || {
            job.run(&format!("cargo info {id}"), &mut cargo(&["info", &id]))?;
            let fetched = self.in_registry()?;
            packages::once(&folder, |to| {
                let mut copy = Command::new("cp");
                copy.args(["--recursive", "--no-target-directory"]).arg(fetched).arg(to);
                job.run("cp", &mut copy)?;
                // It is none of the packages of the workspace around it.
                let mut manifest = File::options().append(true).open(to.join("Cargo.toml"))?;
                Ok(writeln!(manifest, "\n[workspace]")?)
            })
        };
        if !folder.exists() {
            fetch().map_err(|stop| Stop::Skipped(format!("{stop}; {id} can't be fetched")))?;
        }
        Ok(folder)
    }

    /// Where cargo unpacks it.
    fn in_registry(&self) -> io::Result<PathBuf> {
        let user = || env::home_dir().map(|home| home.join(".cargo"));
        let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(user);
        let registries = fs::read_dir(home.unwrap_or_default().join("registry/src"))?;
        let name = format!("{}-{}", self.name, self.version);
        let mut places =
            registries.map_while(Result::ok).map(|registry| registry.path().join(&name));
        places
            .find(|place| place.exists())
            .ok_or_else(|| io::Error::other("cargo did not unpack it"))
    }

    /// Its programs.
    fn built(&self, home: &Path, job: &mut Job) -> Result<Vec<Program>, Stop> {
        let words = format!("test --no-run --locked {}", self.targets);
        let cargo = cargo(&words.split_whitespace().collect::<Vec<_>>());
        // Cargo reads the configuration of the folder that it is in.
        let mut command = Command::new("env");
        command.arg("--chdir").arg(home).arg(cargo.get_program()).args(cargo.get_args());
        command.env("CARGO_TERM_COLOR", "never").env_remove("CARGO_ENCODED_RUSTFLAGS");
        // A newer compiler may deny what was no fault when it was published.
        command.env("RUSTFLAGS", flags("RUSTFLAGS", "--cap-lints=warn"));
        command.env("CARGO_TARGET_DIR", root().join(HOME).join("target"));
        libibverbs::with_libclang(&mut command);
        let messages = artifacts::build(job, &format!("cargo {words} of {self}"), &mut command)?;
        Ok(artifacts::executables(&messages))
    }

    fn start(
        &self,
        program: &Program,
        words: &[&str],
        home: &Path,
        place: &Place<'_>,
        job: &mut Job,
    ) -> Result<Said, Stop> {
        let what = format!("{self}: {} {}", program.name, words.join(" "));
        job.announce(&what);
        let (home, path) = (home.to_string_lossy(), program.path.to_string_lossy());
        let before = ["env", "--chdir", &home].into_iter().chain(self.variables.iter().copied());
        let all = before.chain([&*path]).chain(words.iter().copied()).map(str::to_owned);
        let said = place.run(&all.collect::<Vec<_>>())?;
        job.log(&format!("$ {what}\n{}", said.output))?;
        Ok(said)
    }
}

impl fmt::Display for Crate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

fn ended_well(said: &Said) -> Result<(), String> {
    let status = said.end.ok_or("its time was over")?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

fn enough(passed: u32, least: u32) -> Result<(), String> {
    let few = || format!("{passed} tests pass, and {least} must");
    (passed >= least).then_some(()).ok_or_else(few)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tests_run_but_those_of_the_list() {
        let published = Crate { exceptions: &[("a::b", "why"), ("c", "why")], ..CRATES[0] };
        assert_eq!(published.all(), ["--exact", "--skip", "a::b", "--skip", "c"]);
        assert_eq!(Crate { exceptions: &[], ..CRATES[0] }.all(), ["--exact"]);
    }

    #[test]
    fn fewer_tests_than_must_pass_are_a_fault() {
        assert_eq!(enough(2, 2), Ok(()));
        assert_eq!(enough(1, 2).unwrap_err(), "1 tests pass, and 2 must");
    }
}
