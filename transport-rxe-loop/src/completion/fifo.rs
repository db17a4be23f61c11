//! Named FIFOs as channel descriptors: any process of the fabric can make them readable. They carry no data.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mknodat, open as open_file, unlink};
use rustix::io::{Errno, read, retry_on_intr, write};

use crate::protocol::number::ChannelIndex;
use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::above_streams;

/// Creates a FIFO of this name and opens it. A stale file of the name is removed.
pub fn make(path: &Path) -> Result<OwnedFd, Errno> {
    remove(path);
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    steps::done(Step::Made);
    open(path)
}

/// Opens the FIFO of this name, for both directions: so opening never blocks, and a writer never gets SIGPIPE. Fails if
/// it is not a FIFO of this user.
pub fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = above_streams(|| retry_on_intr(|| open_file(path, flags, Mode::empty())))?;
    let stat = fstat(&fd)?;
    let is_fifo = FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
    let is_mine = stat.st_uid == rustix::process::geteuid().as_raw();
    if is_fifo && is_mine { Ok(fd) } else { Err(Errno::PERM) }
}

/// Removes the FIFO of this name. Errors are ignored: it may be gone already, and if not, creating the next one fails.
pub fn remove(path: &Path) {
    let _ = unlink(path);
}

/// Makes it unreadable. It may be already.
pub fn empty(fd: &OwnedFd) {
    // Unread events are signaled once, except by processes that died in between.
    while read(fd, &mut [0; 64]) == Ok(64) {}
}

/// Makes it readable; false if it can't be written to. One that is full is readable, too.
pub fn fill(fd: &OwnedFd) -> bool {
    matches!(retry_on_intr(|| write(fd.as_fd(), &[1])), Ok(_) | Err(Errno::AGAIN))
}

/// The descriptors that this process has open, by index and generation of the channel.
#[derive(Debug)]
pub struct Fifos(Vec<Mutex<Open>>);

type Open = Option<(u32, Arc<OwnedFd>)>;

impl Fifos {
    /// For so many channels.
    pub fn new(channels: u32) -> Self {
        Self((0..channels).map(|_| Mutex::new(None)).collect())
    }

    /// Keeps the descriptor of the channel at an index, that of a generation.
    pub fn keep(&self, index: ChannelIndex, generation: u32, fd: Arc<OwnedFd>) {
        *self.at(index) = Some((generation, fd));
    }

    /// Closes that of the channel at an index, once nobody uses it.
    pub fn forget(&self, index: ChannelIndex) {
        *self.at(index) = None;
    }

    /// Makes that of the channel at an index readable, which is opened if need be; false if it can't be.
    pub fn fill(
        &self,
        index: ChannelIndex,
        generation: u32,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> bool {
        let mut kept_open = self.at(index);
        if !matches!(&*kept_open, Some((kept, _)) if *kept == generation) {
            *kept_open = open().ok().map(|fd| (generation, Arc::new(fd)));
        }
        kept_open.as_ref().is_some_and(|(_, fd)| fill(fd))
    }

    /// Closes those for which `is_there` is false, given their index and generation. One that another thread uses stays.
    pub fn retain(&self, is_there: impl Fn(ChannelIndex, u32) -> bool) {
        for (index, kept_open) in (0..).map(ChannelIndex::new).zip(&self.0) {
            if let Ok(mut kept_open) = kept_open.try_lock() {
                kept_open.take_if(|(generation, _)| !is_there(index, *generation));
            }
        }
    }

    fn at(&self, index: ChannelIndex) -> MutexGuard<'_, Open> {
        let index = index.get() as usize & (self.0.len() - 1);
        self.0[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
