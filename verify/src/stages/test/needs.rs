//! What some tests need that not every machine has: the sentence by which they are ignored, and a probe.

use std::fs;
use std::io::IoSliceMut;
use std::process::{Child, Command, Stdio};

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use procfs::process::Process;
use rustix::process::geteuid;

use crate::run::{quietly, root};

/// A need.
pub struct Need {
    /// Why tests are ignored that have it.
    pub reason: &'static str,
    /// Debian's packages without which it can't be there.
    pub packages: &'static [&'static str],
    /// Whether it is there: why not.
    pub probe: fn() -> Result<(), String>,
    /// Whether CI has to have it.
    pub demanded: bool,
}

/// All of them.
pub const NEEDS: [Need; 8] = [
    demanded("needs root", is_root),
    demanded("needs mount namespaces", mounts),
    Need { packages: &["iproute2"], ..demanded("needs network namespaces", networks) },
    demanded("needs PID namespaces", pids),
    demanded("needs another user that can execute the test", users),
    demanded("needs process_vm_readv(2)", reads_others),
    demanded("needs userfaultfd(2)", late_pages),
    Need { demanded: false, ..demanded("needs huge pages of shared memory", huge_pages) },
];

/// One that CI has to have, and for which nothing need be installed.
const fn demanded(reason: &'static str, probe: fn() -> Result<(), String>) -> Need {
    Need { reason, packages: &[], probe, demanded: true }
}

/// Whether this is root with what it needs to mount, to start processes apart, and to become others: not in every container.
fn is_root() -> Result<(), String> {
    if !geteuid().is_root() {
        return Err("this user is another one".into());
    }
    let becomes = "setpriv --reuid=4321 --regid=4321 --clear-groups true";
    apart(&["--mount", "--pid", "--fork"], &format!("mount -t tmpfs tmpfs /dev/shm; {becomes}"))
}

/// Runs a script in namespaces of its own.
fn apart(namespaces: &[&str], script: &str) -> Result<(), String> {
    let mut unshare = Command::new("unshare");
    if !geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    quietly(unshare.args(namespaces).args(["sh", "-e", "-c", script]))
}

fn mounts() -> Result<(), String> {
    apart(&["--mount"], "mount -t tmpfs tmpfs /dev/shm")
}

fn networks() -> Result<(), String> {
    apart(&["--net"], "ip link set lo up; ip address add 10.1.2.3 dev lo")
}

fn pids() -> Result<(), String> {
    apart(&["--pid", "--fork", "--kill-child", "--mount-proc"], "exit 0")
}

/// Whether another user can reach what is built here.
fn users() -> Result<(), String> {
    let mut other = Command::new("setpriv");
    other.args(["--reuid=4321", "--regid=4321", "--clear-groups", "test", "-x"]);
    quietly(other.arg(root()))
}

/// A process to try something on, which ends with this.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a process may read the memory of its child: of the first of its mappings, a byte.
fn reads_others() -> Result<(), String> {
    let mut cat = Command::new("cat");
    let child = cat.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let other = Other(child.map_err(|why| why.to_string())?);
    let maps = fs::read_to_string(format!("/proc/{}/maps", other.0.id()));
    let maps = maps.map_err(|why| why.to_string())?;
    let base = maps.split('-').next().and_then(|base| usize::from_str_radix(base, 16).ok());
    let base = base.ok_or("it has no memory")?;
    let pid = Pid::from_raw(other.0.id().cast_signed());
    let (mut byte, remote) = ([0], [RemoteIoVec { base, len: 1 }]);
    let read = process_vm_readv(pid, &mut [IoSliceMut::new(&mut byte)], &remote);
    read.map(drop).map_err(|why| why.to_string())
}

/// Whether this process may have pages come late also in system calls, as userfaultfd(2) says.
fn late_pages() -> Result<(), String> {
    const ALL_MAY: &str = "/proc/sys/vm/unprivileged_userfaultfd";
    const SYS_PTRACE: u64 = 1 << 19;
    let all_may = fs::read_to_string(ALL_MAY).map_err(|why| format!("{ALL_MAY}: {why}"))?;
    let status = Process::myself().and_then(|this| this.status()).map_err(|why| why.to_string())?;
    match all_may.trim() {
        "1" => Ok(()),
        _ if status.capeff & SYS_PTRACE != 0 => Ok(()),
        value => Err(format!("{ALL_MAY} is {value}, and this process lacks CAP_SYS_PTRACE")),
    }
}

/// Whether the kernel gathers pages into huge ones at once, also where nothing else makes any: since Linux 6.1.
fn huge_pages() -> Result<(), String> {
    const RELEASE: &str = "/proc/sys/kernel/osrelease";
    let release = fs::read_to_string(RELEASE).map_err(|why| format!("{RELEASE}: {why}"))?;
    let mut numbers = release.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= (6, 1) { Ok(()) } else { Err(format!("this is Linux {}", release.trim())) }
}
