//! The guard page of an attachment: a page of this process' alone, at an address that nothing else has, for as long
//! as the process has the memory in which it attached. It goes with that memory, when the process ends or runs
//! another program, and no forked child has it.
//!
//! - It alone holds an opening of the fabric's file, whose [lock](super::liveness) says that the process lives.
//! - Who moves bytes of the process by its number names a byte of the page first: where another program has the
//!   number by now, that byte is not there, and the system moves [nothing](crate::memory::reach).
//!
//! The address is drawn at random, far from where the system puts programs, stacks, heaps and libraries, and where
//! sanitizers have their shadows. Nobody reads or relies on the first bytes, which anybody may write; behind them
//! stands whose page it is, so that who is told an address sees that it is one.

use std::mem::offset_of;
use std::time::UNIX_EPOCH;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, retry_on_intr};
use rustix::rand::{GetRandomFlags, getrandom};

use super::{file, liveness, unshared};
use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::above_streams;
use crate::shm::mapping::{Mapping, Shared};
use crate::sync::{self, AtomicU64};

const LEN: usize = 4096;
/// As large as a page is anywhere.
const ALIGN: u64 = 1 << 16;
/// From where on, and how far, a page is looked for, where addresses have 47 bits or more.
const FROM: u64 = 1 << 46;
const SPAN: u64 = 1 << 44;
/// By how many bits less where they have fewer: 39 and 38.
const NARROWER: [u32; 3] = [0, 8, 9];
const TRIES: usize = 8;

const MAGIC: u64 = u64::from_le_bytes(*b"rxe-page");

/// What lies in the page.
#[derive(Debug)]
#[repr(C)]
struct Content {
    /// What others touch. It means nothing.
    touched: AtomicU64,
    title: [AtomicU64; TITLE],
}

#[expect(unsafe_code, reason = "a layout for `Mapping::at`")]
// SAFETY: `repr(C)`, atomics alone, alignment 8.
unsafe impl Shared for Content {}

/// Words that say whose page it is.
const TITLE: usize = 3;

/// Whose page it is, as it says at [`TITLE_AT`].
pub type Title = [u64; TITLE];

/// Where the title lies in a page.
pub const TITLE_AT: usize = offset_of!(Content, title);

/// What the page of an owner says that is at an address.
pub const fn title(owner: u32, addr: u64) -> Title {
    [MAGIC, owner as u64, addr]
}

/// A guard page. Dropped before its owner uses the fabric, or never.
#[derive(Debug)]
pub struct GuardPage(Mapping);

impl GuardPage {
    /// That of an owner, who lives from here on; `None` if another one does.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(of: BorrowedFd<'_>, owner: u32) -> Result<Option<Self>, Errno> {
        let again = file::path_of(of);
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let opened = || retry_on_intr(|| open(&again, flags, Mode::empty()));
        let _held_off = unshared::hold_off()?;
        // Closed at the end: then the page alone has it.
        let file = above_streams(opened)?;
        if !liveness::hold(file.as_fd(), owner)? {
            return Ok(None);
        }
        steps::done(Step::Locked);
        let page = somewhere(|addr| Mapping::guard(file.as_fd(), LEN, addr))?;
        let content: &Content = page.at(0).ok_or(Errno::NOMEM)?;
        // With the first of these it is this process' own, and not the file's any more.
        for (word, value) in content.title.iter().zip(title(owner, page.addr() as u64)) {
            sync::store(word, value);
        }
        Ok(Some(Self(page)))
    }

    /// Where it is.
    pub fn addr(&self) -> u64 {
        self.0.addr() as u64
    }
}

/// Maps something at an address that is drawn, as high as there is one; where the system chooses, at last.
fn somewhere<T>(map: impl Fn(usize) -> Result<T, Errno>) -> Result<T, Errno> {
    let mut tries = NARROWER.into_iter().flat_map(|bits| [bits; TRIES]);
    tries.find_map(|bits| map(drawn(bits)).ok()).map_or_else(|| map(0), Ok)
}

/// An address where probably nothing is. Not that of a process which this one was forked from, or is a sibling of: one
/// of them may have its number next. `narrower` by this many bits than where addresses have 47.
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
