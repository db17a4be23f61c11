//! What some tests need that not every machine has: the sentence by which they are ignored, and a probe.

use std::fs::{self, File};
use std::io::IoSliceMut;
use std::process::{Child, Command, Stdio};

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use rustix::process::geteuid;

use crate::run::{quietly, root};

/// A need.
pub struct Need {
    /// Why tests are ignored that have it.
    pub reason: &'static str,
    /// Whether it is there: why not.
    pub probe: fn() -> Result<(), String>,
    /// Whether CI has to have it.
    pub demanded: bool,
}

/// All of them.
pub const NEEDS: [Need; 8] = [
    Need { reason: "needs root", probe: is_root, demanded: true },
    Need { reason: "needs mount namespaces", probe: mounts, demanded: true },
    Need { reason: "needs network namespaces", probe: networks, demanded: true },
    Need { reason: "needs PID namespaces", probe: pids, demanded: true },
    Need { reason: "needs other users that can execute it", probe: users, demanded: true },
    Need { reason: "needs process_vm_readv(2)", probe: reads_others, demanded: true },
    Need { reason: "needs userfaultfd(2)", probe: late_pages, demanded: true },
    Need { reason: "needs huge pages of shared memory", probe: huge_pages, demanded: false },
];

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

/// Whether another user can execute what is built here.
fn users() -> Result<(), String> {
    let mut other = Command::new("setpriv");
    other.args(["--reuid=4321", "--regid=4321", "--clear-groups", "test", "-x"]);
    quietly(other.arg(root().join("target/debug")))
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

/// Whether this user may have pages come late also in system calls, as userfaultfd(2) says.
fn late_pages() -> Result<(), String> {
    const ALL_MAY: &str = "/proc/sys/vm/unprivileged_userfaultfd";
    let all_may = fs::read_to_string(ALL_MAY).map_err(|why| format!("{ALL_MAY}: {why}"))?;
    match all_may.trim() {
        "1" => Ok(()),
        _ if geteuid().is_root() || File::open("/dev/userfaultfd").is_ok() => Ok(()),
        value => Err(format!("{ALL_MAY} is {value}")),
    }
}

/// Whether the kernel makes them on demand: since Linux 6.1.
fn huge_pages() -> Result<(), String> {
    const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let setting = fs::read_to_string(SETTING).map_err(|why| format!("{SETTING}: {why}"))?;
    match ["[never]", "[deny]"].into_iter().find(|it| setting.contains(it)) {
        None => Ok(()),
        Some(value) => Err(format!("{SETTING} is {value}")),
    }
}
