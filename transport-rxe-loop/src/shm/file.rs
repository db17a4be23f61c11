//! The fabric's file: finding, creating, linking and removing it. A file that was found is checked before it is
//! opened.

use std::fs;
use std::path::Path;

use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, Stat, fallocate, fchmod, fstat, linkat,
    open, statat, unlink,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use super::error::AttachError;
pub use super::file_id::{FileId, id_of};
use super::name::FabricPath;
use super::plan::HEADER;
use super::system::SystemError;
use super::unshared::Opened;
use crate::shm::descriptor::{KeptFd, above_streams};

/// The bytes reserved at a time: a signal undoes no more than this.
const CHUNK: u64 = 1 << 16;
const MODE: u32 = 0o600;

/// The length of an open file.
pub fn len_of(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    Ok(fstat(fd)?.st_size.try_into().unwrap_or(0))
}

/// The file with the fabric's name, if there is one; an error if it cannot be a fabric's file.
pub fn find(path: &FabricPath) -> Result<Option<FileId>, AttachError> {
    let stat = match statat(CWD, path.file(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(unusable("stat", path, &path.file(), errno)),
    };
    validate(path, &stat)?;
    Ok(Some((&stat).into()))
}

/// Whether the fabric's name still leads to this file.
pub fn leads_to(path: &FabricPath, id: FileId) -> bool {
    let stat = statat(CWD, path.file(), AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileId::from(&stat) == id)
}

fn validate(path: &FabricPath, stat: &Stat) -> Result<(), AttachError> {
    let file = || path.file();
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => None,
        FileType::Symlink => Some("a symbolic link"),
        FileType::Directory => Some("a directory"),
        FileType::Fifo => Some("a FIFO"),
        FileType::Socket => Some("a socket"),
        _ => Some("a device"),
    };
    if let Some(found) = found {
        return Err(AttachError::NotAFile { path: file(), found });
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(AttachError::NotOwned { path: file(), owner: stat.st_uid });
    }
    let mode = stat.st_mode & 0o7777;
    if mode != MODE {
        return Err(AttachError::Mode { path: file(), mode });
    }
    if stat.st_nlink > 1 {
        return Err(AttachError::Linked { path: file() });
    }
    Ok(())
}

/// Opens the file with the fabric's name; `None` if it was removed. The caller checks whether it is the file that was
/// found.
pub fn open_found(path: &FabricPath) -> Result<Option<Opened>, AttachError> {
    unless_removed(path, Opened::by(|| open_with(path, OFlags::RDWR)))
}

/// The same, for a process that only reads it.
pub fn open_to_read(path: &FabricPath) -> Result<Option<KeptFd>, AttachError> {
    unless_removed(path, open_with(path, OFlags::RDONLY).and_then(KeptFd::new))
}

fn open_with(path: &FabricPath, access: OFlags) -> Result<OwnedFd, Errno> {
    let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = path.file();
    above_streams(|| retry_on_intr(|| open(&file, flags, Mode::empty())))
}

fn unless_removed<T>(
    path: &FabricPath,
    opened: Result<T, Errno>,
) -> Result<Option<T>, AttachError> {
    match opened {
        Ok(file) => Ok(Some(file)),
        // It was found before, so these errors mean that it was removed or replaced.
        Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR | Errno::NXIO) => Ok(None),
        Err(errno) => Err(AttachError::system("open", &path.file(), errno)),
    }
}

/// Creates an unnamed file, for this user alone, in which `bytes` bytes are to be reserved.
pub fn make(path: &FabricPath, bytes: u64) -> Result<Opened, AttachError> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(MODE);
    // It would be that of reserving the bytes, or a signal.
    if size_limit(bytes).is_some() {
        return Err(SystemError::at("fallocate", &path.file(), Errno::FBIG).bytes(bytes).into());
    }
    let made = || retry_on_intr(|| open(path.directory(), flags, mode));
    let file = Opened::by(|| above_streams(made))
        .map_err(|errno| unusable("open", path, path.directory(), errno))?;
    // The umask may have cleared bits of the mode.
    fchmod(&file, mode).map_err(|errno| AttachError::system("fchmod", &path.file(), errno))?;
    Ok(file)
}

/// Reserves all bytes of the fabric's file, so that accesses cannot fail later.
pub fn reserve(fd: BorrowedFd<'_>, path: &FabricPath, bytes: u64) -> Result<(), AttachError> {
    if missing(fd, bytes) == Ok(0) {
        return Ok(());
    }
    let failed = |errno| SystemError::at("fallocate", &path.file(), errno).bytes(bytes).into();
    fill(fd, bytes).map_err(failed)
}

/// The process's limit on file sizes, if that is less than `bytes`. Growing a file past it ends the process by
/// SIGXFSZ, so it is checked first.
pub fn size_limit(bytes: u64) -> Option<u64> {
    getrlimit(Resource::Fsize).current.filter(|&limit| limit < bytes)
}

/// How many of the first `len` bytes of a file that has no others are not reserved yet.
pub fn missing(fd: BorrowedFd<'_>, len: u64) -> Result<u64, Errno> {
    /// The unit of `st_blocks`, in bytes.
    const BLOCK: u64 = 512;
    Ok(len.saturating_sub(u64::try_from(fstat(fd)?.st_blocks).unwrap_or(0) * BLOCK))
}

/// Reserves the first `bytes` bytes of a file.
///
/// # Errors
/// The system's error.
pub fn fill(fd: BorrowedFd<'_>, bytes: u64) -> Result<(), Errno> {
    let mut at = 0;
    while at < bytes {
        let len = CHUNK.min(bytes - at);
        retry_on_intr(|| fallocate(fd, FallocateFlags::empty(), at, len))?;
        at += len;
    }
    Ok(())
}

/// Frees the bytes of a fabric's file behind its header: they read as zeros.
pub fn free(fd: BorrowedFd<'_>) {
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let from = HEADER as u64;
    // If that fails, they are freed when no process has the file open any more.
    let _ = len_of(fd).and_then(|len| fallocate(fd, hole, from, len.saturating_sub(from)));
}

/// A path of an open file, also if it has no name in a directory. `/proc/self` is unusable in a process whose first
/// thread has ended.
pub fn path_of(fd: BorrowedFd<'_>) -> String {
    format!("/proc/thread-self/fd/{}", fd.as_raw_fd())
}

/// Links an unnamed file to the fabric's name; false if that exists by now.
pub fn link(fd: BorrowedFd<'_>, path: &FabricPath) -> Result<bool, AttachError> {
    let made = path_of(fd);
    match linkat(CWD, &made, CWD, path.file(), AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(Errno::NOENT) if fs::symlink_metadata(&made).is_err() => {
            Err(AttachError::system("link", Path::new(&made), Errno::NOENT))
        }
        Err(errno) => Err(unusable("link", path, &path.file(), errno)),
    }
}

/// The names of the files in a directory; none if it can't be listed.
pub fn names_in(directory: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Removes the fabric's file, and those beside it; if no descriptor is left to list these, it stays, for the next process to
/// remove. Only behind the gate of that file.
pub fn unlink_fabric(path: &FabricPath) -> Result<(), AttachError> {
    clear(path)?;
    match unlink(path.file()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(unusable("unlink", path, &path.file(), errno)),
    }
}

/// Removes the FIFOs and memory files that processes left beside the fabric. Only behind the gate, while no other
/// process is attached. A file that cannot be removed stays; creating one of its name fails later.
///
/// # Errors
/// No descriptor is left to list the directory. One that can't be listed at all is left as it is.
pub fn clear(path: &FabricPath) -> Result<(), AttachError> {
    let entries = match fs::read_dir(path.directory()) {
        Ok(entries) => entries,
        Err(error) => {
            return match Errno::from_io_error(&error) {
                Some(errno @ (Errno::MFILE | Errno::NFILE)) => {
                    Err(unusable("open", path, path.directory(), errno))
                }
                _ => Ok(()),
            };
        }
    };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| path.is_beside(name)) {
            let _ = unlink(entry.path());
        }
    }
    Ok(())
}

/// The error of a call for `at`, which is in the fabric's directory: if that is none, it is the one for which it failed.
fn unusable(call: &'static str, path: &FabricPath, at: &Path, errno: Errno) -> AttachError {
    let directory = path.directory();
    match errno {
        Errno::NOENT | Errno::NOTDIR if !directory.is_dir() => {
            AttachError::system(call, directory, errno)
        }
        errno => AttachError::system(call, at, errno),
    }
}

#[cfg(test)]
mod tests;
