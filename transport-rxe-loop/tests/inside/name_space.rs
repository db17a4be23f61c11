//! Processes whose mounts, networks, or numbers of processes are their own.
#![allow(dead_code)]

use std::io::Write;
use std::process::Command;

/// Prints why a test cannot run; under CI it has to run.
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "CI has to be able to: {why}");
    // Not by `eprintln`, of which a test that passes shows nothing.
    let mut stderr = std::io::stderr();
    writeln!(stderr, "skipped: {why}").unwrap();
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

/// The place of a process among those of a PID namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pids {
    /// That of the test.
    Shared,
    /// The first process of one of its own, with whose end the kernel kills all others there.
    First,
    /// Another process of one of its own.
    Second,
    /// The first process of one of its own, where /proc is that of the test.
    Unmounted,
}

impl Pids {
    /// The command that executes this program in such a place, as its user is outside. What is added to it are arguments
    /// of the program.
    pub fn command(self, program: &str) -> Command {
        let mut command = Command::new(if self == Self::Shared { program } else { "unshare" });
        if self == Self::Shared {
            return command;
        }
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-current-user"]);
        }
        command.args(["--pid", "--fork", "--kill-child"]);
        if self != Self::Unmounted {
            command.arg("--mount-proc");
        }
        if self == Self::Second {
            command.args(["sh", "-c", "\"$0\" \"$@\"; exit $?"]);
        }
        command.arg(program);
        command
    }

    /// The command that executes this binary there.
    pub fn of_this_binary(self) -> Command {
        self.command(std::env::current_exe().unwrap().to_str().unwrap())
    }
}

/// Whether this process may start others in PID namespaces of their own.
pub fn may_have_pids() -> bool {
    let why = "this process may not start another one in a PID namespace of its own";
    may(&mut Pids::First.of_this_binary(), why)
}
