//! Named FIFOs as channel descriptors: any process of the fabric can write [tokens](Token) to them.

use std::cell::{Cell, OnceCell};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mknodat, open as open_file, unlink};
use rustix::io::{Errno, ioctl_fionread, read, retry_on_intr, write};

use crate::protocol::channel::{Pipe, Token, Unwritten};
use crate::protocol::number::ChannelIndex;
use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::{KeptFd, above_streams};
use crate::shm::system::SystemError;
use crate::sync;

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

/// The FIFO of a channel, which is opened for the first call that needs it.
#[derive(Debug)]
pub struct Fifo<O> {
    open: O,
    fd: OnceCell<Option<Arc<KeptFd>>>,
    /// Less than a token was read.
    is_torn: Cell<bool>,
}

impl<O: Fn() -> Option<Arc<KeptFd>>> Fifo<O> {
    /// Opened by `open`, which returns `None` if that fails.
    pub const fn new(open: O) -> Self {
        Self { open, fd: OnceCell::new(), is_torn: Cell::new(false) }
    }

    /// Whether less than a token was read since this was asked last: others wrote or read there what is no token, and tokens
    /// were lost.
    pub fn was_torn(&self) -> bool {
        self.is_torn.take()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.get_or_init(&self.open).as_ref().map(|fd| fd.unchecked())
    }
}

/// Bytes of a token. A pipe reads and writes so few as a whole.
const LEN: usize = 8;

impl<O: Fn() -> Option<Arc<KeptFd>>> Pipe for Fifo<O> {
    fn write(&self, token: Token) -> Result<(), Unwritten> {
        let fd = self.fd().ok_or(Unwritten::Unopened)?;
        match retry_on_intr(|| write(fd, &token.to_bytes())) {
            Ok(_) => Ok(()),
            Err(Errno::AGAIN) => Err(Unwritten::Full),
            Err(_) => Err(Unwritten::Unopened),
        }
    }

    fn read(&self) -> Option<Token> {
        let (fd, mut bytes) = (self.fd()?, [0; LEN]);
        let count = retry_on_intr(|| read(fd, &mut bytes)).ok()?;
        // At the end of what is there, so the next token is a whole one.
        if (1..LEN).contains(&count) {
            self.is_torn.set(true);
        }
        (count > 0).then(|| Token::from_bytes(bytes))
    }

    fn len(&self) -> usize {
        let bytes = self.fd().and_then(|fd| ioctl_fionread(fd).ok());
        (bytes.unwrap_or(0) as usize).div_ceil(LEN)
    }

    fn wait(&self, attempt: u32) -> bool {
        // Few attempts, since each reads all tokens and writes them again: 15 ms in all.
        match attempt {
            // Where another thread of the same core has to go on.
            ..=1 => (0..16).for_each(|_| thread::yield_now()),
            2..=5 => thread::sleep(Duration::from_millis(1 << (attempt - 2))),
            6.. => return false,
        }
        true
    }
}

/// The descriptors that this process has open, by index and generation of the channel.
#[derive(Debug)]
pub struct Fifos(Vec<Mutex<Open>>);

type Open = Option<Kept>;

/// One of them.
#[derive(Debug)]
struct Kept {
    generation: u32,
    fd: Arc<KeptFd>,
    /// It was opened again: what was in it may be gone.
    is_reopened: bool,
}

impl Fifos {
    /// For so many channels.
    pub fn new(channels: u32) -> Self {
        Self((0..channels).map(|_| Mutex::new(None)).collect())
    }

    /// Keeps the descriptor of the channel at an index, that of a generation.
    pub fn keep(&self, index: ChannelIndex, generation: u32, fd: Arc<KeptFd>) {
        *self.at(index) = Some(Kept { generation, fd, is_reopened: false });
    }

    /// Closes that of the channel at an index, once nobody uses it.
    pub fn forget(&self, index: ChannelIndex) {
        *self.at(index) = None;
    }

    /// That of the channel at an index. It is opened if it is not open, or if the program has closed it. `None` if it can't be
    /// opened.
    pub fn get(
        &self,
        index: ChannelIndex,
        generation: u32,
        open: impl FnOnce() -> Result<KeptFd, Errno>,
    ) -> Option<Arc<KeptFd>> {
        let mut kept_open = self.at(index);
        let known = kept_open.as_ref().filter(|kept| kept.generation == generation);
        let is_reopened = known.is_some_and(|kept| kept.fd.get().is_err());
        if known.is_none() || is_reopened {
            let fd = Arc::new(open().ok()?);
            *kept_open = Some(Kept { generation, fd, is_reopened });
        }
        Some(Arc::clone(&kept_open.as_ref()?.fd))
    }

    /// Whether that of the channel at an index was opened again since this was asked last.
    pub fn was_reopened(&self, index: ChannelIndex) -> bool {
        self.at(index).as_mut().is_some_and(|kept| std::mem::take(&mut kept.is_reopened))
    }

    /// Closes those for which `is_there` is false, given their index and generation. One that another thread uses stays.
    pub fn retain(&self, is_there: impl Fn(ChannelIndex, u32) -> bool) {
        for (index, kept_open) in (0..).map(ChannelIndex::new).zip(&self.0) {
            if let Ok(mut kept_open) = kept_open.try_lock() {
                kept_open.take_if(|kept| !is_there(index, kept.generation));
            }
        }
    }

    fn at(&self, index: ChannelIndex) -> MutexGuard<'_, Open> {
        let index = index.get() as usize & (self.0.len() - 1);
        sync::lock(&self.0[index])
    }
}

#[cfg(test)]
mod tests;
