//! Processes whose mounts, networks, or numbers of processes are their own. Tests that start them are ignored with what they
//! need.
#![allow(dead_code)]

use std::process::Command;

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

/// A script that waits until the kernel has a route to each address of version 6: it adds that later than the address. For half
/// a minute, or it fails.
pub const ROUTED: &str = "ip -6 -oneline address show dev lo | while read -r _ _ _ address _; do \
     n=0; until ip -6 route show table local | grep -q \"local ${address%/*} \"; do \
     n=$((n + 1)); [ $n -lt 3000 ]; sleep 0.01; done; done";

/// Where a script changed the addresses of a machine that has a loopback interface only.
pub fn where_addresses_are(script: &str) -> Command {
    apart("--net", &format!("ip link set lo up; {script}; {ROUTED}"))
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
