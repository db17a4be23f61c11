//! The Debian packages that a stage needs: found, installed where that is allowed, or asked for; or unpacked only.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use crate::run::{Job, Stop, root};

/// Who installs something holds this file, relative to the workspace's root.
const LOCK: &str = "target/verify/packages.lock";

/// Sees to it that all `wanted` are installed, or skips the stage with what to do about it.
pub fn ensure(wanted: &[&str], job: &mut Job) -> Result<(), Stop> {
    if missing_of(wanted)?.is_empty() {
        return Ok(());
    }
    // Stages run side by side: what one waits for here, another may have installed by then.
    let _lock = lock()?;
    let missing = missing_of(wanted)?;
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    let Some(prefix) = installer() else {
        let why = format!("packages are missing: sudo apt-get install {names}");
        return Err(Stop::Skipped(why));
    };
    let mut install = || {
        job.run("apt-get update", &mut apt_get(prefix, &["update"]))?;
        let mut install = apt_get(prefix, &["install", "-y", "--no-install-recommends"]);
        job.run(&format!("apt-get install {names}"), install.args(&missing))
    };
    install()
        .map(drop)
        .map_err(|stop| Stop::Skipped(format!("{stop}; by hand: sudo apt-get install {names}")))
}

/// Waits until no other stage installs anything, and lets none as long as the file is open.
pub fn lock() -> io::Result<File> {
    let lock = File::create(root().join(LOCK))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

/// Those that are not installed; a reason to skip where nobody can tell.
fn missing_of<'a>(wanted: &[&'a str]) -> Result<Vec<&'a str>, Stop> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${Package} ${db:Status-Status}\n"]).args(wanted);
    // It fails where a package is unknown to it: the listing says the same.
    let Ok(output) = query.output() else {
        let wanted = wanted.join(" ");
        return Err(Stop::Skipped(format!("needs Debian's {wanted}; there is no dpkg here")));
    };
    Ok(missing(wanted, &String::from_utf8_lossy(&output.stdout)))
}

fn missing<'a>(wanted: &[&'a str], listing: &str) -> Vec<&'a str> {
    let is_there = |name: &&str| listing.lines().any(|line| line == format!("{name} installed"));
    wanted.iter().copied().filter(|name| !is_there(name)).collect()
}

/// What to put before apt-get so that it may install; none where we may not.
fn installer() -> Option<&'static [&'static str]> {
    if !succeeds("apt-get", &["--version"]) {
        return None;
    }
    if geteuid().is_root() {
        return Some(&[]);
    }
    succeeds("sudo", &["-n", "true"]).then_some(&["sudo", "-n"])
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
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
    fn a_removed_or_unknown_package_or_one_that_ends_alike_is_missing() {
        let listing = "rustc-web installed\ncargo-web config-files\n";
        let wanted = ["rustc-web", "cargo-web", "rust-web-src", "web"];
        assert_eq!(missing(&wanted, listing), wanted[1..]);
    }

    #[test]
    fn apt_get_runs_unattended_with_and_without_sudo() {
        let words = |command: Command| format!("{command:?}").replace('"', "");
        let plain = "env DEBIAN_FRONTEND=noninteractive apt-get update";
        assert_eq!(words(apt_get(&[], &["update"])), plain);
        assert_eq!(words(apt_get(&["sudo", "-n"], &["update"])), format!("sudo -n {plain}"));
    }
}
