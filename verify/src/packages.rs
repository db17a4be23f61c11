//! What a stage needs beside Rust: found, installed where that was asked for, or named with what brings it; or unpacked only.
//!
//! | module | owns |
//! |---|---|
//! | `found` | the table of what is needed, and how it is found |

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

#[cfg(test)]
pub use self::found::all;
pub use self::found::{PYTHON, find, program};
use self::found::{distributions, package};
use crate::run::{Job, Stop, quietly, root};

mod found;

/// Who installs something holds this file, relative to the workspace's root.
const LOCK: &str = "target/verify/packages.lock";

/// Sees to it that what these packages of Debian bring is there, by installing them where `--install` is given. Otherwise the
/// stage is skipped, and says what is missing.
pub fn ensure(wanted: &[&str], job: &mut Job) -> Result<(), Stop> {
    let missing = missing_of(wanted);
    if missing.is_empty() {
        return Ok(());
    }
    if !job.install {
        return Err(Stop::Skipped(told(&missing, &distributions())));
    }
    // Stages run side by side: what one waits for here, another may have installed by then.
    let _lock = lock()?;
    let missing = missing_of(wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let skipped =
        |why: String| Stop::Skipped(format!("{why}; {}", told(&missing, &distributions())));
    let prefix = installer().map_err(skipped)?;
    let names = missing.join(" ");
    let mut install = || {
        job.run("apt-get update", &mut apt_get(prefix, &["update"]))?;
        let mut install = apt_get(prefix, &["install", "-y", "--no-install-recommends"]);
        job.run(&format!("apt-get install {names}"), install.args(&missing))
    };
    install().map_err(|stop| skipped(stop.to_string()))?;
    match missing_of(&missing)[..] {
        [] => Ok(()),
        [name, ..] => {
            let sought = package(name).sought();
            Err(Stop::Failed(format!("{name} is installed, and {sought} is not there")))
        }
    }
}

/// What is missing, and how to have it: by the names of this system where they are known, and Debian's.
fn told(missing: &[&str], distributions: &[String]) -> String {
    let sought: Vec<_> = missing.iter().map(|name| package(name).sought()).collect();
    let is = |name: &str| distributions.iter().any(|it| it == name);
    let by = match ["fedora", "arch"].into_iter().find(|name| is(name)) {
        None if is("debian") => format!("sudo apt-get install {}, or --install", missing.join(" ")),
        None => format!("Debian's packages: {}", missing.join(" ")),
        Some(distribution) => {
            let name =
                |name: &&str| package(name).elsewhere(distribution).unwrap_or("?").to_owned();
            let mut names: Vec<_> = missing.iter().map(name).collect();
            names.dedup();
            let (names, debians) = (names.join(" "), missing.join(" "));
            format!("{distribution}'s packages, not tried: {names} (Debian's: {debians})")
        }
    };
    format!("missing: {}; {by}", sought.join(", "))
}

/// Waits until no other stage installs anything, and lets none as long as the file is open.
pub fn lock() -> io::Result<File> {
    let lock = File::create(root().join(LOCK))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

/// Those of which nothing is there.
fn missing_of<'a>(wanted: &[&'a str]) -> Vec<&'a str> {
    let mut missing: Vec<_> = wanted.to_vec();
    missing.sort_unstable();
    missing.dedup();
    missing.retain(|name| find(name).is_none());
    missing
}

/// What to put before apt-get so that it may install; why it can't.
fn installer() -> Result<&'static [&'static str], String> {
    if program("apt-get").is_none() {
        return Err("--install knows apt-get alone, which is not here".into());
    }
    if geteuid().is_root() {
        return Ok(&[]);
    }
    match quietly(Command::new("sudo").args(["-n", "true"])) {
        Ok(()) => Ok(&["sudo", "-n"]),
        Err(why) => Err(format!("--install needs root, or a sudo that asks no password ({why})")),
    }
}

fn apt_get(prefix: &[&str], arguments: &[&str]) -> Command {
    // Through env, since sudo hands on no environment of ours.
    let words = [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], arguments].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

/// Has `make` fill the folder where that has not been done. It gets its name when it is complete.
pub fn once(folder: &Path, make: impl FnOnce(&Path) -> Result<(), Stop>) -> Result<(), Stop> {
    if !folder.exists() {
        let parts = PathBuf::from(format!("{}.part", folder.display()));
        if parts.exists() {
            fs::remove_dir_all(&parts)?;
        }
        fs::create_dir_all(&parts)?;
        make(&parts)?;
        fs::rename(parts, folder)?;
    }
    Ok(())
}

/// Fetches a package that is not to be installed, and unpacks it into the folder `to`.
pub fn unpack(package: &str, to: &Path, job: &mut Job) -> Result<(), Stop> {
    let mut download = Command::new("env");
    download.arg("--chdir").arg(to).args(["apt-get", "download", package]);
    job.run(&format!("apt-get download {package}"), &mut download)?;
    let archive = only(to, |name| name.ends_with(".deb"))?;
    job.run("dpkg -x", Command::new("dpkg").arg("-x").arg(&archive).arg(to))?;
    Ok(fs::remove_file(archive)?)
}

/// The one entry of `folder`, in an unpacked package, whose name is as wanted.
pub fn only(folder: &Path, wanted: impl Fn(&str) -> bool) -> io::Result<PathBuf> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut found = entries.iter().filter(|entry| wanted(&entry.file_name().to_string_lossy()));
    match (found.next(), found.next()) {
        (Some(entry), None) => Ok(entry.path()),
        _ => {
            let shown = folder.strip_prefix(root()).unwrap_or(folder).display();
            Err(io::Error::other(format!("{shown} does not hold what its package should")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_what_brings_it() {
        let told = |distribution: &str| told(&["perftest", "dapl2-utils"], &[distribution.into()]);
        assert_eq!(
            told("debian"),
            "missing: ib_send_bw, dtest; sudo apt-get install perftest dapl2-utils, or --install"
        );
        assert_eq!(
            told("void"),
            "missing: ib_send_bw, dtest; Debian's packages: perftest dapl2-utils"
        );
        assert_eq!(
            told("fedora"),
            "missing: ib_send_bw, dtest; fedora's packages, not tried: perftest ? (Debian's: perftest dapl2-utils)"
        );
    }

    #[test]
    fn apt_get_runs_unattended_with_and_without_sudo() {
        let words = |command: Command| format!("{command:?}").replace('"', "");
        let plain = "env DEBIAN_FRONTEND=noninteractive apt-get update";
        assert_eq!(words(apt_get(&[], &["update"])), plain);
        assert_eq!(words(apt_get(&["sudo", "-n"], &["update"])), format!("sudo -n {plain}"));
    }
}
