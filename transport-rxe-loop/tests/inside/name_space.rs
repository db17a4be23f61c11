//! Processes whose mounts or networks are their own.

use std::io::Write;
use std::process::Command;

/// Prints why a test cannot run; under CI it has to run.
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "CI has to be able to: {why}");
    // Not by `eprintln`, of which a test that passes shows nothing.
    writeln!(std::io::stderr(), "skipped: {why}").unwrap();
}

/// A command that executes this binary in name spaces of its own, as root there, once a script has run. What is added to it
/// are arguments of the binary.
fn apart(space: &str, script: &str) -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args([space, "sh", "-e", "-c", &format!("{script}; exec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe().unwrap());
    command
}

/// Where a script changed what is mounted.
pub fn where_mounts_are(script: &str) -> Command {
    apart("--mount", script)
}

/// Where a script changed the addresses of a machine that has a loopback interface only.
pub fn where_addresses_are(script: &str) -> Command {
    apart("--net", &format!("ip link set lo up; {script}"))
}

fn may(command: &mut Command, else_skip: &str) -> bool {
    let may = command.arg("--list").output().is_ok_and(|run| run.status.success());
    if !may {
        skip(else_skip);
    }
    may
}

/// Whether this process may change what is mounted for such a process.
pub fn may_mount() -> bool {
    let why = "this process may not mount anything in a name space of its own";
    may(&mut where_mounts_are("mount -t tmpfs tmpfs /dev/shm"), why)
}

/// Whether it may change the addresses.
pub fn may_address() -> bool {
    let why = "this process may not change addresses in a name space of its own";
    may(&mut where_addresses_are("ip address add 10.1.2.3 dev lo"), why)
}
