//! This machine in place of a guest, where its own kernel has the driver: nothing is emulated.
//!
//! Its interfaces, devices and processes stay as they are: what `machine.sh` makes has names of its own, and is removed at
//! the end; what a run leaves that was killed, the next one removes. Modules that it loads stay loaded.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use rustix::process::geteuid;

use super::tasks::{self, Ran, Results};
use super::{Load, cache};
use crate::run::{Job, Stop, quietly};

/// What the tasks need of the kernel, as modprobe is told. The last one would make an interface by itself.
const MODULES: [&[&str]; 3] = [&["rdma_rxe"], &["rdma_ucm"], &["dummy", "numdummies=0"]];
const MODPROBE: &str = "/sbin/modprobe";

/// Is there in the first network namespace alone, which is the only one in which the driver looks for routes.
const FIRST_NETWORK: &str = "/proc/sys/net/core/dev_weight";

/// This machine, by its kernel.
pub struct Machine {
    release: String,
}

impl Machine {
    /// This machine, where tasks can and may run on its kernel; the log says why not.
    pub fn find(job: &mut Job) -> Result<Option<Self>, Stop> {
        let why_not = if !job.install {
            Some("--install was not given".to_owned())
        } else if !geteuid().is_root() {
            Some("only root may".to_owned())
        } else if let Err(why) = quietly(in_first_network().args(["test", "-e", FIRST_NETWORK])) {
            Some(format!(
                "process 1 is not in the first network namespace: docker run --pid host ({why})"
            ))
        } else {
            missing_module(job)?.map(|module| format!("its kernel has no module {module}"))
        };
        if let Some(why) = why_not {
            job.log(&format!("not on this machine's kernel: {why}"))?;
            return Ok(None);
        }
        let release = fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
        Ok(Some(Self { release }))
    }

    /// Makes the devices, runs the tasks of `list`, and removes the devices: what came of the tasks, in order.
    pub fn run(&self, list: &str, load: &Load, job: &mut Job) -> Result<Vec<Ran>, Stop> {
        for words in MODULES.into_iter().filter(|words| !is_loaded(words[0])) {
            let name = format!("modprobe {}", words.join(" "));
            let (status, said) = job.attempt(&name, Command::new(MODPROBE).args(words))?;
            if !status.success() {
                return Err(Stop::Failed(format!("on {self}, {name}: {status}\n{said}")));
            }
        }
        let mut command = in_first_network();
        command.args(["unshare", "--mount", "sh"]).arg(folder(load)?.join("machine.sh")).arg(list);
        let (results, status) =
            tasks::watch("making RDMA devices", "on this machine", &mut command, job)?;
        self.conclude(results, status)
    }

    /// What came of the tasks, if the devices were made and removed.
    fn conclude(&self, results: Results, status: ExitStatus) -> Result<Vec<Ran>, Stop> {
        let said = results.outside().to_owned();
        match results.finish() {
            (ran, true) if status.success() => Ok(ran),
            (_, over) => {
                let what = if over { "devices stay" } else { "its tasks did not run to the end" };
                Err(Stop::Failed(format!("on {self}, {what} ({status})\n{said}")))
            }
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linux {}, this machine's", self.release)
    }
}

/// The beginning of a command that runs in the first network namespace: in a container with the processes of its host, that
/// is the one of process 1.
fn in_first_network() -> Command {
    let mut command = Command::new("nsenter");
    command.arg("--net=/proc/1/ns/net");
    command
}

/// The first module that the kernel has not, neither loaded nor to be loaded.
fn missing_module(job: &mut Job) -> Result<Option<&'static str>, Stop> {
    for name in MODULES.map(|words| words[0]) {
        if !is_loaded(name) {
            let mut probe = Command::new(MODPROBE);
            let (status, _) = job.attempt("modprobe", probe.args(["--dry-run", name]))?;
            if !status.success() {
                return Ok(Some(name));
            }
        }
    }
    Ok(None)
}

fn is_loaded(module: &str) -> bool {
    Path::new("/sys/module").join(module).exists()
}

/// The folder of the scripts, the lists and the programs, as a guest has it.
fn folder(load: &Load) -> io::Result<PathBuf> {
    let folder = cache().join("machine");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    for (name, text) in load.texts() {
        fs::write(folder.join(name), text)?;
    }
    for program in &load.programs {
        symlink(&program.path, folder.join(&program.name))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// What comes of a script that said this, and ended with this status.
    fn concluded(said: &str, status: i32) -> Result<usize, String> {
        let mut results = Results::default();
        for line in said.lines() {
            results.line(line);
        }
        let machine = Machine { release: "6.8".into() };
        let ran = machine.conclude(results, ExitStatus::from_raw(status << 8));
        ran.map(|ran| ran.len()).map_err(|stop| stop.to_string())
    }

    #[test]
    fn devices_that_are_not_made_or_stay_are_a_fault_with_its_reason() {
        const RAN: &str = "== begin it\nwell\n\n== end it 0\n== over\n";
        assert_eq!(concluded(RAN, 0), Ok(1));
        for (said, status, why) in [
            ("error: File exists\n", 1, "did not run to the end (exit status: 1)\nerror: File"),
            ("", 0, "did not run to the end"),
            (&format!("{RAN}error: Device busy\n"), 1, "stay (exit status: 1)\nerror: Device busy"),
        ] {
            let fault = concluded(said, status).unwrap_err();
            assert!(fault.starts_with("on Linux 6.8, this machine's, "), "{fault}");
            assert!(fault.contains(why) && !fault.contains("well"), "{fault}");
        }
    }
}
