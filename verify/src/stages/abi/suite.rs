//! pyverbs' own tests, as its package has them among its documents: fetched, unpacked and judged.
//!
//! None of them needs root: those that ask for it ask for Ethernet, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages;
use crate::run::{Job, Stop, root};

/// The package of what they test, and of them; where documents are not installed, as in small containers, they
/// are in the archive alone.
pub const PACKAGE: &str = "python3-pyverbs";
/// Where they lie in that.
const TESTS: &str = "usr/share/doc/rdma-core/tests";

/// The Python that has pyverbs.
pub const PROGRAM: &str = packages::PYTHON;
/// What it is told in the folder that [`put`] was given.
pub const OPTIONS: &str = "tests/run_tests.py -v";

/// So many of them must be carried out; the others are for devices with more than this one has.
pub const LEAST: usize = 83;

/// Puts the tests into the `folder`, for every user to read.
pub fn put(folder: &Path, job: &mut Job) -> Result<(), Stop> {
    let installed = Path::new("/").join(TESTS);
    let tests = if installed.join("run_tests.py").exists() { installed } else { fetched(job)? };
    let mut copy = Command::new("cp");
    copy.args(["--recursive", "--preserve=mode"]).arg(tests).arg(folder);
    job.run("cp", &mut copy)?;
    // Debian packs long files among documents.
    let all = fs::read_dir(folder.join("tests"))?.collect::<Result<Vec<_>, _>>()?;
    let packed = all.iter().map(fs::DirEntry::path);
    let packed: Vec<_> = packed.filter(|path| path.extension() == Some("gz".as_ref())).collect();
    if !packed.is_empty() {
        job.run("gzip", Command::new("gzip").arg("--decompress").args(packed))?;
    }
    Ok(())
}

/// Where the tests of the version that is installed are, fetched where that has not been done.
fn fetched(job: &mut Job) -> Result<PathBuf, Stop> {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${Version}", PACKAGE]);
    let skipped =
        |why: Stop| Stop::Skipped(format!("{why}; {PACKAGE}'s tests can't be fetched by apt-get"));
    let version = job.ask("dpkg-query", &mut query).map_err(skipped)?;
    let package = format!("{PACKAGE}={}", version.trim());
    let folder = root().join("target/verify").join(&package);
    packages::once(&folder, |to| packages::unpack(&package, to, job)).map_err(skipped)?;
    Ok(folder.join(TESTS))
}

/// How the reasons begin for which a test may be left out.
const SKIPS: &[&str] = &[
    // For another maker's device.
    "Can not run the test over non MLX5 device",
    "Could not open mlx5 context",
    "No supported port is up, can't run traffic",
    "Create Extended CQ is not supported",
    "Query device real time is not supported",
    "Can not run the test over non EFA device",
    "PCI device must be passed by the user",
    "cuda-python 12.0+ must be installed",
    // For Ethernet: the port is InfiniBand's.
    "Must be run by root on Ethernet link layer",
    "To Create RAW QP must be done by root on Ethernet link layer",
    "Link layer of port=1 is InfiniBand",
    // librdmacm has no part in this.
    "Device loop0 doesn't have net interface",
    // No index of a GID is empty.
    "All gid indices populated",
    // What the library has not, by its documentation: on-demand paging (first with large pages, if the machine has
    // them), device memory, DMA buffers, XRC, parent domains, tag matching, ibv_rereg_mr, windows of type 1,
    // importing.
    "ODP is not supported",
    "There are no huge pages of size 2M allocated",
    "Device memory is not supported",
    "Allocating dmabuf is not supported",
    "Create XRCD is not supported",
    "Parent Domain is not supported on this device",
    "Extended CQ is not supported",
    "Rereg MR is not supported",
    "Create MW is not supported",
    "Importing a device is not supported",
];

/// All passed that had to run, enough did, and each of the others says why not, and may.
pub fn judge(output: &str) -> Result<(), String> {
    let (ran, skipped) = summary(output).ok_or("not all of them passed")?;
    let reasons: Vec<&str> = output.lines().filter_map(reason).collect();
    if reasons.len() != skipped {
        return Err(format!("{} of {skipped} that were left out say why", reasons.len()));
    }
    let may = |reason: &&str| SKIPS.iter().any(|skip| reason.starts_with(skip));
    if let Some(reason) = reasons.into_iter().find(|reason| !may(reason)) {
        return Err(format!("a test was left out since \"{reason}\""));
    }
    match ran.checked_sub(skipped) {
        Some(carried_out) if carried_out >= LEAST => Ok(()),
        _ => Err(format!("{skipped} of {ran} were left out, and {LEAST} must run")),
    }
}

/// How many tests there were, and how many of them were left out, if none failed.
fn summary(output: &str) -> Option<(usize, usize)> {
    let ran = output.lines().find_map(|line| line.strip_prefix("Ran ")?.split_once(' '))?.0;
    let skipped = match output.lines().last()? {
        "OK" => "0",
        line => line.strip_prefix("OK (skipped=")?.strip_suffix(')')?,
    };
    Some((ran.parse().ok()?, skipped.parse().ok()?))
}

/// Why a test was left out, if the line tells of one that was.
fn reason(line: &str) -> Option<&str> {
    let (_, quoted) = line.rsplit_once("skipped ")?;
    let quote = quoted.chars().next().filter(|quote| ['\'', '"'].contains(quote))?;
    quoted.strip_prefix(quote)?.strip_suffix(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What they print: so many that pass, and these lines and this end.
    fn output(passed: usize, lines: &str, end: &str) -> String {
        let ran = passed + lines.lines().count();
        let passes = "test_a (tests.test_pd.PDTest.test_a) ... ok\n".repeat(passed);
        format!("{passes}{lines}\n-----\nRan {ran} tests in 0.138s\n\n{end}\n")
    }

    const LEFT_OUT: &str = "\
test_m (tests.test_mlx5_pp.PP.test_m) ... skipped 'Can not run the test over non MLX5 device'
Test Address Handles ... skipped \"Device loop0 doesn't have net interface\"
";

    #[test]
    fn they_pass_if_none_fails_enough_run_and_each_that_is_left_out_may_be_and_says_why() {
        let other = LEFT_OUT.replace("Can not run the test over non MLX5 device", "No device");
        let few = format!("2 of {} were left out, and {LEAST} must run", LEAST + 1);
        for (passed, lines, end, fault) in [
            (LEAST, LEFT_OUT, "OK (skipped=2)", ""),
            (LEAST, "", "OK", ""),
            (LEAST, LEFT_OUT, "FAILED (errors=1, skipped=2)", "not all of them passed"),
            (LEAST, LEFT_OUT, "", "not all of them passed"),
            (LEAST - 1, LEFT_OUT, "OK (skipped=2)", &few),
            (LEAST, &other, "OK (skipped=2)", "a test was left out since \"No device\""),
            (LEAST, LEFT_OUT, "OK (skipped=3)", "2 of 3 that were left out say why"),
        ] {
            let all = output(passed, lines, end);
            assert_eq!(judge(&all).err().unwrap_or_default(), fault);
            assert!(judge(&all[..all.len() / 2]).is_err(), "they do not end");
        }
        assert!(judge("").is_err());
    }
}
