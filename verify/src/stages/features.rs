//! Each feature of each library by itself, none, and all, by cargo-hack and the oldest compiler that is promised.

use super::tools::{HACK, with_tools};
use super::{libibverbs, toolchain};
use crate::run::{Job, Stop, with_flags};

/// Of the packages that may be published: others are passed over, since `--no-private` would edit the manifests that other
/// stages read.
const EACH: [&str; 6] =
    ["hack", "check", "--locked", "--workspace", "--ignore-private", "--each-feature"];

/// Checks them all.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    HACK.install(job)?;
    let version = env!("CARGO_PKG_RUST_VERSION");
    let compiler = toolchain::ensure(job, version, &[])?;
    let mut check = with_flags(toolchain::cargo(version), "-Dwarnings", "features");
    with_tools(libibverbs::with_libclang(check.args(EACH)));
    let said = job.run("cargo hack check --each-feature", &mut check)?;
    match said.lines().filter(|line| line.starts_with("info: running ")).count() {
        0 => Err(Stop::Failed("cargo-hack checked nothing".into())),
        sets => Ok(format!("{sets} sets of features by {compiler}")),
    }
}
