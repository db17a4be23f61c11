//! The guard page of an attachment: a private page at a random address, which the process has for as long as the
//! memory in which it attached. It disappears with that memory, when the process ends or execs; a forked child does
//! not have it.
//!
//! - It alone holds an opening of the fabric's file, whose [lock](super::liveness) shows that the process is alive.
//! - A process that moves bytes of another by its pid passes a byte of the page as the first element: if another
//!   program has the pid by now, that byte is not mapped, and the system moves nothing.
//!
//! The address is random, far from where the system puts programs, stacks, heaps and libraries, and from the shadow
//! memory of sanitizers. The first bytes may be written by other processes and are never read; behind them is a title
//! that identifies the page and its owner.

use std::mem::offset_of;
use std::path::Path;
use std::time::UNIX_EPOCH;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, retry_on_intr};
use rustix::rand::{GetRandomFlags, getrandom};

use super::error::AttachError;
use super::{file, liveness, unshared};
use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::above_streams;
use crate::shm::mapping::{Mapping, Shared};
use crate::sync::{self, AtomicU64};

const LEN: usize = 4096;
/// The largest page size of any supported system.
const ALIGN: u64 = 1 << 16;
/// The range of the address, where addresses have 47 bits or more.
const FROM: u64 = 1 << 46;
const SPAN: u64 = 1 << 44;
/// By how many bits the range is lowered for addresses of 47, 39 and 38 bits.
const NARROWER: [u32; 3] = [0, 8, 9];
const TRIES: usize = 8;

const MAGIC: u64 = u64::from_le_bytes(*b"rxe-page");

/// The content of the page.
#[derive(Debug)]
#[repr(C)]
struct Content {
    /// Accessed by other processes; without meaning.
    touched: AtomicU64,
    title: [AtomicU64; TITLE],
}

#[expect(unsafe_code, reason = "a layout for `Mapping::at`")]
// SAFETY: `repr(C)`, atomics alone, alignment 8.
unsafe impl Shared for Content {}

/// The number of words of the title.
const TITLE: usize = 3;

/// The title of a page, at [`TITLE_AT`].
pub type Title = [u64; TITLE];

/// The offset of the title in a page.
pub const TITLE_AT: usize = offset_of!(Content, title);

/// The title of the page of an owner at an address.
pub const fn title(owner: u32, addr: u64) -> Title {
    [MAGIC, owner as u64, addr]
}

/// A guard page. Dropped before its owner uses the fabric, or never.
#[derive(Debug)]
pub struct GuardPage(Mapping);

impl GuardPage {
    /// The guard page of an owner in the file of this path, which counts as alive from here on; `None` if another process
    /// holds the owner's lock.
    ///
    /// # Errors
    /// A system call failed, or a thread is about to fork for too long.
    pub fn new(of: BorrowedFd<'_>, owner: u32, path: &Path) -> Result<Option<Self>, AttachError> {
        let again = file::path_of(of);
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let opened = || retry_on_intr(|| open(&again, flags, Mode::empty()));
        let failed = |call| move |errno| AttachError::system(call, path, errno);
        let _held_off = unshared::hold_off().map_err(failed("open"))?;
        // Closed at the end of this function: then the page alone holds it.
        let file = above_streams(opened)
            .map_err(|errno| AttachError::system("open", Path::new(&again), errno))?;
        if !liveness::hold(file.as_fd(), owner).map_err(failed("fcntl"))? {
            return Ok(None);
        }
        steps::done(Step::Locked);
        let page = somewhere(|addr| Mapping::guard(file.as_fd(), LEN, addr))
            .map_err(|(call, errno)| failed(call)(errno))?;
        let content: &Content = page.at(0).ok_or(Errno::NOMEM).map_err(failed("mmap"))?;
        // The first store makes the page a private copy of the file's.
        for (word, value) in content.title.iter().zip(title(owner, page.addr() as u64)) {
            sync::store(word, value);
        }
        Ok(Some(Self(page)))
    }

    /// The address of the page.
    pub fn addr(&self) -> u64 {
        self.0.addr() as u64
    }
}

/// Maps at a random address, as high as possible; as a last resort, where the system chooses.
fn somewhere<T, E>(map: impl Fn(usize) -> Result<T, E>) -> Result<T, E> {
    let mut tries = NARROWER.into_iter().flat_map(|bits| [bits; TRIES]);
    tries.find_map(|bits| map(drawn(bits)).ok()).map_or_else(|| map(0), Ok)
}

/// A random address that is probably free. It differs from those of the parent and siblings of this process, since
/// one of them may get its pid next. `narrower` is the number of bits by which the range is lowered.
pub fn drawn(narrower: u32) -> usize {
    let mut bytes = [0; 8];
    let random = match getrandom(&mut bytes, GetRandomFlags::NONBLOCK) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => UNIX_EPOCH.elapsed().map_or(0, |time| time.subsec_nanos().into()),
    };
    let (from, span) = (FROM >> narrower, SPAN >> narrower);
    (from + random % (span / ALIGN) * ALIGN) as usize
}

#[cfg(test)]
mod tests;
