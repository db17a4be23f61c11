//! The guard page of an attachment: a page of this process' alone, at an address that nothing else has, for as long
//! as the process has the memory in which it attached. It goes with that memory, when the process ends or runs
//! another program, and no forked child has it.
//!
//! - It alone holds an opening of the fabric's file, whose [lock](super::alive) says that the process lives.
//! - Who moves bytes of the process by its number names a byte of the page first: where another program has the
//!   number by now, that byte is not there, and the system moves [nothing](crate::reach).
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

use super::{alive, file};
use crate::descriptor::above_streams;
use crate::region::{Mapping, Shared};
use crate::sync::{self, AtomicU64};

const LEN: usize = 4096;
/// As large as a page is anywhere.
const ALIGN: u64 = 1 << 16;
/// From where on, and how far, a page is looked for, on systems of 47 bits of addresses and more. Where there are
/// fewer the system chooses.
const FROM: u64 = 0x4000_0000_0000;
const SPAN: u64 = 0x1000_0000_0000;
const TRIES: u32 = 8;

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
        // Closed at the end: then the page alone has it.
        let file = above_streams(opened)?;
        if !alive::hold(file.as_fd(), owner)? {
            return Ok(None);
        }
        let page = (0..TRIES).find_map(|_| Mapping::guard(file.as_fd(), LEN, drawn()).ok());
        let page = page.map_or_else(|| Mapping::guard(file.as_fd(), LEN, 0), Ok)?;
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

/// An address where probably nothing is. Not that of a process which this one was forked from, or is a sibling of: one
/// of them may have its number next.
pub fn drawn() -> usize {
    let mut bytes = [0; 8];
    let random = match getrandom(&mut bytes, GetRandomFlags::NONBLOCK) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => UNIX_EPOCH.elapsed().map_or(0, |time| time.subsec_nanos().into()),
    };
    (FROM + random % (SPAN / ALIGN) * ALIGN) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::OpenOptions;

    #[test]
    fn addresses_are_drawn_from_one_range_in_whole_pages() {
        for at in [(); 64].map(|()| drawn() as u64) {
            assert!((FROM..FROM + SPAN).contains(&at) && at.is_multiple_of(ALIGN));
        }
    }

    #[test]
    fn x03_nobody_lives_twice() {
        let (_context, fabric) = OpenOptions::new().alone();
        let file = fabric.path().file();
        let file = std::fs::File::options().read(true).write(true).open(file).unwrap();
        let me = fabric.me.to_word();
        assert!(GuardPage::new(file.as_fd(), me).unwrap().is_none());
        assert!(GuardPage::new(file.as_fd(), me + 1).unwrap().is_some(), "nor did that one");
    }
}
