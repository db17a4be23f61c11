//! The files that regions of the fabric's own memory lie in, one each, beside the fabric's. All bytes of one
//! are reserved when it is made, so that using them can't fail later; and given back when the region goes,
//! even if others still map it.

use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    FallocateFlags, FileType, Mode, OFlags, fallocate, fchmod, fstat, fstatvfs, open, unlink,
};
use rustix::io::{Errno, retry_on_intr};

use crate::error::RegisterError;
use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::above_streams;
use crate::shm::file;
use crate::shm::mapping::Mapping;

const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Makes the file of a new region, and maps it.
///
/// # Errors
/// There is no room, or what the system says; nothing is left behind.
pub fn make(path: &Path, len: usize) -> Result<Mapping, RegisterError> {
    if let Some(limit) = file::size_limit(len as u64) {
        return Err(RegisterError::FileSizeLimit { len, limit });
    }
    let memory = create(path).and_then(|file| {
        steps::done(Step::Made);
        let memory = prepare(file.as_fd(), len);
        if memory.is_err() {
            let _ = unlink(path);
        }
        memory
    });
    memory.map_err(|errno| match errno {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => RegisterError::SharedMemoryFull { len },
        errno => RegisterError::NoMemory { len, errno: errno.raw_os_error() },
    })
}

/// A new file of this name. One that has it is of somebody who died and had the region's place before.
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

fn prepare(file: BorrowedFd<'_>, len: usize) -> Result<Mapping, Errno> {
    // Whatever the umask left of the mode.
    fchmod(file, MODE)?;
    reserve(file, len as u64)?;
    Mapping::of_file(file, len)
}

/// Makes sure of all bytes of a file. Where there can't be so many, others do not have to do without while
/// that is found out.
fn reserve(file: BorrowedFd<'_>, len: u64) -> Result<(), Errno> {
    /// What may be tried in vain.
    const LITTLE: u64 = 1 << 20;
    if len > LITTLE {
        let system = fstatvfs(file)?;
        let left = system.f_bavail.saturating_mul(system.f_frsize);
        // Without blocks there is no limit.
        if system.f_blocks != 0 && left < missing(file, len)? {
            return Err(Errno::NOSPC);
        }
    }
    file::fill(file, len)
}

/// How many of so many bytes a file does not have yet.
fn missing(file: BorrowedFd<'_>, len: u64) -> Result<u64, Errno> {
    /// Bytes of what `st_blocks` counts.
    const BLOCK: u64 = 512;
    Ok(len.saturating_sub(u64::try_from(fstat(file)?.st_blocks).unwrap_or(0) * BLOCK))
}

/// Gives the memory of one's own region back, once nobody uses it.
pub fn end(path: &Path, memory: &Mapping) {
    memory.give_back();
    let _ = unlink(path);
}

/// Maps the file of another's region.
///
/// # Errors
/// What has the name is no file of this user's with so many bytes, or what the system says.
pub fn map(path: &Path, len: usize) -> Result<Mapping, Errno> {
    let file = find(path)?;
    let stat = fstat(&file)?;
    let has = u64::try_from(stat.st_size).unwrap_or(0);
    if stat.st_uid != rustix::process::geteuid().as_raw() || has < len as u64 {
        return Err(Errno::PERM);
    }
    // They are all there, if it was made as it should be.
    reserve(file.as_fd(), len as u64)?;
    Mapping::of_file(file.as_fd(), len)
}

/// Opens what has this name, if it is a file.
fn find(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = above_streams(|| retry_on_intr(|| open(path, flags, Mode::empty())))?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        _ => Err(Errno::PERM),
    }
}

/// Removes the file of a region whose owner died, and gives its bytes back, whoever still maps them.
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
