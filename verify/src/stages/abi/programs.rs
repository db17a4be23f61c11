//! Programs that connect by librdmacm or by sockets of their own, over libraries that choose verbs: Open MPI, UCX's own tests,
//! nixl, Mooncake, gloo. What is run, as data, and how it is put together.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::pairs::End::{Abruptly, Alone, Both};
use super::pairs::Rounds::{self, First, Long};
use super::pairs::{Pair, Saying};
use super::suite;
use crate::packages;
use crate::run::{Job, Stop, root};

/// What the first of them needs, which run on every commit.
pub const PACKAGES: [&str; 2] = ["openmpi-bin", "libopenmpi-dev"];
/// What the others need; Mooncake needs the last two.
pub const LONG_PACKAGES: &[&str] = &["g++", "libgloo-dev", "python3-pip", "libcurl4", "libnuma1"];

/// What Python has of others, by version: nixl has a UCX of its own.
const WHEELS: [&str; 3] =
    ["nixl-cu12==1.5.1", "mooncake-transfer-engine-non-cuda==0.3.13.post1", "numpy==2.4.6"];

/// Sources, what UCX's tests are told, and a topology for Mooncake.
const SOURCES: &str = "verify/src/stages/abi/programs";

/// Every size was transferred and compared.
const TRANSFERS: &[Saying] = &[("bytes written and read", 5), ("both are done", 1)];
/// The same, and not by TCP, which Mooncake uses where it finds no device.
const TRANSFERS_BY_RDMA: &[Saying] =
    &[("bytes written and read", 5), ("both are done", 1), ("installTransport, type=rdma", 2)];

/// A program that starts its peers by itself.
const fn alone(server: &'static str, served: &'static [Saying], rounds: Rounds) -> Pair {
    Pair { server, client: "", end: Alone, served, asked: &[], rounds }
}

/// So many ranks of Open MPI, of which each must be done. Two that run at once need folders of their own for what they leave
/// while they run: the one that ends removes the folder in which the other is about to make its own.
macro_rules! ranks {
    ($way:literal, $base:literal, $ranks:literal, $rounds:expr) => {
        alone(
            concat!(
                $way,
                " --mca orte_tmpdir_base ",
                $base,
                " --allow-run-as-root --oversubscribe -n ",
                $ranks,
                " FOLDER/mpi"
            ),
            &[("is done", $ranks), ("wrong", 0)],
            $rounds,
        )
    };
}

/// All tests in files of ucx_perftest, by one of UCX's transports: so many, of 20 iterations each.
macro_rules! batch {
    ($transport:literal, $files:literal, $tests:expr) => {
        Pair {
            server: batch!($transport, $files),
            client: concat!(batch!($transport, $files), " -n 20 -w 5 -f -v 127.0.0.1"),
            end: Both,
            served: &[("ERROR", 0)],
            asked: &[(",  20,", $tests), ("ERROR", 0)],
            rounds: Long,
        }
    };
    ($transport:literal, $files:literal) => {
        concat!(
            "env UCX_TLS=",
            $transport,
            ",self sh FOLDER/with-device ucx_perftest -p PORT -b ",
            $files
        )
    };
}

/// Everything.
pub const PROGRAMS: &[Pair] = &[
    ranks!("sh FOLDER/with-device mpirun --mca pml ucx", "/tmp", 2, First),
    ranks!("sh FOLDER/with-device mpirun --mca pml ucx", "/var/tmp", 8, Long),
    ranks!(
        "env FI_UNIVERSE_SIZE=64 mpirun --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm",
        "/dev/shm",
        2,
        First
    ),
    ranks!(
        "env FI_UNIVERSE_SIZE=64 mpirun --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm",
        "/run",
        8,
        Long
    ),
    batch!("rc_v", "FOLDER/ucx-tag -b FOLDER/ucx-sizes", 8 * 4),
    batch!("rc_v", "FOLDER/ucx-stream -b FOLDER/ucx-sizes", 5 * 4),
    batch!("rc_v", "FOLDER/ucx-memory -b FOLDER/ucx-sizes", 3 * 4),
    batch!("rc_v", "FOLDER/ucx-atomic", 8),
    batch!("rc_v", "FOLDER/ucx-rc", 12),
    batch!("ud_v", "FOLDER/ucx-tag -b FOLDER/ucx-sizes", 8 * 4),
    batch!("ud_v", "FOLDER/ucx-stream -b FOLDER/ucx-sizes", 5 * 4),
    batch!("ud_v", "FOLDER/ucx-memory -b FOLDER/ucx-sizes", 3 * 4),
    batch!("ud_v", "FOLDER/ucx-atomic", 8),
    batch!("ud_v", "FOLDER/ucx-ud", 6),
    Pair {
        end: Abruptly,
        ..alone(
            "env PYTHONPATH=FOLDER/wheels sh FOLDER/with-device /usr/bin/python3 FOLDER/by-nixl.py",
            TRANSFERS,
            Long,
        )
    },
    alone(
        "env PYTHONPATH=FOLDER/wheels MC_CUSTOM_TOPO_JSON=FOLDER/topology.json \
         /usr/bin/python3 FOLDER/by-mooncake.py",
        TRANSFERS_BY_RDMA,
        Long,
    ),
    alone("FOLDER/gloo", &[("is done", 2)], Long),
];

/// Puts everything into the folder, for every user.
pub fn put(folder: &Path, job: &mut Job) -> Result<(), Stop> {
    for file in fs::read_dir(root().join(SOURCES))? {
        let file = file?;
        let copy = folder.join(file.file_name());
        fs::copy(file.path(), &copy)?;
        fs::set_permissions(copy, Permissions::from_mode(0o644))?;
    }
    compile("mpicc -std=gnu11 -O1 -Wall -Wextra -Werror mpi.c -o mpi", folder, job)?;
    if job.long {
        packages::ensure(LONG_PACKAGES, job)?;
        compile("g++ -O1 -Wall -Wextra gloo.cc -lgloo -libverbs -o gloo", folder, job)?;
        symlink(wheels(job)?, folder.join("wheels"))?;
    }
    Ok(())
}

fn compile(command: &str, folder: &Path, job: &mut Job) -> Result<(), Stop> {
    let mut chdir = Command::new("env");
    chdir.arg("--chdir").arg(folder).args(command.split_whitespace());
    job.run(command, &mut chdir).map(drop)
}

/// Where what Python needs is, fetched where that has not been done.
fn wheels(job: &mut Job) -> Result<PathBuf, Stop> {
    let folder = root().join("target/verify").join(WHEELS.join("+").replace("==", "-"));
    packages::once(&folder, |to| {
        let mut pip = Command::new(suite::PROGRAM);
        pip.args("-m pip install --no-deps --only-binary :all: --target".split_whitespace());
        let pip = pip.arg(to).args(WHEELS);
        job.run("pip install", pip).map(drop)
    })
    .map_err(|stop| Stop::Skipped(format!("{stop}; {} can't be had", WHEELS.join(", "))))?;
    Ok(folder)
}
