//! Named FIFOs as channel descriptors: any process of the fabric can make them readable. They carry no data.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mknodat, open as open_file, unlink};
use rustix::io::{Errno, read, retry_on_intr, write};

use crate::protocol::number::ChannelIndex;
use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::{KeptFd, above_streams};
use crate::shm::system::SystemError;

/// Creates a FIFO of this name and opens it. A stale file of the name is removed.
pub fn make(path: &Path) -> Result<KeptFd, SystemError> {
    remove(path);
    let failed = |call| move |errno| SystemError::at(call, path, errno);
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(failed("mknod"))?;
    steps::done(Step::Made);
    open(path).map_err(failed("open"))
}

/// Opens the FIFO of this name, for both directions: so opening never blocks, and a writer never gets SIGPIPE. Fails if
/// it is not a FIFO of this user.
pub fn open(path: &Path) -> Result<KeptFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = above_streams(|| retry_on_intr(|| open_file(path, flags, Mode::empty())))?;
    let stat = fstat(&fd)?;
    let is_fifo = FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
    let is_mine = stat.st_uid == rustix::process::geteuid().as_raw();
    if is_fifo && is_mine { Ok(KeptFd::of(fd, (&stat).into())) } else { Err(Errno::EXIST) }
}

/// Removes the FIFO of this name. Errors are ignored: it may be gone already, and if not, creating the next one fails.
pub fn remove(path: &Path) {
    let _ = unlink(path);
}

/// Makes it unreadable. It may be already.
pub fn empty(fd: BorrowedFd<'_>) {
    // Unread events are signaled once, except by processes that died in between.
    while read(fd, &mut [0; 64]) == Ok(64) {}
}

/// Makes it readable; false if it can't be written to. One that is full is readable, too.
fn fill(fd: BorrowedFd<'_>) -> bool {
    matches!(retry_on_intr(|| write(fd, &[1])), Ok(_) | Err(Errno::AGAIN))
}

/// The descriptors that this process has open, by index and generation of the channel.
#[derive(Debug)]
pub struct Fifos(Vec<Mutex<Open>>);

type Open = Option<(u32, Arc<KeptFd>)>;

impl Fifos {
    /// For so many channels.
    pub fn new(channels: u32) -> Self {
        Self((0..channels).map(|_| Mutex::new(None)).collect())
    }

    /// Keeps the descriptor of the channel at an index, that of a generation.
    pub fn keep(&self, index: ChannelIndex, generation: u32, fd: Arc<KeptFd>) {
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
        open: impl FnOnce() -> Result<KeptFd, Errno>,
    ) -> bool {
        self.get(index, generation, open).is_some_and(|fd| fill(fd.unchecked()))
    }

    /// That of the channel at an index. It is opened if it is not open, or if the program has closed it: what made it
    /// readable may be gone then, so it is readable. `None` if it can't be opened.
    pub fn get(
        &self,
        index: ChannelIndex,
        generation: u32,
        open: impl FnOnce() -> Result<KeptFd, Errno>,
    ) -> Option<Arc<KeptFd>> {
        let mut kept_open = self.at(index);
        let known = kept_open.as_ref().filter(|(kept, _)| *kept == generation);
        let is_lost = known.is_some_and(|(_, fd)| fd.get().is_err());
        if known.is_none() || is_lost {
            *kept_open = Some((generation, Arc::new(open().ok()?)));
        }
        let fd = Arc::clone(&kept_open.as_ref()?.1);
        if is_lost {
            fill(fd.unchecked());
        }
        Some(fd)
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
