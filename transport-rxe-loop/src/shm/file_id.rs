//! The identity of a file: its device and its inode. Kinds of descriptors that have no inode of their own, as those of
//! epoll(7), eventfd(2) and timerfd, are not told apart by it.

use std::fmt;

use rustix::fd::BorrowedFd;
use rustix::fs::{Stat, fstat};
use rustix::io::Errno;

/// The identity of a file, valid as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl From<&Stat> for FileId {
    fn from(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{:x}", self.device, self.inode)
    }
}

/// The identity of an open file.
pub fn id_of(fd: BorrowedFd<'_>) -> Result<FileId, Errno> {
    Ok((&fstat(fd)?).into())
}
