//! Processes whose mounts are their own.

use std::io::Write;
use std::process::Command;

/// Prints why a test cannot run; under CI it has to run.
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "CI has to be able to: {why}");
    // Not by `eprintln`, of which a test that passes shows nothing.
    writeln!(std::io::stderr(), "skipped: {why}").unwrap();
}

/// A command that executes this binary once a script has changed what is mounted, as root there. What is added to it are
/// arguments of the binary.
pub fn where_mounts_are(script: &str) -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "sh", "-e", "-c", &format!("{script}; exec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe().unwrap());
    command
}

/// Whether this process may change what is mounted for such a process.
pub fn may_mount() -> bool {
    let run = where_mounts_are("mount -t tmpfs tmpfs /dev/shm").arg("--list").output();
    let may = run.is_ok_and(|run| run.status.success());
    if !may {
        skip("this process may not mount anything in a name space of its own");
    }
    may
}
