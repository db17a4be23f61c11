//! A machine with an RDMA device: Debian's kernel with the Soft-RoCE driver, booted in QEMU without any help of
//! the host's kernel.
//!
//! The guest's disk is an archive in memory, made here: busybox, the driver, what is to be run and the
//! libraries of that. Its serial port is the kernel's console, and goes to a file; what the tasks print goes
//! through a port of its own to the standard output of the QEMU process.
//!
//! | module | owns |
//! |---|---|
//! | `kernel` | finding, fetching and unpacking Debian's kernel |
//! | `libraries` | what a program needs beside itself |
//! | `archive` | the guest's files |
//! | `devices.sh` | the RDMA devices: made, and removed |
//! | `tasks.sh` | running the tasks, one after the other |
//! | `init.sh` | what the guest does: set up, run the tasks, end |
//! | `boot` | QEMU: one guest, or two on a wire |
//! | [`machine`] | this machine instead, where its own kernel has the driver |
//! | `machine.sh` | what is done there: set up, run the tasks, clear away |
//! | [`tasks`] | what it is told to run, and what came of it |

use std::fs;
use std::path::{Path, PathBuf};

use self::archive::Archive;
use self::tasks::Task;
use crate::run::{Job, Stop, root};

mod archive;
mod boot;
mod kernel;
mod libraries;
pub mod machine;
pub mod tasks;

/// What brings QEMU, the guest's programs, and the tools that unpack its kernel.
pub const PACKAGES: &[&str] =
    &["qemu-system-x86", "busybox-static", "ibverbs-providers", "iproute2", "kmod", "xz-utils"];

/// What is brought along beside the caller's programs, with the driver's half in user space, which libibverbs
/// loads by itself.
const PROGRAMS: &[&str] = &[
    "/usr/bin/rdma",
    "/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so",
    "/etc/libibverbs.d/rxe.driver",
];

/// A guest that can be booted.
pub struct Guest {
    kernel: PathBuf,
    /// Where the files of this guest are.
    folder: PathBuf,
    /// What it can be booted for, and how many seconds that may take.
    lists: Vec<(&'static str, u32)>,
    /// What QEMU executes its instructions by.
    accelerator: [&'static str; 4],
}

/// What a guest is to hold.
#[derive(Default)]
pub struct Load {
    /// Files that lie in the guest where they lie here, with the libraries of those that are programs.
    pub files: &'static [&'static str],
    /// Programs that the guest finds by their names, with their libraries.
    pub programs: Vec<Program>,
    /// What it can be booted for: the name of a list, and the list.
    pub lists: Vec<(&'static str, Vec<Task>)>,
}

/// What runs the tasks of a list, beside the lists and the programs.
const SCRIPTS: [(&str, &str); 3] = [
    ("devices.sh", include_str!("guest/devices.sh")),
    ("tasks.sh", include_str!("guest/tasks.sh")),
    ("machine.sh", include_str!("guest/machine.sh")),
];

impl Load {
    /// The scripts and the lists, by the names of their files.
    fn texts(&self) -> impl Iterator<Item = (String, String)> {
        let scripts = SCRIPTS.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let lists = self.lists.iter().map(|(list, tasks)| (tasks::name(list), tasks::file(tasks)));
        scripts.chain(lists)
    }
}

/// A program of this workspace.
#[derive(Clone)]
pub struct Program {
    /// What it is called in the guest.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

impl Guest {
    /// Fetches the kernel where that has not been done, and puts the guest's files together under `name`.
    pub fn prepare(name: &str, load: &Load, job: &mut Job) -> Result<Self, Stop> {
        let kernel = kernel::find(job)?;
        job.announce("putting the guest together");
        let folder = cache().join(name);
        fs::create_dir_all(&folder)?;
        archive(&kernel, load)?.write(&folder.join("initrd"))?;
        let seconds = |tasks: &[Task]| tasks.iter().map(|task| task.seconds).sum();
        let lists = load.lists.iter().map(|(list, tasks)| (*list, seconds(tasks))).collect();
        let mut guest =
            Self { kernel: kernel.join(kernel::IMAGE), folder, lists, accelerator: boot::EMULATED };
        if guest.finds_kvm()? {
            guest.accelerator = boot::KVM;
        }
        Ok(guest)
    }
}

/// Where guests and their kernels are kept.
fn cache() -> PathBuf {
    root().join("target/verify/guest")
}

fn archive(kernel: &Path, load: &Load) -> Result<Archive, Stop> {
    let mut archive = Archive::default();
    archive.file("init", include_str!("guest/init.sh"));
    archive.file("etc/passwd", "root:x:0:0:root:/:/bin/sh\n");
    archive.file("etc/hosts", "127.0.0.1 localhost\n");
    archive.copy("bin/busybox", "/bin/busybox")?;
    for module in fs::read_dir(kernel.join(kernel::LOADED))? {
        let module = module?;
        archive.copy(Path::new("modules").join(module.file_name()), module.path())?;
    }
    for folder in ["dev", "proc", "sys", "tmp"] {
        archive.folder(folder);
    }
    for program in &load.programs {
        archive.copy(Path::new("job").join(&program.name), &program.path)?;
    }
    let files = PROGRAMS.iter().chain(load.files).map(Path::new);
    let programs = load.programs.iter().map(|program| program.path.as_path());
    let libraries = libraries::of(files.clone().chain(programs))?;
    for file in files.chain(libraries.iter().map(PathBuf::as_path)) {
        archive.copy(file, file)?;
    }
    let nothing = (tasks::name(boot::NOTHING), String::new());
    for (name, text) in load.texts().chain([nothing]) {
        archive.file(Path::new("job").join(name), text);
    }
    Ok(archive)
}
