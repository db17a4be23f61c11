//! Files of regions that the device allocated, one for each region, beside the fabric's file. All bytes of a file are
//! reserved when it is created, so that no later access can fail; they are freed when the region is deregistered,
//! even if other processes still map them.

use std::path::Path;

use cq_verbs::setup::MemoryOptions;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    FallocateFlags, FileType, Mode, OFlags, fallocate, fchmod, fstat, fstatvfs, ftruncate, open,
    unlink,
};
use rustix::io::{Errno, retry_on_intr};

use crate::conditions::{file_size_limit, shared_memory_full};
use crate::error::RegisterError;
use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::above_streams;
use crate::shm::file;
use crate::shm::mapping::Mapping;
use crate::shm::system::SystemError;

const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Creates and maps the file of a new region.
///
/// # Errors
/// Shared memory is full, or the system fails; no file is left behind.
pub fn make(path: &Path, len: usize, options: &MemoryOptions) -> Result<Mapping, RegisterError> {
    if let Some(limit) = file::size_limit(len as u64) {
        return Err(file_size_limit(len, limit).into());
    }
    let memory = create(path).map_err(failed("open")).and_then(|file| {
        steps::done(Step::Made);
        let memory = prepare(file.as_fd(), len, options);
        if memory.is_err() {
            let _ = unlink(path);
        }
        memory
    });
    memory.map_err(|(call, errno)| match (call, errno) {
        ("open", _) => refused(call, path, errno),
        (_, Errno::NOSPC | Errno::FBIG) => shared_memory_full(len).into(),
        (_, Errno::NOMEM | Errno::FAULT) => {
            RegisterError::NoMemory { len, errno: cq_verbs::setup::Errno(errno.raw_os_error()) }
        }
        _ => refused(call, path, errno),
    })
}

fn refused(call: &'static str, path: &Path, errno: Errno) -> RegisterError {
    SystemError::at(call, path, errno).for_object("a file in /dev/shm").into()
}

/// Creates a file. An existing one was left by a dead process that had the same table entry.
fn create(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = || above_streams(|| retry_on_intr(|| open(path, flags, MODE)));
    match create() {
        Err(Errno::EXIST) => {
            unlink(path)?;
            create()
        }
        created => created,
    }
}

/// A call that failed.
type Failed = (&'static str, Errno);

fn failed(call: &'static str) -> impl Fn(Errno) -> Failed {
    move |errno| (call, errno)
}

fn prepare(file: BorrowedFd<'_>, len: usize, options: &MemoryOptions) -> Result<Mapping, Failed> {
    // The umask may have removed bits of the mode.
    fchmod(file, MODE).map_err(failed("fchmod"))?;
    check_space(file, len as u64).map_err(failed("fstatvfs"))?;
    // First, so that a file system that gives huge pages to large files sees that it is one.
    ftruncate(file, len as u64).map_err(failed("ftruncate"))?;
    file::fill(file, len as u64).map_err(failed("fallocate"))?;
    let memory = Mapping::of_region(file, len).map_err(failed("mmap"))?;
    if options.huge_pages {
        memory.gather_huge_pages();
    }
    if options.prefault {
        memory.prefault().map_err(failed("madvise"))?;
    }
    Ok(memory)
}

/// Reserves all bytes of a file.
fn reserve(file: BorrowedFd<'_>, len: u64) -> Result<(), Errno> {
    check_space(file, len)?;
    file::fill(file, len)
}

/// Checks that there is space to reserve all bytes of a file, so that a large failing attempt does not exhaust it for
/// others.
fn check_space(fd: BorrowedFd<'_>, len: u64) -> Result<(), Errno> {
    /// The largest reservation that is attempted without a check.
    const LITTLE: u64 = 1 << 20;
    if len > LITTLE {
        let system = fstatvfs(fd)?;
        let left = system.f_bavail.saturating_mul(system.f_frsize);
        // A file system that reports no blocks has no limit.
        if system.f_blocks != 0 && left < file::missing(fd, len)? {
            return Err(Errno::NOSPC);
        }
    }
    Ok(())
}

/// Frees the memory of this process' own region, which no copy uses any more.
pub fn end(path: &Path, memory: &Mapping) {
    memory.give_back();
    let _ = unlink(path);
}

/// Maps the file of another process' region.
///
/// # Errors
/// The file is not a regular file of this user with so many bytes, or the system fails.
pub fn map(path: &Path, len: usize) -> Result<Mapping, Errno> {
    let file = find(path)?;
    let stat = fstat(&file)?;
    let has = u64::try_from(stat.st_size).unwrap_or(0);
    if stat.st_uid != rustix::process::geteuid().as_raw() || has < len as u64 {
        return Err(Errno::PERM);
    }
    // All of them are reserved already, if the file was created by `make`.
    reserve(file.as_fd(), len as u64)?;
    Mapping::of_region(file.as_fd(), len)
}

/// Opens a regular file.
fn find(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = above_streams(|| retry_on_intr(|| open(path, flags, Mode::empty())))?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        _ => Err(Errno::PERM),
    }
}

/// Removes the file of a dead process' region, and frees its bytes even if other processes map them.
pub fn remove(path: &Path) {
    if let Ok(file) = find(path) {
        let all = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let len = fstat(&file).map_or(0, |stat| stat.st_size as u64);
        let _ = fallocate(&file, all, 0, len);
    }
    let _ = unlink(path);
}

#[cfg(test)]
mod tests;
