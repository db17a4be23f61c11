//! Subcommands of cargo that stages run, each of a fixed version: what they find depends on the commit alone.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Job, Stop, cargo};

/// A subcommand of cargo that is built from crates.io where it is missing.
pub struct Tool {
    pub name: &'static str,
    pub version: &'static str,
}

pub const NEXTEST: Tool = Tool { name: "cargo-nextest", version: "0.9.151" };
pub const HACK: Tool = Tool { name: "cargo-hack", version: "0.6.46" };
pub const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };
pub const FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2" };
pub const SEMVER_CHECKS: Tool = Tool { name: "cargo-semver-checks", version: "0.51.0" };

impl Tool {
    /// Has cargo build it into `target/tools` where it is missing. One of this very version that is on `PATH` will do.
    ///
    /// Two stages that lack the same one both build it: the later replaces that of the earlier.
    pub fn install(&self, job: &mut Job) -> Result<(), Stop> {
        let Self { name, version } = self;
        let subcommand = name.trim_start_matches("cargo-");
        let mut ask = cargo(&[subcommand, "--version"]);
        // Where there is none, cargo says so, and lists others.
        let said = job.ask(&format!("{name} --version"), with_tools(&mut ask)).unwrap_or_default();
        if self.says(&said) {
            return Ok(());
        }
        let mut install = cargo(&["install", name, "--locked", "--debug", "--version", version]);
        install.arg("--root").arg(root()).env("CARGO_PROFILE_DEV_DEBUG", "0");
        let what = format!("cargo install {name}");
        job.run(&what, &mut install).map(drop).map_err(|why| {
            let by_hand = format!("cargo install {name} --locked --version {version}");
            Stop::Skipped(format!("{why}; by hand: {by_hand}"))
        })
    }

    /// Whether this is what it says of its version.
    fn says(&self, said: &str) -> bool {
        said.split_whitespace().take(2).eq([self.name, self.version])
    }
}

/// Has this cargo find them.
pub fn with_tools(cargo: &mut Command) -> &mut Command {
    let mut path = root().join("bin").into_os_string();
    if let Some(others) = env::var_os("PATH") {
        path.extend([OsString::from(":"), others]);
    }
    cargo.env("PATH", path)
}

/// Where they are installed; for a copy of the workspace in which a fault is planted, too.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("tools")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_version_of_a_tool_will_do() {
        let tool = Tool { name: "cargo-deny", version: "0.20.2" };
        assert!(tool.says("cargo-deny 0.20.2 (6b3f99457 2026-11-02)\nrelease: 0.20.2\n"));
        for other in ["", "cargo-deny 0.20.20\n", "cargo-hack 0.20.2\n"] {
            assert!(!tool.says(other), "{other}");
        }
    }
}
